"""What a simulated cluster takes of a job, measured there: the peak of the patterns and the first deployment follow it.

Nominal costs leave out skew, bursts, contention and cache misses, so a share of the nominal rate overloads some jobs and
bores others. Measured is the highest rate of which a deployment on all slots reads a share READ, by bisection between what
it reads of an overload and that overload; an overload alone shows too little where windows keep what arrives meanwhile.
The slots are divided by BIDS2, first by nominal costs, then by those measured under the overload.

The machines are the mean ones (no `noise.run`), so the result does not depend on a seed.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from models.capacity.bids2 import bids2
from models.capacity.observation import OperatorRates
from models.cluster import Cluster
from models.job import Job, records_in_per_source_record
from models.scaling.limits import most_tasks
from models.scaling.provision import sustainable_rate
from testbeds.protocol import Configuration, Served
from testbeds.simulator import Simulator
from testbeds.simulator.settings import Noise, Physics

OVERLOAD: Final = 1.3
"""Over the rate that nominal costs let the slots take."""
READ: Final = 0.98
BISECTIONS: Final = 5
WARM_UP_S: Final = 120.0
MEASURED_S: Final = 120.0
_SEED: Final = 1


@dataclass(frozen=True)
class ClusterCapacity:
    """Of a job on all slots of a cluster."""

    rate: float
    """Highest rate of the sources together that is read, records/s."""
    cost_s: Mapping[str, float]
    """Of each operator, useful time of its busiest task per record of a task's mean, seconds: skew counts as cost."""


def measured_capacity(job: Job, cluster: Cluster, memory_mb: float, managed_memory_mb: float) -> ClusterCapacity:
    """Measure the job, once in this process for each job and cluster.

    Args:
        memory_mb: of a TaskManager, MiB.
        managed_memory_mb: of a task, MiB.

    Raises:
        Infeasible: fewer slots than operators.
    """
    return _measured(
        job.model_dump_json(by_alias=True), cluster.model_dump_json(by_alias=True), memory_mb, managed_memory_mb
    )


@functools.lru_cache(maxsize=256)
def _measured(job_json: str, cluster_json: str, memory_mb: float, managed_memory_mb: float) -> ClusterCapacity:
    job, cluster = Job.model_validate_json(job_json), Cluster.model_validate_json(cluster_json)
    testbed = Simulator(cluster, physics=Physics(noise=Noise(run=0.0)))
    managed = {o.name: managed_memory_mb for o in job.operators}

    def serve(rate: float, cost_s: Mapping[str, float]) -> Served:
        tasks = _divided(job, cluster.slots, cost_s)
        wanted = Configuration(parallelism=tasks, memory_mb=memory_mb, managed_memory_mb=managed)
        with testbed.deploy(job, wanted, run="capacity", seed=_SEED) as run:
            run.serve(rate, WARM_UP_S)
            return run.serve(rate, MEASURED_S)

    high = OVERLOAD * sustainable_rate(job, cluster.slots)
    cost_s: Mapping[str, float] = {o.name: o.cost.thread_s for o in job.operators}
    cost_s = _costs(serve(high, cost_s), cost_s)
    at_low = serve(high, cost_s)
    low = _read(at_low)
    for _ in range(BISECTIONS):
        rate = float(np.sqrt(low * high))
        served = serve(rate, cost_s)
        if _read(served) >= READ * rate:
            low, at_low = rate, served
        else:
            high = rate
    return ClusterCapacity(low, _costs(at_low, cost_s))


def _divided(job: Job, slots: int, cost_s: Mapping[str, float]) -> dict[str, int]:
    """All slots, so that the load of all tasks is even."""
    ratio, most = records_in_per_source_record(job), most_tasks(job)
    operators = [
        OperatorRates(name=o.name, true_rate_per_task=1 / cost_s[o.name], records_in_per_source_record=ratio[o.name])
        for o in job.operators
    ]
    usable = sum(most.get(o.name, slots) for o in job.operators)
    return bids2(operators, min(slots, usable), most).parallelism


def _read(served: Served) -> float:
    return float(np.sum(served.read)) / served.seconds


def _costs(served: Served, otherwise: Mapping[str, float]) -> dict[str, float]:
    """Costs as measured; those of `otherwise` where an operator did nothing."""
    found = dict(otherwise)
    for name, done in served.activity.items():
        records = float(np.sum(done.records_in))
        if records > 0 and np.any(done.busy_s > 0):
            found[name] = float(np.max(done.busy_s)) * len(done.busy_s) / records
    return found
