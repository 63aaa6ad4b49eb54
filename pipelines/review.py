"""Stage `review`: the new model (challenger) against the one that plans are made with (champion), by a stated rule.

The held-out points are the upper half, by task slots, of the present observations (StreamBed section 6, the split of
the model selection): plans extrapolate to more slots than were measured, so that is what a model has to be good at.
Both models are scored by their RMSE on them without having seen them: each function is fitted again to those of its
own training observations that have no more task slots than the lower half. A champion with too few of those is scored
as it is registered, which can only favour it, since it may have been trained up there. The challenger is promoted if
it is not worse.
"""

from collections.abc import Sequence
from typing import Final, Literal

import numpy as np
from pydantic import Field

from models.capacity.observation import Observation
from models.capacity.surrogates import Dataset, extrapolation_split, fit
from models.schema import SCHEMA_VERSION, Format, NonNegative, PositiveInt
from pipelines.digests import digest
from pipelines.exploration_record import EXPLORATION_FILE, ExplorationRecord
from pipelines.registry import CHAMPION, VersionInfo, find_version, list_versions, promote, set_review
from pipelines.run import PipelineRun
from pipelines.selection_log import logged_observations
from pipelines.selection_record import SELECTION_FILE, SelectionRecord
from pipelines.tracking import Tracking, mlflow_errors, open_tracking

REVIEW_FILE: Final = "review.json"
RULE: Final = (
    "promoted if its RMSE on the upper half of the present observations, by task slots, is not larger than the "
    "champion's, each fitted only to observations of its own with no more slots than the lower half"
)
PROMOTED, KEPT_BACK = "promoted", "kept back"
COMPARED_TAG: Final = "sluice.compared_with"
NOBODY: Final = "none"
FEWEST_TO_FIT: Final = 3
"""As many as a surrogate has coefficients."""
EQUAL: Final = 1e-9
"""Relative difference up to which two errors are equal."""


class HeldOut(Format):
    """The observations that both models are scored on."""

    observations: PositiveInt
    min_task_slots: PositiveInt
    max_task_slots: PositiveInt


class Score(Format):
    """How good a model is on the held-out points."""

    uri: str
    model: str
    rmse: NonNegative | None = Field(description="Records/s; None where it was not compared.")
    fitted_on: int | None = Field(description="Observations it was fitted on for this; None: as it is registered.")


class ReviewRecord(Format):
    """A review and its result."""

    schema_version: Literal[1] = SCHEMA_VERSION
    job: str
    run: str
    verdict: Literal["promoted", "kept back"]
    rule: str
    reason: str
    held_out: HeldOut | None = Field(description="None where the observations cannot be split.")
    challenger: Score
    champion: Score | None = Field(description="The champion before the review; None where there was none.")
    champion_uri: str | None = Field(description="The champion after the review.")


def review(run: PipelineRun) -> str:
    """Compare the run's model with the champion, and move the alias if it is not worse; returns the URI of the review.

    Otherwise the champion stays, and plans are made with it.
    """
    key = run.key(REVIEW_FILE)
    selection = run.output(SELECTION_FILE, SelectionRecord)
    record = run.workspace.once(key, {"selection": digest(selection)}, ReviewRecord, lambda: _review(run, selection))
    run.progress.say(f"review: {record.challenger.uri} {record.verdict}: {record.reason}")
    return run.workspace.uri(key)


def judge(
    selection: SelectionRecord,
    present: Sequence[Observation],
    champion: SelectionRecord | None,
    past: Sequence[Observation] | None,
    run: str,
) -> ReviewRecord:
    """Apply the rule. It depends on nothing but its arguments.

    Args:
        present: what the challenger was trained on.
        past: what the champion was trained on; None where that is not known.
    """
    split = extrapolation_split(Dataset.of(present))
    challenger_score = _unscored(selection)
    champion_score = None if champion is None else _unscored(champion)
    if champion is not None and split is not None:
        lower, upper = split
        challenger_score = _score(selection, lower, upper)
        champion_score = _score(champion, None if past is None else _below(past, lower, upper), upper)
    promoted, reason = _verdict(selection, challenger_score, champion_score)
    stays = None if champion is None else champion.model_uri
    return ReviewRecord(
        job=selection.job,
        run=run,
        verdict=PROMOTED if promoted else KEPT_BACK,
        rule=RULE,
        reason=reason,
        held_out=None if split is None else _held_out(split[1]),
        challenger=challenger_score,
        champion=champion_score,
        champion_uri=selection.model_uri if promoted else stays,
    )


