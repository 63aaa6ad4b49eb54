"""One run of the pipeline: what was asked, the workspace it leaves its artifacts in, and the name it goes by."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self, TypeVar

from pydantic import BaseModel, Field, model_validator

from models.cluster import Cluster
from models.job import Job
from models.schema import SCHEMA_VERSION, Format, Name, Positive, PositiveInt
from pipelines.catalogue import SQL_SUFFIX, load_cluster, load_job
from pipelines.digests import digest, digest_bytes
from pipelines.files import read_text
from pipelines.progress import Progress, Quiet
from pipelines.workspace import Workspace

if TYPE_CHECKING:
    from pipelines.programs import JobProgram

Output = TypeVar("Output", bound=BaseModel)


class PlanRequest(Format):
    """What a plan is asked for. The same request is the same run, and goes on where it was stopped."""

    schema_version: Literal[1] = SCHEMA_VERSION
    job: str = Field(description="Name of a job of the catalogue, or path of a job file, a program file or a SQL file.")
    rate: Positive = Field(description="Target rate, records/s at the sources together.")
    cluster: str = Field("production", description="Name of a cluster of the catalogue, or path of a cluster file.")
    testbed: Literal["simulator", "flink", "recorded"] = "simulator"
    # Left out where it is absent, so that runs of other requests keep their names.
    flink: str | None = Field(
        None,
        exclude_if=lambda named: named is None,
        description="Flink to measure on: the URL of its REST interface, or a cluster (file) that has one. If absent, "
        "the cluster that is planned for where it has one, else a Flink that Sluice starts.",
    )
    measurements: str | None = Field(None, description="Path of a measurements CSV, for the recorded testbed.")
    measurement_rows: PositiveInt | None = Field(None, description="Use only so many first rows of the measurements.")
    model: Literal["auto", "linear", "log", "sqrt"] = "auto"
    headroom: float = Field(1.1, ge=1.0, le=1000.0, description="Factor on the target rate that is planned for.")
    memory_mb: Positive | None = Field(
        None, description="TaskManager memory to plan with, MiB; the best one if absent."
    )
    max_task_slots: PositiveInt = Field(48, description="Most task slots that the exploration may use.")
    max_measurements: int = Field(20, ge=3, le=20, description="Most measurements after the four corners.")
    seed: int = Field(0, ge=0, lt=2**32, description="Of exploration and testbed; the same seed repeats the same run.")
    run: Name | None = Field(
        None,
        description="Name of the run; made from the request if absent. With that of an earlier run, what it measured serves "
        "another rate.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.testbed == "recorded") != (self.measurements is not None):
            raise ValueError("'measurements' must be given for the testbed 'recorded', and only there")
        if self.flink is not None and self.testbed != "flink":
            raise ValueError("'flink' must be given for the testbed 'flink' only")
        if self.job.endswith(SQL_SUFFIX) and self.testbed != "flink":
            raise ValueError("a SQL file can only be measured on the testbed 'flink', which knows what it does")
        return self


@dataclass(frozen=True)
class PipelineRun:
    """A request with everything a stage needs to serve it."""

    request: PlanRequest
    workspace: Workspace
    progress: Progress = field(default_factory=Quiet)

    @cached_property
    def job(self) -> Job:
        if self.request.testbed == "flink" and self.program is not None and self.program.operators_from_flink:
            from pipelines.flink import flink_address, planned_job  # needed only where Flink knows what the job is

            address = flink_address(self.request.flink, self.cluster)
            return planned_job(self.program, self.workspace, self.progress, address)
        return load_job(self.request.job)

    @cached_property
    def program(self) -> "JobProgram | None":
        """What the job runs as on Flink; None where it is operators with stated costs."""
        from pipelines.programs import job_program

        return job_program(self.request.job)

    @cached_property
    def cluster(self) -> Cluster:
        return load_cluster(self.request.cluster)

    @cached_property
    def run_id(self) -> str:
        """The request's own name for it, or a digest of all that the run's result depends on."""
        if self.request.run is not None:
            return self.request.run
        parts = [self.request, self.job, self.cluster, self.measurements_digest]
        if self.request.testbed == "flink" and self.program is not None and self.program.operators_from_flink:
            parts.append(self.program.digest)
        return digest(parts)[:12]

    @cached_property
    def measurements_digest(self) -> str:
        """Of the content of the measurements file; empty where there is none."""
        path = self.request.measurements
        return digest_bytes(read_text(Path(path)).encode()) if path else ""

    def key(self, *parts: str) -> str:
        """Workspace key of one of this run's artifacts."""
        return "/".join(["runs", self.job.name, self.run_id, *parts])

    def output(self, name: str, model: type[Output]) -> Output:
        """What an earlier stage of this run kept under a name. Raises Missing where it has not run."""
        return self.workspace.read_output(self.key(name), model)

    def start(self) -> str:
        """Keep the request in the workspace, so that every stage can be run from the returned URI alone."""
        self.workspace.write(self.key("request.json"), self.request)
        return self.workspace.uri(self.key("request.json"))

    @classmethod
    def open(cls, workspace: Workspace, request_key: str, progress: Progress | None = None) -> Self:
        """The run whose request was kept under `request_key`."""
        return cls(workspace.read(request_key, PlanRequest), workspace, progress or Quiet())
