"""The rule of the review: a pure function of its arguments.

Models are judged as they are registered, by observations that none of them was fitted to: those that their runs kept
back. Fewer than FEWEST_UNSEEN are no evidence: the challenger stays challenger, and waits for a person.

Against a champion, the challenger's error counts: its RMSE must not be larger, within the limits of the job's file.
Without a champion there is a bar: the median of |predicted / measured - 1| is at most MOST_MEDIAN_ERROR, and no more
observations lie outside of the 95 % prediction intervals than honest intervals leave out in 99 of 100 cases (a binomial
tail: 1 of 3, 2 of 8). Models of different testbeds are never compared.
"""

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from scipy.special import bdtrc

from models.capacity.growth.capacity_model import PROBABILITY, CapacityModel
from models.capacity.growth.dataset import Array, Dataset
from models.capacity.observation import Observation
from models.wording import amount
from pipelines.inputs.operations.operations import Reviewing
from pipelines.registry.models import APPROVED_BY_RULE, PENDING, REJECTED, Verdict
from pipelines.registry.review.record import RULE, HeldOut, ReviewRecord, Score, SlotChange
from pipelines.registry.selection_record import SelectionRecord

FEWEST_UNSEEN: Final = 3
"""Observations that are evidence: with fewer, one disturbed measurement would be the median."""
MOST_MEDIAN_ERROR: Final = 0.25
"""Above that of every first model of the catalogue's jobs on the simulator (at most 0.23 in 24 explorations)."""
LEAST_LIKELY: Final = 0.01
"""Honest intervals leave out more observations than are allowed with at most this probability."""
EQUAL: Final = 1e-9
"""Relative difference up to which two errors are equal."""


@dataclass(frozen=True)
class FittedModel:
    """A registered model with what it was fitted to and what its run kept back."""

    selection: SelectionRecord
    capacity: CapacityModel
    fitted: tuple[Observation, ...]
    kept_back: tuple[Observation, ...]


@dataclass(frozen=True)
class Predictions:
    """What a registered model predicts of the unseen observations; arrays of shape (n,), records/s."""

    selection: SelectionRecord
    mst: Array
    low: Array
    high: Array
    measured: Array

    @property
    def rmse(self) -> float:
        return float(np.sqrt(np.mean((self.mst - self.measured) ** 2)))

    @property
    def median_error(self) -> float:
        return float(np.median(np.abs(self.mst / self.measured - 1)))

    @property
    def missed(self) -> int:
        """Observations outside of their prediction intervals, by more than rounding."""
        slack = EQUAL * self.measured
        return int(np.sum((self.measured < self.low - slack) | (self.measured > self.high + slack)))

    @property
    def score(self) -> Score:
        return Score(
            uri=self.selection.model_uri,
            model=self.selection.model,
            rmse=self.rmse,
            median_error=self.median_error,
            missed=self.missed,
        )


@dataclass(frozen=True)
class Evidence:
    """Challenger and champion on the observations that neither has seen."""

    held_out: Dataset
    challenger: Predictions
    champion: Predictions | None


def gather_evidence(challenger: FittedModel, champion: FittedModel | None) -> Evidence | None:
    """Score both on what their runs kept back and neither was fitted to; None where that is too little.

    Args:
        champion: of the same testbed; None where there is none.
    """
    models = [challenger] if champion is None else [challenger, champion]
    seen = {_measured(o) for model in models for o in model.fitted}
    unseen = {_measured(o): o for model in models for o in model.kept_back if _measured(o) not in seen}
    if len(unseen) < FEWEST_UNSEEN:
        return None
    held_out = Dataset.of(unseen.values())
    scored = [_predictions(model, held_out) for model in models]
    return Evidence(held_out, scored[0], None if champion is None else scored[1])


def most_missed(observations: int) -> int:
    """How many of so many observations may lie outside of their 95 % intervals, by the bar for a first model."""
    missed = range(observations + 1)
    return next(m for m in missed if m == observations or bdtrc(m, observations, 1 - PROBABILITY) <= LEAST_LIKELY)


def judge(
    selection: SelectionRecord,
    grows: bool,
    champion: SelectionRecord | None,
    evidence: Evidence | None,
    run: str,
    limits: Reviewing,
    slots: SlotChange | None = None,
    elsewhere: SelectionRecord | None = None,
) -> ReviewRecord:
    """Apply the rule, and decide whether a person has to.

    Args:
        grows: whether the challenger's MST grows with the slots.
        champion: of the same testbed.
        elsewhere: a champion that was measured on another testbed: it is not compared, and stays the champion.
    """
    finding = _finding(selection, grows, champion, evidence, slots, limits)
    verdict = _verdict(finding, limits)
    reason = finding.reason
    if elsewhere is not None:
        reason += (
            f"; the champion {elsewhere.model_uri} was measured on another testbed ({elsewhere.testbed}), so it is not "
            "compared and stays the champion"
        )
    before = champion or elsewhere
    promoted = verdict == APPROVED_BY_RULE and elsewhere is None
    return ReviewRecord(
        job=selection.job,
        run=run,
        verdict=verdict,
        rule=RULE,
        reason=reason,
        held_out=None if evidence is None else _held_out(evidence.held_out),
        challenger=_unscored(selection) if evidence is None else evidence.challenger.score,
        champion=None if champion is None else _champion_score(champion, evidence),
        champion_uri=selection.model_uri if promoted else None if before is None else before.model_uri,
        slots=slots,
    )


