"""The record of an application of a plan: what was changed on Flink, the outcome, and the observed effect."""

from collections.abc import Collection
from typing import Final, Literal

from pydantic import Field

from models.schema import SCHEMA_VERSION, Format, Name, NonNegative, Positive, PositiveInt, Ratio

LEAST_RATE: Final = 0.9
"""Of the rate before, that a job must reach for it not to be worse off."""
MOST_BACKPRESSURE: Final = 0.1
"""Of the sources, up to which a lower rate means that less was offered."""

Method = Literal["none", "rescale", "restart"]
Outcome = Literal["applied", "unchanged", "rolled-back", "failed"]


class VertexChange(Format):
    """A vertex of the job, and how many tasks it gets."""

    vertex: str = Field(description="Flink's id of it.")
    name: str = Field(description="Flink's name of it.")
    operators: tuple[Name, ...] = Field(description="The plan's operators in it: several where Flink chained them.")
    before: PositiveInt = Field(description="Its tasks before.")
    after: PositiveInt = Field(description="Its tasks in the plan.")


class VertexEffect(Format):
    """What a vertex did in the observation window, beside what the plan predicts."""

    operators: tuple[Name, ...] = Field(description="The plan's operators in it.")
    records_in_per_s: NonNegative | None = Field(description="Input of all its tasks; of a source what it emitted.")
    expected_records_in_per_s: NonNegative | None = Field(description="Predicted, at the rate that was reached.")
    busyness: Ratio | None = Field(description="Mean of its tasks; null where Flink reports none.")
    expected_busyness: Ratio | None = Field(description="Predicted, at the rate that was reached.")
    backpressure: Ratio | None = Field(description="Share of time in which its tasks could not emit, mean.")


class Effect(Format):
    """What the job did after a plan was applied."""

    window_s: Positive = Field(description="How long it was observed.")
    rate: NonNegative | None = Field(description="Records/s at the sources together; null where Flink reports none.")
    rate_before: NonNegative | None = Field(None, description="The same before the plan was applied, if that was seen.")
    target_rate: Positive = Field(description="What the plan is for, records/s at the sources together.")
    vertices: tuple[VertexEffect, ...] = Field(description="In topological order.")


def harm(before: Effect, after: Effect, sources: Collection[str]) -> str | None:
    """Why a job is worse off than before; None if it is not, or if that is unknown.

    It is if its sources emit less although they would emit more: they are backpressured.
    """
    was, is_ = (_backpressure(effect, sources) for effect in (before, after))
    if before.rate is None or after.rate is None or was is None or is_ is None:
        return None
    if after.rate >= LEAST_RATE * before.rate or is_ <= MOST_BACKPRESSURE:
        return None
    return (
        f"the plan made it worse: {after.rate:,.0f} records/s after {before.rate:,.0f} before, with the sources "
        f"backpressured {is_:.0%} of the time after {was:.0%}"
    )


def _backpressure(effect: Effect, sources: Collection[str]) -> float | None:
    """That of the source which suffers most."""
    shares = [v.backpressure for v in effect.vertices if not set(v.operators).isdisjoint(sources)]
    known = [share for share in shares if share is not None]
    return max(known) if known and len(known) == len(shares) else None


class Applied(Format):
    """One application of one version of a plan."""

    schema_version: Literal[1] = Field(SCHEMA_VERSION, description="Version of this format.")
    job: Name = Field(description="Job of the plan.")
    version: PositiveInt = Field(description="Version of the plan.")
    plan_digest: str = Field(description="SHA-256, in hex, of the plan's canonical JSON.")
    flink_url: str = Field(description="REST address of the cluster, without any password.")
    flink_job: str = Field(description="Flink's id of the job, after the application.")
    started_at: str = Field(description="ISO 8601, UTC.")
    seconds: NonNegative = Field(description="Until the plan ran and that was verified, or the state before did again.")
    method: Method = Field(description="How tasks were changed: in the running job, by a restart, or not at all.")
    placement: Literal["as-planned", "advice"] = Field(
        description="Whether tasks run where the plan says; 'advice' where that could only be advised."
    )
    outcome: Outcome = Field(description="'failed': neither the plan nor what ran before runs now.")
    reason: str = Field(description="How it ended, in words.")
    changes: tuple[VertexChange, ...] = Field(description="All vertices that the plan knows.")
    advice: tuple[str, ...] = Field((), description="What the plan asks for and was not done.")
    effect: Effect | None = Field(None, description="Null where nothing was observed.")
    approved_by: str | None = Field(
        None,
        description="Who approved the steps; null where the job's file allows it alone, or a person gave the command.",
    )
