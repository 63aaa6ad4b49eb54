"""The waits that samples show of jobs whose costs are known: tasks of `call` want more than the one core of their worker."""

from itertools import pairwise

import pyarrow as pa
import pytest

from models.capacity.observation import Observation
from models.cluster import Cluster, Worker
from models.job import Cost, Job
from pipelines.stages.profile import PROFILE_SHARE
from pipelines.twin.seen import MeasuredRun, SeenOn, seen_of, waits_seen
from testbeds.protocol import Configuration
from testbeds.simulator import Physics, Simulator

MEMORY_MB = 8192.0
TASKS = 7
ON = Cluster.model_validate({"name": "one", "count": 1, "slots": 8, "cores": 1, "memory_mb": MEMORY_MB})
WORKERS = pytest.mark.parametrize(
    "worker", [ON.workers[0], ON.workers[0].model_copy(update={"cores": None})], ids=["stated", "seen in use"]
)
"""With its cores as the cluster's file states them, and without."""
SPREAD = 0.15
"""Three standard deviations of a run, by which the CPU time of one deployment differs from that of another."""


def job(wait_s: float) -> Job:
    """A call of 2 ms CPU time."""
    costs = {
        "source": Cost(cpu_s=1e-6, bytes_out=100),
        "call": Cost(cpu_s=2e-3, external_wait_s=wait_s, bytes_out=100),
        "sink": Cost(cpu_s=1e-5),
    }
    kinds = {"source": "source", "call": "operator", "sink": "sink"}
    names = list(costs)
    return Job.model_validate(
        {
            "name": "calls",
            "description": "Calls a service.",
            "figures_from": "set by hand",
            "operators": [
                {"name": name, "kind": kinds[name], "cost": cost, "figures_from": "set by hand"}
                for name, cost in costs.items()
            ],
            "edges": [{"from": a, "to": b, "partitioning": "rebalance"} for a, b in pairwise(names)],
        }
    )


def measured(job: Job, rate: float, tasks: int = TASKS, rates_too_high: bool = True) -> pa.Table:
    """Samples of a warm-up with far more records than the job takes, and of a minute at a rate."""
    physics = Physics().model_copy(update={"cold_slowdown": 0.0})
    testbed, run = Simulator(ON, physics=physics), f"r{rate:.0f}"
    with testbed.deploy(job, Configuration({"source": 1, "call": tasks, "sink": 1}, MEMORY_MB), run=run, seed=7) as on:
        windows = [on.inject(1e5, 60, "warmup")] if rates_too_high else []
        windows += [on.inject(rate, 30, "ramp"), on.inject(rate, 60, "observe" if rates_too_high else "profile")]
    return pa.concat_tables([w.samples for w in windows])


def seen(job: Job, rates: tuple[float, ...], profiled: float, worker: Worker) -> tuple[dict[str, float], float]:
    """Waits of a record of each operator, and CPU time of a call, as seen at these rates and in the profile."""
    runs = [
        MeasuredRun(
            Observation(
                run=f"r{rate:.0f}",
                task_slots=TASKS + 1,
                memory_mb=MEMORY_MB,
                parallelism={"source": 1, "call": TASKS, "sink": 1},
                mst=rate,
            ),
            measured(job, rate),
        )
        for rate in rates
    ]
    on = SeenOn(worker, None if worker.cores is None else {"tm-1"}, 8, Physics())
    waits = waits_seen(job, runs, measured(job, profiled, tasks=1, rates_too_high=False), on)
    return waits, seen_of(job, runs, on, waits=waits)["call"].cpu_s


@WORKERS
def test_a_wait_is_seen_where_the_core_is_free_though_it_is_full_at_the_capacity(worker: Worker) -> None:
    # Seven tasks of 10 ms a record ask for 1.4 cores: 500 records/s. One takes 100 records/s, profiled at half of that.
    waits, cpu_s = seen(job(0.008), rates=(490.0, 495.0), profiled=PROFILE_SHARE * 100, worker=worker)
    assert waits == {"source": 0.0, "call": pytest.approx(0.008, rel=SPREAD), "sink": 0.0}
    assert cpu_s == pytest.approx(0.002, rel=SPREAD)


@WORKERS
def test_a_job_that_lacks_cores_does_not_wait(worker: Worker) -> None:
    # Seven tasks want seven cores, and are busy for 14 ms a record at 500 records/s. One takes as many, profiled at half.
    waits, cpu_s = seen(job(0.0), rates=(600.0, 700.0), profiled=PROFILE_SHARE * 500, worker=worker)
    assert waits == {"source": 0.0, "call": 0.0, "sink": 0.0}
    assert cpu_s == pytest.approx(0.002, rel=SPREAD)
