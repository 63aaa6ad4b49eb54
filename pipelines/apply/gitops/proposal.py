"""A plan that was written into a branch and waits for its merge, stored beside it: plans/<job>/v000002-proposed-000001.json."""

from datetime import datetime, timedelta
from typing import Literal

from pydantic import Field

from models.schema import SCHEMA_VERSION, Format, Name, NonNegative, Positive, PositiveInt
from pipelines.apply.applied import Effect, VertexChange
from pipelines.apply.gitops.stated import StatedPlan


class Proposal(Format):
    """A plan in a branch of the repository that its job is deployed from."""

    schema_version: Literal[1] = Field(SCHEMA_VERSION, description="Version of this format.")
    job: Name = Field(description="Job of the plan.")
    version: PositiveInt = Field(description="Version of the plan.")
    plan_digest: str = Field(description="SHA-256, in hex, of the plan's canonical JSON.")
    repository: str = Field(description="The repository, without credentials.")
    path: str = Field(description="The file in it.")
    target: str = Field(description="Branch that is deployed.")
    branch: str = Field(description="Branch that the plan was written into.")
    commit: str | None = Field(
        description="Commit that wrote it; null where the branch, or the target itself, had the plan already."
    )
    wanted: StatedPlan = Field(description="What the file states with the plan.")
    before: StatedPlan | None = Field(description="What it stated in the target then; null where there was no file.")
    changes: tuple[VertexChange, ...] = Field(description="All vertices that the plan knows, as Flink ran them then.")
    running: dict[str, PositiveInt] = Field(description="Tasks by vertex id that are awaited after the merge.")
    observed: Effect | None = Field(
        None, description="The job before the plan; null where it was not observed, or the target had the plan already."
    )
    advice: tuple[str, ...] = Field((), description="Parts of the plan that the file does not state.")
    flink: str = Field(description="REST address of the cluster, or connection:NAME.")
    flink_job: str = Field(description="Flink's name or id of the job.")
    proposed_at: str = Field(description="ISO 8601, UTC.")
    look_every_s: Positive = Field(description="Time between two looks for the merge, seconds.")
    merge_s: Positive = Field(description="How long the merge is waited for, seconds.")
    deploy_s: Positive = Field(description="Time from the merge until the job runs as planned, seconds.")
    observe_s: NonNegative = Field(description="How long the job is observed then, seconds; 0: not at all.")
    approved_by: str | None = Field(None, description="Who approved the steps; null if no approval is needed.")

    @property
    def is_stated(self) -> bool:
        """Whether the target had the plan already, so that no merge is needed."""
        return self.before is not None and self.before.includes(self.wanted)

    @property
    def begun(self) -> datetime:
        return datetime.fromisoformat(self.proposed_at)

    @property
    def until(self) -> datetime:
        """When the wait for the merge ends."""
        return self.begun + timedelta(seconds=self.merge_s)
