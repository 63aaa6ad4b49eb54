"""Meeting objectives: how many task slots lag and recovery need beyond what the rate needs, and which of them binds.

The capacity model answers for the rate and, by its catch-up factor, for the recovery from an outage. What the twin predicts
of lag and recovery is asked for at that size, and at larger ones until it is within the objectives:

    n, 1.1 n, 1.1^2 n, ...    up to MOST_STEPS sizes, or the most task slots there are
    then bisection between the last that did not do and the first that did, to CLOSE
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from models.capacity.observation import Budget
from models.errors import Infeasible
from models.objectives.objectives import LagObjective, Objectives, RecoveryObjective, SizingKind, seconds_in_words
from models.objectives.outcome import ObjectiveOutcome, PlanObjectives
from models.objectives.recovery import recovery_s
from models.plan.parts import Interval
from models.planning.budget import Sizing, predicted_mst
from models.wording import amount

STEP: Final = 1.1
MOST_STEPS: Final = 12
"""3.1 times the first size."""
CLOSE: Final = 1.03


@dataclass(frozen=True)
class Foreseen:
    """What the twin predicts of a size; None where it was not asked."""

    lag_s: float | None = None
    """Of the objective's share of the records."""
    recovery_s: float | None = None
    """From the end of the outage; infinite where the lag was not read by twice the objective's time."""
    rate: float = 0.0
    """At which records arrived, records/s."""

    def missed(self, asked: Objectives) -> SizingKind | None:
        """The objective that the size does not meet."""
        if asked.recovery is not None and self.recovery_s is not None and self.recovery_s > asked.recovery.within_s:
            return "recovery"
        if asked.lag is not None and self.lag_s is not None and self.lag_s > asked.lag.limit_s:
            return "lag"
        return None


Foresee = Callable[[int], Foreseen]
"""Predicts a number of task slots."""


@dataclass(frozen=True)
class _Found:
    slots: int
    foreseen: Foreseen
    missed: SizingKind | None
    """What the size below misses; None where the first size does."""


def meet(
    sizing: Sizing,
    asked: Objectives,
    rate: float,
    rate_alone: int,
    most_slots: int,
    foresee: Foresee | None,
    most_rate: float = math.inf,
) -> Sizing:
    """The sizing with the task slots that the objectives need.

    Args:
        sizing: for the rate and, with its catch-up factor, the outage.
        rate: target, records/s at the sources together.
        rate_alone: task slots that the rate needs without an outage.
        most_slots: that can be had.
        foresee: the twin; None without one.
        most_rate: that the partitions and a rate limit of the job's file allow, records/s; the twin does not know them.

    Raises:
        Infeasible: no size up to `most_slots` meets them.
    """
    first = sizing.budget.task_slots
    found = _Found(first, Foreseen(), None) if foresee is None else _search(first, most_slots, asked, foresee)
    binding: SizingKind = found.missed or ("recovery" if first > rate_alone else "rate")
    more = f"; {found.slots} for '{_text(asked, found.missed)}', by the twin" if found.missed else ""
    sized = sizing.model_copy(
        update={
            "budget": Budget(task_slots=found.slots, memory_mb=sizing.budget.memory_mb),
            "slots": sizing.slots.model_copy(
                update={
                    "value": found.slots,
                    "high": None if sizing.slots.high is None else max(sizing.slots.high, found.slots),
                }
            ),
            "task_slots_by_memory_mb": {**sizing.task_slots_by_memory_mb, sizing.budget.memory_mb: found.slots},
            "reason": sizing.reason + more,
        }
    )
    outcomes = (
        _rate_outcome(sized, rate, rate_alone, most_rate),
        *(() if asked.recovery is None else (_recovery_outcome(sized, asked.recovery, rate, first, found, most_rate),)),
        *(() if asked.lag is None else (_lag_outcome(asked.lag, found),)),
    )
    return sized.model_copy(update={"objectives": PlanObjectives(asked=asked, binding=binding, outcomes=outcomes)})


def _search(first: int, most_slots: int, asked: Objectives, foresee: Foresee) -> _Found:
    low, high, foreseen = 0, first, foresee(first)
    missed, step = foreseen.missed(asked), 0
    last_missed = missed
    while missed is not None:
        step, low, last_missed = step + 1, high, missed
        high = min(max(math.ceil(high * STEP), high + 1), most_slots)
        if high <= low or step > MOST_STEPS:
            raise Infeasible(_out_of_reach(asked, missed, low, foreseen, limited=high <= low))
        foreseen = foresee(high)
        missed = foreseen.missed(asked)
    while low and high - low > 1 and high / low > CLOSE:
        middle = (low + high) // 2
        tried = foresee(middle)
        if (missed := tried.missed(asked)) is None:
            high, foreseen = middle, tried
        else:
            low, last_missed = middle, missed
    return _Found(high, foreseen, last_missed)


