"""DS2's scaling manager: when a decision of the model is deployed (DS2 section 4.2).

Rulings, where the paper leaves room:

- Warm-up also follows the first deployment (Figure 7: with 30 s of it and an interval of 10 s, the first decision falls
  at 40 s). An interval belongs to it if it begins less than `warm_up_intervals` x `policy_interval_s` after the job ran.
  The paper's 30 s (sections 5.3, 5.4) are for JVMs that stay up; the default of 2 minutes is for JVMs that restart.
- If the model asks for no operator to grow and a source still reads less than its target, every operator gets
  ceil(target / read x tasks of the model) tasks: "the ratio between the currently achieved rate and the target rate".
  That factor is kept while the target stays about the same; without it the next decision would remove the tasks again.
  It adds no tasks while the sources reach their target.
- A decision is minor if no operator grows and none shrinks by more than `minor_change_tasks` times the factor, rounded
  up. Growth is never minor: without the tasks that the sources need, the job would never catch up.
- A scale-down after which the sources miss their target is not rolled back but refined by the model, as in Table 4 (q8:
  16, 8, 10 tasks). No other one follows until the target rate changes: where more tasks do more than their share, as when
  state fits in memory only then, the same scale-down would be decided again and again.
- A scale-up after which the sources read less is rolled back. Then, or after `max_futile_decisions` scale-ups in a row
  that left the target missed and had almost no effect, DS2 decides no more until the target rate changes.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_high
from typing import Literal

from pydantic import Field

from models.metrics import SAMPLE_INTERVAL_S
from models.scaling.decisions.change import changes_in_words, runs_already, runs_now
from models.scaling.decisions.tasks import round_up
from models.scaling.ds2.model import ds2
from models.scaling.ds2.throughput import Throughput, median_throughput, throughput
from models.scaling.policy import Decision, Facts, Recommendation
from models.scaling.rates import Rates
from models.schema import Format, NonNegative, PositiveInt, Ratio
from models.wording import amount
from models.wording import tasks as task_count


class Ds2Settings(Format):
    """The parameters of the scaling manager (DS2 section 4.2.1, 4.2.2)."""

    policy_interval_s: float = Field(
        30.0, gt=0, multiple_of=SAMPLE_INTERVAL_S, description="Policy interval: how often the policy is invoked, s."
    )
    warm_up_intervals: int = Field(4, ge=0, description="Warm-up time: intervals ignored after a start.")
    activation_intervals: PositiveInt = Field(1, description="Activation time: consecutive decisions considered.")
    activation: Literal["max", "median"] = Field("max", description="How these decisions are combined, per operator.")
    target_rate_ratio: float = Field(
        1.01,
        ge=1,
        allow_inf_nan=False,
        description="Largest target, as a multiple of the rate that a source achieves, that counts as reached.",
    )
    minor_change_tasks: int = Field(1, ge=0, description="A scale-down of each operator by at most this is ignored.")
    min_improvement: Ratio = Field(
        0.05, description="Relative change of the achieved rate that counts as an improvement."
    )
    max_futile_decisions: PositiveInt = Field(
        2, description="Scale-ups in a row without an improvement before it stops."
    )
    target_change: Ratio = Field(0.1, description="Relative change of the target rate after which it starts again.")
    over_provisioning_factor: NonNegative = Field(
        0.0, description="Share of tasks added to the model's (evaluation of autoscalers, section 4.2: 0.2)."
    )


@dataclass(frozen=True)
class _Attempt:
    """A recommended decision, judged once its rescale is done."""

    time_s: float
    before: Decision
    throughput: Throughput
    scales_up: bool
    """More tasks over all operators."""


@dataclass(frozen=True)
class _Correction:
    """Correction for overhead that true rates miss: tasks needed over tasks of the model, at a target rate."""

    factor: float
    target: float


class Ds2:
    """The policy `ds2`."""

    name = "ds2"

    def __init__(self, settings: Ds2Settings) -> None:
        self._settings = settings
        self._seen: deque[tuple[Decision, Throughput]] = deque(maxlen=settings.activation_intervals)
        """The model's decisions for the last intervals, and the throughput in them."""
        self._correction: _Correction | None = None
        self._attempt: _Attempt | None = None
        self._futile = 0
        self._stopped: tuple[float, str] | None = None
        """Target rate at which it stopped deciding, and why."""
        self._too_small: float | None = None
        """Target rate at which a scale-down fell short."""

    @property
    def interval_s(self) -> float:
        return self._settings.policy_interval_s

    def decide(self, rates: Rates) -> Decision:
        return ds2(rates, self._settings.over_provisioning_factor)

    def observe(self, facts: Facts) -> Recommendation:
        warm_up_s = self._settings.warm_up_intervals * self.interval_s
        if facts.began_within(warm_up_s):
            return Recommendation(None, f"DS2 ignores what is measured in the first {warm_up_s:g} s after a start.")
        now = throughput(facts.rates)
        self._forget(now.target)
        if self._stopped is not None:
            return Recommendation(None, self._stopped[1])
        self._seen.append((self.decide(facts.rates), now))
        missing = self._settings.activation_intervals - len(self._seen)
        if missing:
            return Recommendation(None, f"DS2 waits for {missing} more decisions before it acts on them.")
        now = median_throughput([seen for _, seen in self._seen])
        judged = self._judge(facts, now)
        if judged is not None:
            return judged
        return self._act(_combined([decision for decision, _ in self._seen], self._settings.activation), facts, now)

    def _act(self, model: Decision, facts: Facts, now: Throughput) -> Recommendation:
        """Deploy what the model asks for, unless it is minor."""
        decision, correction = self._correct(model, facts.rates, now)
        if self._too_small is not None:
            decision = _without_scale_down(decision, facts.rates)
        if self._is_minor(decision, facts.rates):
            return Recommendation(None, self._rests(decision, facts.rates, now))
        self._correction = correction
        return self._deploy(decision, facts, now)

    def _forget(self, target: float) -> None:
        """Forget what was learned at a target rate far from the present one."""
        if self._correction is not None and self._moved(target, self._correction.target):
            self._correction = None
        if self._stopped is not None and self._moved(target, self._stopped[0]):
            self._stopped = None
            self._futile = 0
        if self._too_small is not None and self._moved(target, self._too_small):
            self._too_small = None

    def _moved(self, target: float, reference: float) -> bool:
        return abs(target - reference) > self._settings.target_change * reference

    def _judge(self, facts: Facts, now: Throughput) -> Recommendation | None:
        """Judge the effect of the last decision; None to continue with the next one."""
        attempt = self._attempt
        if attempt is None or facts.last_rescale is None or facts.last_rescale.ended_s < attempt.time_s:
            return None
        self._attempt = None
        was = attempt.throughput
        if not attempt.scales_up:
            if self._misses(now) and not self._moved(now.target, was.target):
                self._too_small = now.target
            return None
        read = f"the sources read {amount(was.achieved)} records/s before and {amount(now.achieved)} after"
        if now.achieved < min(was.achieved, now.target) * (1 - self._settings.min_improvement):
            return self._roll_back(attempt.before, facts.rates, now.target, read)
        small = now.achieved < was.achieved * (1 + self._settings.min_improvement)
        self._futile = self._futile + 1 if small and self._misses(now) else 0
        if self._futile >= self._settings.max_futile_decisions:
            why = f"DS2 stops at a target of {amount(now.target)} records/s: {self._futile} scale-ups in a row "
            self._stopped = (now.target, f"{why}had almost no effect, {read} the last.")
            return Recommendation(None, self._stopped[1])
        return None

    def _roll_back(self, before: Decision, rates: Rates, target: float, read: str) -> Recommendation:
        self._seen.clear()
        self._stopped = (target, f"DS2 keeps the configuration that it rolled back to: {read} a scale-up.")
        if runs_already(before, rates):
            return Recommendation(None, self._stopped[1])
        return Recommendation(before, f"DS2 rolls back: {read} the scale-up; {changes_in_words(before, rates)}.")

    def _misses(self, now: Throughput) -> bool:
        return now.ratio > self._settings.target_rate_ratio

    def _correct(self, decision: Decision, rates: Rates, now: Throughput) -> tuple[Decision, _Correction | None]:
        """The decision with the tasks that the true rates don't account for."""
        known = self._correction.factor if self._correction else 1.0
        if not self._misses(now):
            return _scaled(decision, rates, known, only_keep=True), self._correction
        corrected = _scaled(decision, rates, known)
        if any(tasks > rates.operators[name].parallelism for name, tasks in corrected.parallelism.items()):
            return corrected, self._correction
        factor = known * now.ratio
        return _scaled(decision, rates, factor), _Correction(factor, now.target)

    def _is_minor(self, decision: Decision, rates: Rates) -> bool:
        lost = [rates.operators[name].parallelism - tasks for name, tasks in decision.parallelism.items()]
        factor = self._correction.factor if self._correction else 1.0
        return min(lost) >= 0 and max(lost) <= round_up(factor) * self._settings.minor_change_tasks

    def _rests(self, decision: Decision, rates: Rates, now: Throughput) -> str:
        keeps_up = f"the sources should read {amount(now.target)} records/s and read {amount(now.achieved)}"
        if runs_already(decision, rates):
            return f"DS2 keeps the current tasks: {keeps_up}."
        return f"DS2 ignores the minor change of {changes_in_words(decision, rates)}: {keeps_up}."

    def _deploy(self, decision: Decision, facts: Facts, now: Throughput) -> Recommendation:
        before = runs_now(facts.rates, decision)
        added = sum(decision.parallelism.values()) - sum(before.parallelism.values())
        self._attempt = _Attempt(facts.time_s, before, now, added > 0)
        self._seen.clear()
        factor = self._correction.factor if self._correction else 1.0
        overheads = f", {factor:.2f} times what true rates ask for" if factor > 1 else ""
        return Recommendation(
            decision,
            f"DS2 scales {changes_in_words(decision, facts.rates)}{overheads}: the sources should read "
            f"{amount(now.target)} records/s and read {amount(now.achieved)}.",
        )


