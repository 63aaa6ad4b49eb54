"""Whether and how new plans are applied to a running job: the block `operations.apply` of its file."""

from typing import Literal

from pydantic import Field, model_validator

from flink_client.address import Address
from models.schema import Format, Name, NonNegative, Positive
from pipelines.inputs.operations.repository import DeploymentRepository


class Applying(Format):
    """Whether and how new plans are applied to a running Flink job."""

    mode: Literal["never", "approved", "alone"] = Field(
        "never", description="'approved': after a person has approved the steps; 'alone': without."
    )
    flink: Address | None = Field(
        None,
        description="REST address of the cluster, or connection:NAME; must be given unless mode is 'never'.",
    )
    job: str | None = Field(
        None, min_length=1, max_length=250, description="Flink's name or id of the job; default: the name of this job."
    )
    export: Literal["overrides", "requirements", "flinkdeployment"] | None = Field(
        None,
        description="Write these settings beside the plan, for the job's own deployment, instead of changing the job by REST.",
    )
    repository: DeploymentRepository | None = Field(
        None,
        description="The git repository that the job is deployed from: plans are written into a branch of it, and the cluster "
        "is not changed.",
    )
    program: Name | None = Field(
        None,
        description="File beside this one with the program to restart, if the cluster's scheduler cannot change a running "
        "job.",
    )
    timeout_s: Positive = Field(
        120.0, le=3600, description="Time for the plan to run, before the previous state is restored, seconds."
    )
    observe_s: NonNegative = Field(
        60.0, le=3600, description="How long its effect is observed, seconds; 0: not at all."
    )
    approval_s: Positive = Field(86400.0, description="How long to wait for an approval, seconds.")

    @model_validator(mode="after")
    def _check(self) -> "Applying":
        if self.mode != "never" and self.flink is None:
            raise ValueError(f"with mode {self.mode!r}, 'flink' must be the cluster's REST address")
        if self.repository is not None and (self.export is not None or self.program is not None):
            raise ValueError(
                "'export' and 'program' are for jobs without a 'repository', through which a plan is written and deployed; "
                "leave them out"
            )
        return self
