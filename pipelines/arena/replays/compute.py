"""Computing one cell: from plain data to plain data, without I/O.

`run_cell` is what every runner maps over cells: the processes of `pipelines.arena.grid`, or a Spark job.
"""

from collections.abc import Mapping
from functools import partial
from typing import Final

from models.dataflow import Dataflow
from models.errors import Infeasible
from models.job import Job, records_in_per_source_record
from models.memory import managed_memory_per_slot_mb
from models.placement import place
from models.plan import Placement
from models.planning.expansion import catalogue_unit_costs, expand
from models.scaling.policies import make_policy
from models.scaling.provision import provision
from pipelines.arena.replays.cell import Cell, CellResult
from pipelines.arena.replays.outcome import outcome, table
from pipelines.arena.replays.replay import Start, replay
from testbeds.simulator import Simulator

DEFAULT_MEMORY_MB: Final = 4096.0
"""TaskManager memory where the cluster does not limit it (evaluation of autoscalers, section 6.1), MiB."""


def run_cell(cell: Cell) -> CellResult:
    """Replay the cell's workload on the simulator.

    The job starts with the tasks that its nominal costs ask for at the first rate (`models.scaling.provision`).

    Raises:
        InvalidInput: an unknown policy, an unusable setting, or the testbed lacks a metric that the policy needs.
        Infeasible: the cluster has fewer slots than the job has operators, or too little memory.
    """
    policy = make_policy(cell.policy, cell.settings)
    begin = start(cell)
    trace = (
        replay(Simulator(cell.cluster), cell.job, cell.workload, policy, begin)
        if cell.placement == "evenly"
        else replay(Simulator(cell.cluster), cell.job, cell.workload, policy, begin, partial(_by_caps, cell))
    )
    return CellResult(outcome(trace, cell.workload), trace.rescales, table(trace))


def start(cell: Cell) -> Start:
    """The initial deployment of the job; raises Infeasible as `run_cell`."""
    workers = cell.cluster.workers
    memory_mb = min((w.memory_mb for w in workers if w.memory_mb is not None), default=DEFAULT_MEMORY_MB)
    share = managed_memory_per_slot_mb(memory_mb, max(w.slots for w in workers))
    managed_mb = cell.managed_memory_mb or share
    if managed_mb > share:
        raise Infeasible(
            f"a task cannot start with {managed_mb:g} MiB of managed memory: a slot of cluster {cell.cluster.name!r} has "
            f"{share:.0f} MiB; give less"
        )
    return Start(
        parallelism=provision(cell.job, cell.workload.rates[0], cell.cluster.slots),
        memory_mb=memory_mb,
        managed_memory_mb={o.name: managed_mb for o in cell.job.operators},
        seed=cell.seed,
    )


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
