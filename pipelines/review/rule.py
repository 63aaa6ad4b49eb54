"""The rule of the review: it depends on nothing but its arguments.

The held-out points are the upper half, by task slots, of the present observations (StreamBed section 6, the split of
the model selection): plans extrapolate to more slots than were measured, so that is what a model has to be good at.
Both models are scored by their RMSE on them without having seen them: each function is fitted again to those of its
own training observations that have no more task slots than the lower half. A champion with too few of those is scored
as it is registered, which can only favour it, since it may have been trained up there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from models.capacity.observation import Observation
from models.capacity.surrogates import Array, Dataset, Surrogate, extrapolation_split, fit
from models.operations import Reviewing
from pipelines.registry import APPROVED_BY_RULE, PENDING, REJECTED, Verdict
from pipelines.review.record import RULE, HeldOut, ReviewRecord, Score, SlotChange
from pipelines.selection_record import SelectionRecord

FEWEST_TO_FIT: Final = 3
"""As many as a surrogate has coefficients."""
EQUAL: Final = 1e-9
"""Relative difference up to which two errors are equal."""


@dataclass(frozen=True)
class Contender:
    """A model as it is scored: fitted again without the held-out points, where that is possible."""

    selection: SelectionRecord
    surrogate: Surrogate
    fitted_on: int | None
    """Observations it was fitted on; None: it is the registered one."""
    predicted: Array
    """Of the held-out points, records/s."""
    rmse: float

    @property
    def score(self) -> Score:
        return Score(uri=self.selection.model_uri, model=self.selection.model, rmse=self.rmse, fitted_on=self.fitted_on)


@dataclass(frozen=True)
class Comparison:
    """Challenger and champion on the same held-out points."""

    held_out: Dataset
    challenger: Contender
    champion: Contender | None


def compare(
    selection: SelectionRecord,
    present: Sequence[Observation],
    champion: SelectionRecord | None,
    past: Sequence[Observation] | None,
) -> Comparison | None:
    """Score both on the upper half of the present observations; None where these cannot be split.

    Args:
        present: what the challenger was trained on.
        past: what the champion was trained on; None where that is not known.
    """
    split = extrapolation_split(Dataset.of(present))
    if split is None:
        return None
    lower, upper = split
    return Comparison(
        held_out=upper,
        challenger=_contender(selection, lower, upper),
        champion=None
        if champion is None
        else _contender(champion, None if past is None else _below(past, lower, upper), upper),
    )


def judge(
    selection: SelectionRecord,
    champion: SelectionRecord | None,
    comparison: Comparison | None,
    run: str,
    limits: Reviewing,
    slots: SlotChange | None = None,
) -> ReviewRecord:
    """Apply the rule, and say whether it decides or a person has to."""
    challenger_score = _unscored(selection) if comparison is None else comparison.challenger.score
    champion_score = None if champion is None else _unscored(champion)
    if comparison is not None and comparison.champion is not None:
        champion_score = comparison.champion.score
    finding = _finding(selection, challenger_score, champion_score, slots, limits)
    verdict = _verdict(finding, limits)
    stays = None if champion is None else champion.model_uri
    return ReviewRecord(
        job=selection.job,
        run=run,
        verdict=verdict,
        rule=RULE,
        reason=finding.reason,
        held_out=None if comparison is None else _held_out(comparison.held_out),
        challenger=challenger_score,
        champion=champion_score,
        champion_uri=selection.model_uri if verdict == APPROVED_BY_RULE else stays,
        slots=slots,
    )


def error_limit(champion_rmse: float, limits: Reviewing) -> float:
    """The largest error on the held-out points that the rule approves, records/s."""
    return champion_rmse * (1 + limits.max_error_increase) * (1 + EQUAL)


@dataclass(frozen=True)
class _Finding:
    """Whether the challenger is within the limits; None where no person could change the answer."""

    within: bool
    reason: str
    final: bool = False


def _verdict(finding: _Finding, limits: Reviewing) -> Verdict:
    by_rule: Verdict = APPROVED_BY_RULE if finding.within else REJECTED
    if finding.final or limits.mode == "rule":
        return by_rule
    if limits.mode == "person-beyond-limits" and finding.within:
        return by_rule
    return PENDING


def _finding(
    selection: SelectionRecord, challenger: Score, champion: Score | None, slots: SlotChange | None, limits: Reviewing
) -> _Finding:
    if selection.coefficients.slots <= 0:
        return _Finding(
            False, "its MST does not grow with the task slots, so no number of slots can be planned with it", final=True
        )
    if champion is None:
        return _Finding(True, "there is no champion to compare it with")
    if champion.uri == challenger.uri:
        return _Finding(True, "it is the champion already", final=True)
    if challenger.rmse is None or champion.rmse is None:
        return _Finding(
            False,
            "the observations cannot be split into a lower and an upper half by task slots, so it cannot be compared "
            f"with the champion {champion.uri}; approve it by hand if it is better",
        )
    change = None if slots is None else slots.share
    good_enough = challenger.rmse <= error_limit(champion.rmse, limits)
    near_enough, remark = _nearness(change, limits)
    return _Finding(good_enough and near_enough, _errors(challenger.rmse, champion, limits) + remark)


def _errors(challenger_rmse: float, champion: Score, limits: Reviewing) -> str:
    assert champion.rmse is not None
    worse = challenger_rmse > champion.rmse * (1 + EQUAL)
    allowed = ""
    if worse and limits.max_error_increase:
        inside = "within" if challenger_rmse <= error_limit(champion.rmse, limits) else "beyond"
        allowed = f", {inside} the {limits.max_error_increase:.0%} allowed"
    return (
        f"on the held-out points its RMSE is {challenger_rmse:,.0f} records/s, {'' if worse else 'not '}worse than the "
        f"{champion.rmse:,.0f} of the champion {champion.uri} ({champion.model}"
        f"{', scored as registered' if champion.fitted_on is None else ''}){allowed}"
    )


def _nearness(change: float | None, limits: Reviewing) -> tuple[bool, str]:
    if limits.max_slot_change is None:
        return True, ""
    most = f"{limits.max_slot_change:.0%}"
    if change is None:
        return False, f"; by how much the task slots would change is not known, and at most {most} is allowed"
    if abs(change) > limits.max_slot_change:
        return False, f"; the task slots would change by {change:+.0%}, and at most {most} is allowed"
    return True, f"; the task slots would change by {change:+.0%}, within the {most} allowed"


def _below(past: Sequence[Observation], lower: Dataset, upper: Dataset) -> Dataset | None:
    """The champion's observations up to the slots of the lower half, without held-out ones; None where too few."""
    held_out = set(zip(upper.memory_mb, upper.task_slots, upper.mst, strict=True))
    most = lower.task_slots.max()
    kept = [o for o in past if o.task_slots <= most and (o.memory_mb, o.task_slots, o.mst) not in held_out]
    if len(kept) < FEWEST_TO_FIT or len({o.task_slots for o in kept}) == 1:
        return None
    return Dataset.of(kept)


def _unscored(selection: SelectionRecord) -> Score:
    return Score(uri=selection.model_uri, model=selection.model, rmse=None, fitted_on=None)


def _contender(selection: SelectionRecord, trained: Dataset | None, upper: Dataset) -> Contender:
    """Fitted again on `trained`, or as it is registered."""
    fitted = selection.surrogate if trained is None else fit(selection.model, trained)
    predicted = np.asarray(fitted.predict(upper.memory_mb, upper.task_slots))
    return Contender(
        selection=selection,
        surrogate=fitted,
        fitted_on=None if trained is None else len(trained),
        predicted=predicted,
        rmse=float(np.sqrt(np.mean((predicted - upper.mst) ** 2))),
    )


def _held_out(upper: Dataset) -> HeldOut:
    slots = upper.task_slots
    return HeldOut(observations=len(upper), min_task_slots=int(slots.min()), max_task_slots=int(slots.max()))
