"""Which testbed a run measures on, and how."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from models.capacity.mst import MstSettings
from models.cluster import Cluster, Worker
from models.errors import InvalidInput
from models.job import Job
from pipelines.catalogue import load_cluster, load_sql
from pipelines.estimate import mst_settings
from pipelines.flink import open_flink
from pipelines.measurements import read_measurements
from pipelines.run import PipelineRun
from testbeds.protocol import Testbed
from testbeds.recorded import Recorded
from testbeds.simulator import Simulator

TEST_CLUSTER: Final = "testbed"
FLINK_MST: Final = MstSettings(
    warmup_s=15.0, cooldown_s=5.0, ramp_s=5.0, observe_s=10.0, iterations=4, sensitivity=0.05, bracket=0.2
)
"""A search of 75 s: seconds are real on Flink, and buffers hold less than a second of what comes."""


@dataclass(frozen=True)
class Measuring:
    """How a job is measured on a kind of testbed."""

    mst: MstSettings
    profile_s: float
    """Time that a profile settles for, and then is taken for."""
    isolated: bool
    """Whether there are workers to profile each operator on one of its own (CAPSys section 5.1)."""
    as_file_says: bool
    """Whether the memory sizes in the job's file are meant for this testbed."""


def measuring(run: PipelineRun) -> Measuring:
    """How the run's job is measured on its testbed."""
    if run.request.testbed == "flink":
        return Measuring(FLINK_MST, profile_s=10.0, isolated=False, as_file_says=False)
    return Measuring(mst_settings(run.job), profile_s=60.0, isolated=True, as_file_says=True)


@contextmanager
def opened_testbed(run: PipelineRun) -> Iterator[Testbed]:
    """The testbed that the run's request names, for measurements of whole configurations; what it started is stopped.

    Raises:
        InvalidInput: the testbed has no live runs: a recorded one only has its observations.
    """
    match run.request.testbed:
        case "simulator":
            yield Simulator(load_cluster(TEST_CLUSTER))
        case "flink":
            with open_flink(load_sql(run.request.job), run.progress) as testbed:
                yield testbed
        case other:
            raise InvalidInput(f"the testbed {other!r} cannot be measured on; use 'simulator' or 'flink'")


def open_recorded(run: PipelineRun, measurements: Path) -> Recorded:
    """The observations of a measurements file, made on the test cluster."""
    observations = read_measurements(measurements, rows=run.request.measurement_rows, job=run.job)
    return Recorded(observations, load_cluster(TEST_CLUSTER))


@contextmanager
def opened_profiling_testbed(run: PipelineRun) -> Iterator[Testbed]:
    """The testbed for the profile: with a worker for each operator of the job, where those are to be had."""
    with opened_testbed(run) as testbed:
        yield Simulator(one_worker_each(run.job, testbed.cluster)) if measuring(run).isolated else testbed


def one_worker_each(job: Job, cluster: Cluster) -> Cluster:
    """As many workers like the cluster's first as the job has operators, sources included."""
    kind = cluster.workers[0]
    workers = [Worker(**{**kind.model_dump(), "name": f"profile-{o.name}"}) for o in job.operators]
    return Cluster(name=f"{cluster.name}-profiling", workers=tuple(workers))