def _verdict(selection: SelectionRecord, challenger: Score, champion: Score | None) -> tuple[bool, str]:
    if selection.coefficients.slots <= 0:
        return False, "its MST does not grow with the task slots, so no number of slots can be planned with it"
    if champion is None:
        return True, "there is no champion to compare it with"
    if champion.uri == challenger.uri:
        return True, "it is the champion already"
    if challenger.rmse is None or champion.rmse is None:
        return False, (
            "the observations cannot be split into a lower and an upper half by task slots, so it cannot be compared "
            f"with the champion {champion.uri}; promote it by hand if it is better"
        )
    promoted = challenger.rmse <= champion.rmse * (1 + EQUAL)
    relation = "not worse than" if promoted else "worse than"
    return promoted, (
        f"on the held-out points its RMSE is {challenger.rmse:,.0f} records/s, {relation} the {champion.rmse:,.0f} of "
        f"the champion {champion.uri} ({champion.model}"
        f"{', scored as registered' if champion.fitted_on is None else ''})"
    )


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


def _score(selection: SelectionRecord, trained: Dataset | None, upper: Dataset) -> Score:
    """Fitted again on `trained`, or as it is registered."""
    fitted = selection.surrogate if trained is None else fit(selection.model, trained)
    fitted_on = None if trained is None else len(trained)
    errors = fitted.predict(upper.memory_mb, upper.task_slots) - upper.mst
    rmse = float(np.sqrt(np.mean(errors**2)))
    return Score(uri=selection.model_uri, model=selection.model, rmse=rmse, fitted_on=fitted_on)


def _held_out(upper: Dataset) -> HeldOut:
    slots = upper.task_slots
    return HeldOut(observations=len(upper), min_task_slots=int(slots.min()), max_task_slots=int(slots.max()))


def _review(run: PipelineRun, selection: SelectionRecord) -> ReviewRecord:
    tracking = open_tracking(run.workspace)
    with mlflow_errors(tracking):
        challenger = find_version(tracking, selection.job, selection.model_version)
        champion = _champion_before(tracking, challenger)
        present = run.output(EXPLORATION_FILE, ExplorationRecord).observations
        past = None if champion is None else logged_observations(tracking, champion.selection)
        record = judge(selection, present, None if champion is None else champion.selection, past, run.run_id)
        _describe(tracking, selection, present, record)
        if record.verdict == PROMOTED:
            promote(run.workspace, tracking, challenger, record.reason)
        else:
            set_review(tracking, selection, KEPT_BACK, record.reason)
        return record


def _champion_before(tracking: Tracking, challenger: VersionInfo) -> VersionInfo | None:
    """The champion to compare with, noted on the challenger, so that a review that was killed compares the same."""
    job, version = challenger.job, str(challenger.version)
    noted = tracking.client.get_model_version(job, version).tags.get(COMPARED_TAG)
    if noted is None:
        champion = next((v for v in list_versions(tracking, job) if CHAMPION in v.aliases), None)
        noted = NOBODY if champion is None else str(champion.version)
        tracking.client.set_model_version_tag(job, version, COMPARED_TAG, noted)
    return None if noted == NOBODY else find_version(tracking, job, noted)


def _describe(
    tracking: Tracking, selection: SelectionRecord, present: Sequence[Observation], record: ReviewRecord
) -> None:
    """Give the version a description that a person can decide from, and its run the errors compared."""
    slots, memory = [o.task_slots for o in present], [o.memory_mb for o in present]
    c = selection.coefficients
    phi = {"linear": "{}", "log": "log(1 + {})", "sqrt": "sqrt({})"}[selection.model]
    errors = ", ".join(f"{name} {error:,.0f}" for name, error in selection.loocv.items())
    lines = [
        f"MST = {c.memory:.6g} {phi.format('memory_mb')} + {c.slots:.6g} {phi.format('task_slots')} + {c.intercept:.6g}"
        f" records/s, fitted on {selection.observations} observations of {min(slots)} to {max(slots)} task slots and "
        f"{min(memory):,.0f} to {max(memory):,.0f} MiB (run {selection.run}).",
        f"Why this function: {selection.reason} Leave-one-out RMSE: {errors} records/s.",
        f"Review: {record.verdict}, since {record.reason}. The rule: {record.rule}.",
    ]
    tracking.client.update_model_version(selection.job, str(selection.model_version), description="\n\n".join(lines))
    for name, score in (("challenger", record.challenger), ("champion", record.champion)):
        if score is not None and score.rmse is not None:
            tracking.client.log_metric(selection.mlflow_run_id, f"held_out_rmse.{name}", score.rmse)
