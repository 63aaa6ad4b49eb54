"""Which testbed a run measures on."""

from pathlib import Path

from models.cluster import Cluster, Worker
from models.errors import InvalidInput
from models.job import Job
from pipelines.catalogue import load_cluster
from pipelines.measurements import read_measurements
from pipelines.run import PipelineRun
from testbeds.protocol import Testbed
from testbeds.recorded import Recorded
from testbeds.simulator import Simulator

TEST_CLUSTER = "testbed"


def open_testbed(run: PipelineRun) -> Testbed:
    """The testbed that the run's request names, for measurements of whole configurations.

    Raises:
        InvalidInput: the testbed has no live runs: a recorded one only has its observations.
    """
    if run.request.testbed != "simulator":
        raise InvalidInput(f"the testbed {run.request.testbed!r} cannot be measured on; use 'simulator'")
    return Simulator(load_cluster(TEST_CLUSTER))


def open_recorded(run: PipelineRun, measurements: Path) -> Recorded:
    """The observations of a measurements file, made on the test cluster."""
    observations = read_measurements(measurements, rows=run.request.measurement_rows, job=run.job)
    return Recorded(observations, load_cluster(TEST_CLUSTER))


def open_profiling_testbed(run: PipelineRun) -> Testbed:
    """A testbed with a worker for each operator of the job (CAPSys section 5.1), of the testbed's kind."""
    testbed = open_testbed(run)
    return Simulator(one_worker_each(run.job, testbed.cluster))


def one_worker_each(job: Job, cluster: Cluster) -> Cluster:
    """As many workers like the cluster's first as the job has operators, sources included."""
    kind = cluster.workers[0]
    workers = [Worker(**{**kind.model_dump(), "name": f"profile-{o.name}"}) for o in job.operators]
    return Cluster(name=f"{cluster.name}-profiling", workers=tuple(workers))
