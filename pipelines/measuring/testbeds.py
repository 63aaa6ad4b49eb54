"""The testbed of a run, and how it is measured on."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from models.capacity.mst import MstSettings
from models.cluster import Cluster, Worker
from models.errors import InvalidInput
from models.job import Job
from pipelines.inputs.catalogue import load_cluster
from pipelines.inputs.measurements import read_measurements
from pipelines.inputs.plan_request import DEFAULT_BACKEND, DEFAULT_FLINK
from pipelines.measuring.estimate import SHORT, mst_settings
from pipelines.measuring.flink import flink_address, opened_flink
from pipelines.run import PipelineRun
from pipelines.store.digests import digest
from testbeds.protocol import Testbed
from testbeds.recorded import Recorded
from testbeds.simulator import Simulator

TEST_CLUSTER: Final = "testbed"


@dataclass(frozen=True)
class _Kept:
    """Testbeds kept open."""

    opened: ExitStack
    by_run: dict[str, Testbed] = field(default_factory=dict)


_KEPT: ContextVar[_Kept | None] = ContextVar("testbeds kept open", default=None)


@dataclass(frozen=True)
class Measuring:
    """How a job is measured on a kind of testbed."""

    mst: MstSettings
    deployment_s: float
    """Time from one configuration to the next, seconds; what the choice of measurements takes a deployment to cost."""
    profile_s: float
    """Times for settling and for taking the profile, seconds."""
    isolated: bool
    """Whether there are enough workers to profile each operator on its own one (CAPSys section 5.1)."""
    as_file_says: bool
    """Whether the memory sizes in the job's file apply to this testbed."""
    by_drain: bool = False
    """Whether a job is offered more than it takes, in place of a search."""

    @property
    def longest_s(self) -> float:
        """Of measuring an MST, seconds; a drain takes two windows as a rule."""
        return self.mst.warmup_s + 2 * self.mst.observe_s if self.by_drain else self.mst.longest_s


def measuring(run: PipelineRun) -> Measuring:
    """How the run's job is measured on its testbed."""
    if run.request.testbed == "flink":
        by_drain = run.request.drains
        # A job that reads topics is compiled and falls behind before it is measured.
        deployment_s = 60.0 if run.request.feed == "kafka" else 15.0
        return Measuring(SHORT, deployment_s, profile_s=10.0, isolated=False, as_file_says=False, by_drain=by_drain)
    # StreamBed's searches of 645 s took some 13 minutes with their deployment (RQ4).
    return Measuring(mst_settings(run.job), deployment_s=135.0, profile_s=60.0, isolated=True, as_file_says=True)


def measuring_inputs(run: PipelineRun) -> dict[str, str]:
    """Digests of the inputs of every measurement of the run. The rate is not among them: measurements serve runs of the same
    name at any rate.
    """
    on_flink = run.request.testbed == "flink"
    address = flink_address(run.request.flink, run.cluster) if on_flink else None
    program = run.program.digest if on_flink and run.program is not None else ""
    measured_on = [run.request.testbed, address, program, run.request.seed]
    if run.request.flink_version != DEFAULT_FLINK:
        measured_on.append(run.request.flink_version)
    if run.request.drains:
        measured_on.append("drain")
    if run.request.state_backend != DEFAULT_BACKEND:
        measured_on.append(run.request.state_backend)
    return {"job": digest(run.job), "testbed": digest(measured_on)}


@contextmanager
def kept_open() -> Iterator[None]:
    """Keep testbeds open between stages while the block runs, so that a cluster is started and warmed up once."""
    with ExitStack() as opened:
        token = _KEPT.set(_Kept(opened))
        try:
            yield
        finally:
            _KEPT.reset(token)


@contextmanager
def opened_testbed(run: PipelineRun) -> Iterator[Testbed]:
    """The testbed of the request, for measurements of whole configurations; stopped afterwards, within `kept_open` at its end.

    Raises:
        InvalidInput: the testbed has no live runs: a recorded one only has its observations.
    """
    kept = _KEPT.get()
    if kept is None:
        with _opened(run) as testbed:
            yield testbed
        return
    if run.run_id not in kept.by_run:
        kept.by_run[run.run_id] = kept.opened.enter_context(_opened(run))
    yield kept.by_run[run.run_id]


@contextmanager
def _opened(run: PipelineRun) -> Iterator[Testbed]:
    """
    Raises:
        InvalidInput: the testbed has no live runs: a recorded one only has its observations.
    """
    match run.request.testbed:
        case "simulator":
            yield Simulator(load_cluster(TEST_CLUSTER))
        case "flink":
            program = None if run.program is None else run.program.program
            address = flink_address(run.request.flink, run.cluster)
            version, backend = run.request.flink_version, run.request.state_backend
            with opened_flink(program, run.progress, address, version, backend) as testbed:
                yield testbed
        case other:
            raise InvalidInput(f"the testbed {other!r} cannot be measured on; use 'simulator' or 'flink'")


def open_recorded(run: PipelineRun, measurements: Path) -> Recorded:
    """The observations of a measurements file, made on the test cluster."""
    observations = read_measurements(measurements, rows=run.request.measurement_rows, job=run.job)
    return Recorded(observations, load_cluster(TEST_CLUSTER))


@contextmanager
def opened_profiling_testbed(run: PipelineRun) -> Iterator[Testbed]:
    """The testbed for the profile: with a worker for each operator of the job, if it has them."""
    with opened_testbed(run) as testbed:
        yield Simulator(one_worker_each(run.job, testbed.cluster)) if measuring(run).isolated else testbed


def one_worker_each(job: Job, cluster: Cluster) -> Cluster:
    """A worker like the cluster's first for each operator of the job, sources included."""
    kind = cluster.workers[0]
    workers = [Worker(**{**kind.model_dump(), "name": f"profile-{o.name}"}) for o in job.operators]
    return Cluster(name=f"{cluster.name}-profiling", workers=tuple(workers))