def error_limit(champion_rmse: float, limits: Reviewing) -> float:
    """The largest error on the unseen observations that the rule approves, records/s."""
    return champion_rmse * (1 + limits.max_error_increase) * (1 + EQUAL)


@dataclass(frozen=True)
class _Finding:
    """What the rule finds: `within` and `beyond` the limits of the job's file; `unproven`, which only a person can
    overrule; `certain` and `impossible`, which need no confirmation."""

    kind: Literal["within", "beyond", "unproven", "certain", "impossible"]
    reason: str


def _verdict(finding: _Finding, limits: Reviewing) -> Verdict:
    match finding.kind:
        case "certain":
            return APPROVED_BY_RULE
        case "impossible":
            return REJECTED
        case "within" if limits.mode != "person":
            return APPROVED_BY_RULE
        case "beyond" if limits.mode == "rule":
            return REJECTED
        case _:
            return PENDING


def _finding(
    selection: SelectionRecord,
    grows: bool,
    champion: SelectionRecord | None,
    evidence: Evidence | None,
    slots: SlotChange | None,
    limits: Reviewing,
) -> _Finding:
    if not grows:
        return _Finding(
            "impossible", "its MST does not grow with the task slots, so no number of slots can be planned with it"
        )
    if champion is not None and champion.model_uri == selection.model_uri:
        return _Finding("certain", "it is the champion already")
    if evidence is None:
        models = "it was not" if champion is None else f"neither it nor the champion {champion.model_uri} was"
        return _Finding(
            "unproven",
            f"there must be at least {FEWEST_UNSEEN} observations that {models} fitted to, but there are fewer; "
            "measure more, use fewer rows of a measurements file, or approve it by hand",
        )
    if evidence.champion is None:
        return _first_model(evidence.challenger)
    near_enough, remark = _nearness(None if slots is None else slots.share, limits)
    good_enough = evidence.challenger.rmse <= error_limit(evidence.champion.rmse, limits)
    reason = _errors(evidence.challenger.rmse, evidence.champion, limits) + remark
    return _Finding("within" if good_enough and near_enough else "beyond", reason)


def _first_model(challenger: Predictions) -> _Finding:
    """Hold a model that has no champion to compare with against the bar."""
    observations = len(challenger.measured)
    allowed = most_missed(observations)
    passed = challenger.median_error <= MOST_MEDIAN_ERROR and challenger.missed <= allowed
    return _Finding(
        "within" if passed else "unproven",
        f"there is no champion to compare it with, and it {'passes' if passed else 'misses'} the bar for a first model: on "
        f"{observations} observations that it has not seen, its median error is {challenger.median_error:.0%} (at most "
        f"{MOST_MEDIAN_ERROR:.0%}), and {challenger.missed} lie outside of their 95 % intervals (at most {allowed})",
    )


def _errors(challenger_rmse: float, champion: Predictions, limits: Reviewing) -> str:
    worse = challenger_rmse > champion.rmse * (1 + EQUAL)
    allowed = ""
    if worse and limits.max_error_increase:
        inside = "within" if challenger_rmse <= error_limit(champion.rmse, limits) else "beyond"
        allowed = f", {inside} the {limits.max_error_increase:.0%} allowed"
    return (
        f"on {len(champion.measured)} observations that neither has seen its RMSE is {amount(challenger_rmse)} records/s, "
        f"{'' if worse else 'not '}worse than the {amount(champion.rmse)} of the champion {champion.selection.model_uri} "
        f"({champion.selection.model}){allowed}"
    )


def _nearness(change: float | None, limits: Reviewing) -> tuple[bool, str]:
    if limits.max_slot_change is None:
        return True, ""
    most = f"{limits.max_slot_change:.0%}"
    if change is None:
        return False, f"; the change of the task slots is unknown, and at most {most} is allowed"
    if abs(change) > limits.max_slot_change:
        return False, f"; the task slots would change by {change:+.0%}, and at most {most} is allowed"
    return True, f"; the task slots would change by {change:+.0%}, within the {most} allowed"


def _measured(observation: Observation) -> tuple[float, int, float]:
    """What makes two observations the same measurement."""
    return observation.memory_mb, observation.task_slots, observation.mst


def _predictions(model: FittedModel, held_out: Dataset) -> Predictions:
    """Of the registered model: the median and the ends of the interval."""
    tail = (1 - PROBABILITY) / 2
    quantiles = [
        model.capacity.quantiles(memory_mb, slots, (tail, 0.5, 1 - tail))[0]
        for memory_mb, slots in zip(held_out.memory_mb, held_out.task_slots, strict=True)
    ]
    low, mst, high = np.array(quantiles).T
    return Predictions(model.selection, mst, low, high, held_out.mst)


def _unscored(selection: SelectionRecord) -> Score:
    return Score(uri=selection.model_uri, model=selection.model)


def _champion_score(champion: SelectionRecord, evidence: Evidence | None) -> Score:
    scored = None if evidence is None else evidence.champion
    return _unscored(champion) if scored is None else scored.score


def _held_out(unseen: Dataset) -> HeldOut:
    slots = unseen.task_slots
    return HeldOut(observations=len(unseen), min_task_slots=int(slots.min()), max_task_slots=int(slots.max()))
