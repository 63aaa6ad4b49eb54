"""Computing one cell: from plain data to plain data, without I/O.

`run_cell` is what every runner maps over cells: the processes of `pipelines.arena.grid`, or a Spark job.
"""

import math
from collections.abc import Mapping
from functools import partial
from typing import Final

from models.cluster import Cluster
from models.dataflow import Dataflow, Partitioning
from models.errors import Infeasible
from models.job import Job, records_in_per_source_record
from models.keys.groups import key_groups
from models.placement import place
from models.plan.parts import Placement
from models.planning.physical.expansion import catalogue_unit_costs, expand
from models.resources.memory import managed_memory_per_slot_mb
from models.scaling.limits import most_tasks, within
from models.scaling.policies import make_policy
from models.scaling.provision import provision
from pipelines.arena.replays.capacity import ClusterCapacity, measured_capacity
from pipelines.arena.replays.cell import Cell, CellResult
from pipelines.arena.replays.metrics import FlinkMetrics
from pipelines.arena.replays.outcome import outcome, table
from pipelines.arena.replays.replay import Start, replay
from pipelines.arena.request import RescaleMode, StartSize
from testbeds.simulator import Simulator
from testbeds.simulator.settings import IN_PLACE, REDEPLOYED, REDEPLOYED_COLD_DECAY_S, Physics

DEFAULT_MEMORY_MB: Final = 4096.0
"""TaskManager memory where the cluster does not limit it (evaluation of autoscalers, section 6.1), MiB."""
PHYSICS: Final[dict[RescaleMode, Physics]] = {
    "in-place": Physics(rescaling=IN_PLACE),
    "savepoint": Physics(),
    "redeploy": Physics(rescaling=REDEPLOYED, cold_decay_s=REDEPLOYED_COLD_DECAY_S),
}
SIZE: Final[dict[StartSize, float]] = {"well": 1.0, "under": 0.5, "over": 2.0}
"""Initial tasks over those that the first rate needs."""


def run_cell(cell: Cell) -> CellResult:
    """Replay the cell's workload on the simulator.

    The job starts with the tasks that its measured costs ask for at the first rate (`models.scaling.provision`), or half
    or twice as many, as `Cell.start` says.

    Raises:
        InvalidInput: an unknown policy, an unusable setting, or the testbed lacks a metric that the policy needs.
        Infeasible: the cluster has fewer slots than the job has operators, or too little memory.
    """
    policy = make_policy(cell.policy, cell.settings)
    begin = start(cell)
    trace = replay(
        testbed(cell),
        with_key_groups(cell.job, begin.parallelism),
        cell.workload,
        policy,
        begin,
        _evenly if cell.placement == "evenly" else partial(_by_caps, cell),
        cell.least_between_s,
        FlinkMetrics(cell.seed),
    )
    return CellResult(outcome(trace, cell.workload, cell.burn_in_s), trace.rescales, table(trace))


def testbed(cell: Cell) -> Simulator:
    """The cell's cluster, with rescales of its mode."""
    return Simulator(cell.cluster, physics=PHYSICS[cell.rescale_mode])


def with_key_groups(job: Job, parallelism: Mapping[str, int]) -> Job:
    """The job with the key groups that Flink fixes at its first start, where it states none.

    Flink decides for each operator by its parallelism; here the largest counts for all, since a job has one number.
    """
    keyed = {e.downstream for e in job.edges if e.partitioning is Partitioning.HASH}
    if job.key_groups is not None or not keyed:
        return job
    return job.model_copy(update={"key_groups": key_groups(max(parallelism[name] for name in keyed))})


def start(cell: Cell) -> Start:
    """The initial deployment of the job; raises Infeasible as `run_cell`."""
    memory_mb, managed_mb = memory(cell.cluster, cell.managed_memory_mb)
    return Start(
        parallelism=_initial(cell),
        memory_mb=memory_mb,
        managed_memory_mb={o.name: managed_mb for o in cell.job.operators},
        seed=cell.seed,
    )


def memory(cluster: Cluster, managed_memory_mb: float | None) -> tuple[float, float]:
    """Memory of a TaskManager, and managed memory of one task at the start, MiB; raises Infeasible as `run_cell`."""
    workers = cluster.workers
    memory_mb = min((w.memory_mb for w in workers if w.memory_mb is not None), default=DEFAULT_MEMORY_MB)
    share = managed_memory_per_slot_mb(memory_mb, max(w.slots for w in workers))
    managed_mb = managed_memory_mb or share
    if managed_mb > share:
        raise Infeasible(
            f"a task cannot start with {managed_mb:g} MiB of managed memory: a slot of cluster {cluster.name!r} has "
            f"{share:.0f} MiB; give less"
        )
    return memory_mb, managed_mb


def capacity(job: Job, cluster: Cluster, managed_memory_mb: float | None = None) -> ClusterCapacity:
    """What the cluster takes of the job with the memory that its cells start with; raises Infeasible as `run_cell`."""
    return measured_capacity(job, cluster, *memory(cluster, managed_memory_mb))


def _initial(cell: Cell) -> dict[str, int]:
    """Tasks at the start: what the first rate needs, half or twice of it, within the cluster."""
    slots, most = cell.cluster.slots, most_tasks(cell.job)
    cost_s = capacity(cell.job, cell.cluster, cell.managed_memory_mb).cost_s
    well = provision(cell.job, cell.workload.rates[0], slots, cost_s)
    wanted = {name: max(1, math.ceil(SIZE[cell.start] * tasks)) for name, tasks in well.items()}
    return within(wanted, dict.fromkeys(wanted, 1), slots, most).parallelism


def _evenly(parallelism: Mapping[str, int], rate: float) -> None:
    """Leave the placement to the testbed."""


def _by_caps(cell: Cell, parallelism: Mapping[str, int], rate: float) -> Placement:
    """CAPS's placement of all operators but the sources, which run on machines of their own, at a rate.

    It uses the catalogue's unit costs, and thresholds tuned for that rate.
    """
    job = cell.job
    ratio = records_in_per_source_record(job)
    records_in = {name: ratio[name] * rate for name in ratio}
    dataflow = expand(job, parallelism, records_in, catalogue_unit_costs(job), 0.0)
    return place(_without_sources(job, dataflow), cell.cluster, "caps", seed=cell.seed).placement


def _without_sources(job: Job, dataflow: Dataflow) -> Dataflow:
    sources = {o.name for o in job.sources}
    return dataflow.model_copy(
        update={
            "operators": tuple(o for o in dataflow.operators if o.name not in sources),
            "edges": tuple(e for e in dataflow.edges if e.upstream not in sources),
        }
    )