def _scaled(decision: Decision, rates: Rates, factor: float, only_keep: bool = False) -> Decision:
    """Every operator that the model gave a number of tasks gets `factor` times as many.

    Args:
        decision: of the model.
        rates: that it was made from.
        factor: 1 or more.
        only_keep: because of the factor, running tasks are kept, but none added.
    """
    if factor == 1.0:
        return decision
    parallelism, reasons = dict(decision.parallelism), dict(decision.reasons)
    for name in decision.exact:
        asked, metrics = parallelism[name], rates.operators[name]
        tasks = metrics.at_most(round_up(asked * factor))
        if only_keep:
            tasks = max(asked, min(tasks, metrics.parallelism))
        if tasks != asked:
            parallelism[name] = tasks
            reasons[name] += f"; {factor:.3g} times that for what true rates miss: {task_count(tasks)}"
    return decision.model_copy(update={"parallelism": parallelism, "reasons": reasons})


def _without_scale_down(decision: Decision, rates: Rates) -> Decision:
    kept = {name: rates.operators[name].parallelism for name in decision.parallelism}
    reasons = {
        name: f"{reason}; it keeps {kept[name]}, since a scale-down fell short" if tasks < kept[name] else reason
        for (name, tasks), reason in zip(decision.parallelism.items(), decision.reasons.values(), strict=True)
    }
    parallelism = {name: max(tasks, kept[name]) for name, tasks in decision.parallelism.items()}
    return decision.model_copy(update={"parallelism": parallelism, "reasons": reasons})


def _combined(decisions: Sequence[Decision], by: Literal["max", "median"]) -> Decision:
    """Of each operator the largest, or the upper median, of the decisions on its tasks."""
    last = decisions[-1]
    if len(decisions) == 1:
        return last
    parallelism: dict[str, int] = {}
    exact: dict[str, float] = {}
    reasons: dict[str, str] = {}
    for name in last.parallelism:
        of_name = [d for d in decisions if name in d.parallelism]
        tasks = [d.parallelism[name] for d in of_name]
        chosen = max(tasks) if by == "max" else median_high(tasks)
        origin = of_name[tasks.index(chosen)]
        parallelism[name] = chosen
        reasons[name] = origin.reasons[name]
        if name in origin.exact:
            exact[name] = origin.exact[name]
    return Decision(parallelism=parallelism, exact=exact, memory_mb=last.memory_mb, reasons=reasons)
