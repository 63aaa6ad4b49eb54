"""The record of an application of a plan: what was changed on Flink, the outcome, and the observed effect."""

from collections.abc import Collection
from typing import Final, Literal

from pydantic import Field

from models.schema import SCHEMA_VERSION, Format, Name, NonNegative, Positive, PositiveInt, Ratio
from models.wording import amount

LEAST_RATE: Final = 0.9
"""Share of the previous rate below which a job counts as worse off."""
MOST_BACKPRESSURE: Final = 0.1
"""Backpressure of the sources up to which a lower rate means that fewer records arrived."""

Method = Literal["none", "rescale", "restart", "redeploy", "merge"]
Outcome = Literal["applied", "unchanged", "rolled-back", "not-merged", "failed"]
NOT_APPLIED: Final[tuple[Outcome, ...]] = ("rolled-back", "not-merged", "failed")


class VertexChange(Format):
    """A vertex of the job, and its tasks before and in the plan."""

    vertex: str = Field(description="Flink's id of the vertex.")
    name: str = Field(description="Flink's name of the vertex.")
    operators: tuple[Name, ...] = Field(description="The plan's operators in it: several where Flink chained them.")
    before: PositiveInt | None = Field(
        description="Its tasks before; null where a FlinkDeployment does not state them and Flink was not asked."
    )
    after: PositiveInt = Field(description="Its tasks in the plan.")


class VertexEffect(Format):
    """A vertex in the observation window, and the plan's predictions."""

    operators: tuple[Name, ...] = Field(description="The plan's operators in it.")
    records_in_per_s: NonNegative | None = Field(description="Input of all its tasks; output of a source.")
    expected_records_in_per_s: NonNegative | None = Field(description="Prediction at the rate reached.")
    busyness: Ratio | None = Field(description="Mean of its tasks; null where Flink reports none.")
    expected_busyness: Ratio | None = Field(description="Prediction at the rate reached.")
    backpressure: Ratio | None = Field(description="Mean share of time in which its tasks could not emit.")


class Effect(Format):
    """The job after a plan was applied."""

    window_s: Positive = Field(description="How long it was observed.")
    rate: NonNegative | None = Field(description="Records/s at the sources together; null where Flink reports none.")
    rate_before: NonNegative | None = Field(
        None, description="The same before the plan was applied, if it was observed."
    )
    target_rate: Positive = Field(description="Target rate of the plan, records/s at the sources together.")
    vertices: tuple[VertexEffect, ...] = Field(description="In topological order.")


def harm(before: Effect, after: Effect, sources: Collection[str]) -> str | None:
    """Why a job is worse off than before; None if it is not, or if that is unknown.

    It is worse off if its sources emit less and are backpressured, so that they could emit more.
    """
    was, is_ = (_backpressure(effect, sources) for effect in (before, after))
    if before.rate is None or after.rate is None or was is None or is_ is None:
        return None
    if after.rate >= LEAST_RATE * before.rate or is_ <= MOST_BACKPRESSURE:
        return None
    return (
        f"the plan made it worse: {amount(after.rate)} records/s after {amount(before.rate)} before, with the sources "
        f"backpressured {is_:.0%} of the time after {was:.0%}"
    )


def compared(before: Effect | None, after: Effect | None, sources: Collection[str]) -> tuple[Effect | None, str | None]:
    """The effect with the rate before, and why the job is worse off; both as far as the job was observed."""
    if before is None or after is None:
        return after, None
    return after.model_copy(update={"rate_before": before.rate}), harm(before, after, sources)


def _backpressure(effect: Effect, sources: Collection[str]) -> float | None:
    """The highest backpressure of a source."""
    shares = [v.backpressure for v in effect.vertices if not set(v.operators).isdisjoint(sources)]
    known = [share for share in shares if share is not None]
    return max(known) if known and len(known) == len(shares) else None


class ProposedReturn(Format):
    """A branch that takes a merged plan back."""

    branch: str = Field(description="Branch of that repository, to be merged by a person.")
    commit: str = Field(description="Its commit.")
    reverts: str = Field(description="Commit of the branch that is deployed, which brought the plan.")


class Applied(Format):
    """One application of one version of a plan."""

    schema_version: Literal[1] = Field(SCHEMA_VERSION, description="Version of this format.")
    job: Name = Field(description="Job of the plan.")
    version: PositiveInt = Field(description="Version of the plan.")
    plan_digest: str = Field(description="SHA-256, in hex, of the plan's canonical JSON.")
    flink_url: str | None = Field(
        description="REST address of the cluster, without any password; null where Flink was not asked."
    )
    resource: str | None = Field(
        None, description="The FlinkDeployment that was changed, NAMESPACE/NAME; null where Flink was changed itself."
    )
    repository: str | None = Field(
        None,
        description="The file in a git repository that the plan was merged into, REPOSITORY BRANCH:PATH; null where the job is "
        "not deployed from one.",
    )
    commit: str | None = Field(
        None, description="A commit of that branch that has the plan; null where it was not merged, or has gone again."
    )
    flink_job: str | None = Field(
        description="Flink's id of the job, after the application; null where the operator does not report it, or the job was "
        "not found."
    )
    proposed_at: str | None = Field(
        None, description="When the plan was written into a branch of that repository, ISO 8601, UTC."
    )
    started_at: str = Field(
        description="ISO 8601, UTC; through a repository: when the merge was seen, or the proposal where it was not."
    )
    seconds: NonNegative = Field(
        description="Time from then until the plan ran and was verified, or the previous state ran again, or the wait was over."
    )
    flinks_rescale_s: NonNegative | None = Field(
        None,
        description="Time of the rescale in Flink's own history, from the request to the running tasks; null where Flink "
        "keeps none (before 2.3, or web.adaptive-scheduler.rescale-history.size is 0).",
    )
    method: Method = Field(
        description="How tasks were changed: in the running job, by a restart, by the operator's redeployment of the job, by a "
        "merge into the repository that it is deployed from, or not at all."
    )
    placement: Literal["as-planned", "advice"] = Field(
        description="Whether tasks run where the plan places them; 'advice' if they could not be placed."
    )
    outcome: Outcome = Field(
        description="'failed': neither the plan nor the previous state runs; after a merge: the plan does not, or it made the "
        "job worse. 'not-merged': the repository's branch does not have the plan, and the job was not changed."
    )
    reason: str = Field(description="How it ended, in words.")
    changes: tuple[VertexChange, ...] = Field(description="All vertices that the plan knows.")
    advice: tuple[str, ...] = Field((), description="Parts of the plan that were not done.")
    effect: Effect | None = Field(None, description="Null without an observation.")
    proposed_return: ProposedReturn | None = Field(
        None, description="How to take a merged plan back that failed; null where none did, or 'reason' says why not."
    )
    approved_by: str | None = Field(
        None,
        description="Who approved the steps; null if the job's file needs no approval, or a person gave the command.",
    )
