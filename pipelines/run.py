"""One run of the pipeline: its request, its workspace, and its name."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Self, TypeVar

from pydantic import BaseModel

from models.cluster import Cluster, WorkerOffer
from models.errors import InvalidInput
from models.job import Job
from models.plan.content import Plan
from models.planning.resources import check_memory
from models.planning.workers.spending import check_prices_known
from models.schema import SCHEMA_VERSION, Format
from pipelines.inputs.catalogue import is_path, load_cluster_or_offer, load_job
from pipelines.inputs.job_files import JobFile
from pipelines.inputs.parsing.files import read_text
from pipelines.inputs.plan_request import PlanRequest
from pipelines.planning.partitions import PARTITIONS_FILE, SourcePartitions, read_partitions, with_partitions
from pipelines.progress import Progress, Quiet
from pipelines.store.digests import digest, digest_bytes
from pipelines.store.pins import check_unpinned
from pipelines.store.workspace import Workspace

if TYPE_CHECKING:
    from pipelines.inputs.programs import JobProgram

Output = TypeVar("Output", bound=BaseModel)


REQUEST_FILE: Final = "request.json"
OBSERVED_SAMPLES: Final = "observed.parquet"
"""Of a plan that was made from the running job: its samples."""
_STARTED_IN_FILE: Final = "started-in.json"


class StartedIn(Format):
    """Where a run was started; relative paths in its request begin there."""

    schema_version: Literal[1] = SCHEMA_VERSION
    folder: str


@dataclass(frozen=True)
class PipelineRun:
    """A request with the inputs of its stages."""

    request: PlanRequest
    workspace: Workspace
    progress: Progress = field(default_factory=Quiet)
    started_in: Path | None = None
    """The folder in which it was started, if it was opened by its stored request."""
    brokers: str | None = None
    """Kafka brokers to ask for the partitions of its sources' topics, in place of those of the job's file."""
    stored_partitions: SourcePartitions | None = None
    """What they said when it was started, if it was opened by its stored request."""

    @cached_property
    def job(self) -> Job:
        if self.request.testbed == "flink" and self.program is not None and self.program.operators_from_flink:
            from pipelines.measuring.flink import (  # needed only for jobs that Flink plans
                flink_address,
                planned_job,
            )

            if self.brokers is not None:
                raise InvalidInput(
                    "--kafka is for job files whose sources name topics; a program states their partitions"
                )
            address = flink_address(self.request.flink, self.cluster)
            return planned_job(self.program, self.workspace, self.progress, address, self.request.flink_version)
        return with_partitions(self._file, self.source_partitions)

    @cached_property
    def _file(self) -> JobFile:
        return load_job(self.job_path)

    @cached_property
    def source_partitions(self) -> SourcePartitions | None:
        """Partitions of the topics that sources read, as a broker said when the run was started; None if none was asked."""
        if self.started_in is not None and self.brokers is None:
            return self.stored_partitions
        return read_partitions(self._file, self.brokers)

    def again(self, request: PlanRequest) -> Self:
        """A run of another request with this one's files, which asks its brokers again."""
        stored = self.stored_partitions
        return replace(
            self, request=request, brokers=None if stored is None else stored.brokers, stored_partitions=None
        )

    @property
    def job_path(self) -> str:
        """The name of the job in the catalogue, or the path of its file."""
        return self._found(self.request.job)

    def _found(self, name: str) -> str:
        """A relative path that leads nowhere from here is one from where the run was started."""
        if self.started_in is None or not is_path(name) or Path(name).exists():
            return name
        there = self.started_in / name
        return str(there) if there.exists() else name

    @cached_property
    def program(self) -> "JobProgram | None":
        """The job's program on Flink; None for operators with stated costs."""
        from pipelines.inputs.programs import job_program

        return job_program(self.job_path, self.request.feed == "kafka")

    @cached_property
    def cluster(self) -> Cluster | WorkerOffer:
        """The workers to plan for, or the kinds that the plan picks from."""
        return load_cluster_or_offer(self._found(self.request.cluster))

    @cached_property
    def run_id(self) -> str:
        """The request's own name for the run, or a digest of all inputs of its result."""
        if self.request.run is not None:
            return self.request.run
        parts = [self.request, self.job, self.cluster, self.measurements_digest]
        if self.request.testbed == "flink" and self.program is not None and self.program.operators_from_flink:
            parts.append(self.program.digest)
        return digest(parts)[:12]

    @cached_property
    def measurements_digest(self) -> str:
        """SHA-256 of the measurements file; empty without one."""
        path = self.request.measurements
        return digest_bytes(read_text(Path(path)).encode()) if path else ""

    def key(self, *parts: str) -> str:
        """Workspace key of one of this run's artifacts."""
        return "/".join(["runs", self.job.name, self.run_id, *parts])

    def output(self, name: str, model: type[Output]) -> Output:
        """The output of an earlier stage of this run. Raises Missing if that has not run."""
        return self.workspace.read_output(self.key(name), model)

    def start(self) -> str:
        """Store the request in the workspace, so that every stage can be run from the returned URI alone.

        Raises PinnedJob if the job is pinned, and InvalidInput if the cluster's TaskManagers have less memory than was asked
        for, or no price where one is limited, before anything is measured.
        """
        if self.request.most_usd_per_hour is not None:
            check_prices_known(self.cluster)
        if self.request.memory_mb is not None:
            check_memory(self.request.memory_mb, self.cluster)
        check_unpinned(self.workspace, self.job.name)
        self.workspace.write(self.key(REQUEST_FILE), self.request)
        self.workspace.write(self.key(_STARTED_IN_FILE), StartedIn(folder=str(self.started_in or Path.cwd())))
        self._store_partitions()
        return self.workspace.uri(self.key(REQUEST_FILE))

    def _store_partitions(self) -> None:
        """Later stages and replans find what the broker said now."""
        if not isinstance(self.job, JobFile) or self.source_partitions is None:
            return
        self.workspace.write(self.key(PARTITIONS_FILE), self.source_partitions)
        for source, topics in self.source_partitions.topics.items():
            named = ", ".join(f"{topic} {count}" for topic, count in topics.items())
            self.progress.say(
                f"{source}: {sum(topics.values())} partitions at {self.source_partitions.brokers} ({named})"
            )

    @classmethod
    def of_plan(cls, workspace: Workspace, plan: Plan, progress: Progress | None = None) -> Self:
        """The run that made a plan. Raises Missing or Damaged if its request cannot be read."""
        return cls.open(workspace, cls.request_key(plan), progress)

    @staticmethod
    def request_key(plan: Plan) -> str:
        """Workspace key of the request of the run that made a plan."""
        return f"runs/{plan.job}/{plan.lineage.run}/{REQUEST_FILE}"

    @classmethod
    def at(cls, request_uri: str, progress: Progress | None = None) -> Self:
        """The run whose request has this URI, which `start` returned."""
        root, _, key = request_uri.rpartition("/runs/")
        return cls.open(Workspace(root), f"runs/{key}", progress)

    @classmethod
    def open(cls, workspace: Workspace, request_key: str, progress: Progress | None = None) -> Self:
        """The run whose request is stored under `request_key`."""
        request, run = workspace.read(request_key, PlanRequest), request_key.removesuffix(REQUEST_FILE)
        key, of_topics = run + _STARTED_IN_FILE, run + PARTITIONS_FILE
        folder = Path(workspace.read(key, StartedIn).folder) if workspace.exists(key) else None
        partitions = workspace.read(of_topics, SourcePartitions) if workspace.exists(of_topics) else None
        return cls(request, workspace, progress or Quiet(), folder, stored_partitions=partitions)