def _text(asked: Objectives, kind: SizingKind | None) -> str:
    one = asked.lag if kind == "lag" else asked.recovery
    return "" if one is None else one.text


def _out_of_reach(asked: Objectives, missed: SizingKind, slots: int, foreseen: Foreseen, limited: bool) -> str:
    reached = foreseen.lag_s if missed == "lag" else foreseen.recovery_s
    time = "more time" if reached is None or math.isinf(reached) else f"{reached:,.0f} s"
    why = "the most that can be had" if limited else "the largest size tried"
    lift = (
        "use a larger cluster, a lower rate, or a longer time" if limited else "allow more time, or plan a lower rate"
    )
    return (
        f"'{_text(asked, missed)}' is out of reach: with {slots} task slots, {why}, the twin predicts {time} at "
        f"{amount(foreseen.rate)} records/s; {lift}"
    )


def _rate_outcome(sizing: Sizing, rate: float, alone: int, most_rate: float) -> ObjectiveOutcome:
    predicted = min(predicted_mst(sizing.model, sizing.budget).value, most_rate)
    stated = sizing.margin.model_copy(update={"catch_up": 1.0}).of(rate)
    return ObjectiveOutcome(
        kind="rate",
        stated=stated,
        task_slots=alone,
        predicted=predicted,
        unit="records/s",
        predicted_by="capacity model",
        sentence=f"{stated}: {alone} task slots; the plan is expected to sustain {amount(predicted)} records/s",
    )


def _recovery_outcome(
    sizing: Sizing, asked: RecoveryObjective, rate: float, first: int, found: _Found, most_rate: float
) -> ObjectiveOutcome:
    mst = predicted_mst(sizing.model, sizing.budget)
    capacity = min(mst.value, most_rate)
    seen = found.foreseen.recovery_s
    limited = recovery_s(asked, rate, most_rate) if math.isfinite(most_rate) else 0.0
    seconds = recovery_s(asked, rate, capacity) if seen is None or limited is None else max(seen, limited)
    needs = found.slots if found.missed == "recovery" else first
    counted = "" if asked.restart_s else ", in which its restart is counted"
    recovers = "is not predicted to recover"
    if seconds is not None:
        recovers = f"is expected to recover in {seconds:,.0f} s{_recovery_range(asked, rate, mst, most_rate, seen)}"
    return ObjectiveOutcome(
        kind="recovery",
        stated=asked.text,
        task_slots=needs,
        predicted=seconds,
        unit="s",
        predicted_by="capacity model" if seen is None else "twin",
        sentence=(
            f"{asked.text}: {sizing.margin.catch_up:.4g} x {amount(rate)} records/s, {needs} task slots; the plan {recovers} "
            f"after an outage of {seconds_in_words(asked.outage_s)}{counted}, while records keep arriving at the rate"
        ),
    )


def _recovery_range(asked: RecoveryObjective, rate: float, mst: Interval, most_rate: float, seen: float | None) -> str:
    """The times at the ends of the MST's interval; empty where the twin was asked, or the ends are the same in words."""
    fast, slow = (recovery_s(asked, rate, min(end, most_rate)) for end in (mst.high, mst.low))
    if seen is not None or fast is None:
        return ""
    if slow is None:
        return f" ({fast:,.0f} s or more, perhaps never, with {mst.probability:.0%} probability)"
    text = f"{fast:,.0f} to {slow:,.0f} s"
    return "" if f"{fast:,.0f}" == f"{slow:,.0f}" else f" ({text} with {mst.probability:.0%} probability)"


def _lag_outcome(asked: LagObjective, found: _Found) -> ObjectiveOutcome:
    lag_s = found.foreseen.lag_s
    assert lag_s is not None, "the twin predicts lag where it is an objective"
    more = f"{found.slots} task slots" if found.missed == "lag" else "no more task slots than the others"
    return ObjectiveOutcome(
        kind="lag",
        stated=asked.text,
        task_slots=found.slots if found.missed == "lag" else None,
        predicted=lag_s,
        unit="s",
        predicted_by="twin",
        sentence=(
            f"{asked.text}: {more}; the twin predicts {asked.name} of {lag_s:,.1f} s in the log at "
            f"{amount(found.foreseen.rate)} records/s, to {seconds_in_words(5)}"
        ),
    )
