"""From a logical job to its physical dataflow: tasks, and the load of each at a given rate.

CAPSys section 5.1: the load of a task is its unit cost times its share of the target rate.
"""

from collections.abc import Mapping

from pydantic import Field

from models.dataflow import Dataflow, Edge, OperatorLoad, Partitioning
from models.job import Job
from models.schema import Format, NonNegative


class UnitCost(Format):
    """What one record in costs an operator; at a source, one record generated."""

    cpu_s: NonNegative = Field(description="CPU seconds.")
    state_bytes: NonNegative = Field(description="State bytes read and written.")
    bytes_out: NonNegative = Field(description="Bytes emitted; once, if it is broadcast.")


def catalogue_unit_costs(job: Job) -> dict[str, UnitCost]:
    """The unit costs that the job's file states, for jobs that were not profiled. A record out is sent over each edge that it
    takes.
    """
    return {
        o.name: UnitCost(
            cpu_s=o.cost.cpu_s,
            state_bytes=o.cost.state_read_bytes + o.cost.state_write_bytes,
            bytes_out=o.cost.bytes_out * o.selectivity * sum(e.share for e in job.downstream_edges(o.name)),
        )
        for o in job.operators
    }


def copies(job: Job, name: str, parallelism: Mapping[str, int]) -> dict[str, float]:
    """Copies of a record out of an operator that each operator downstream gets, all its tasks together."""
    return {
        e.downstream: e.share * (parallelism[e.downstream] if e.partitioning is Partitioning.BROADCAST else 1)
        for e in job.downstream_edges(name)
    }


def broadcast_factor(job: Job, name: str, parallelism: Mapping[str, int]) -> float:
    """Bytes that an operator emits over those of its `UnitCost`, which counts a broadcast record once."""
    once = sum(e.share for e in job.downstream_edges(name))
    return sum(copies(job, name, parallelism).values()) / once if once else 1.0


def expand(
    job: Job,
    parallelism: Mapping[str, int],
    records_in_per_s: Mapping[str, float],
    unit_costs: Mapping[str, UnitCost],
    memory_mb_per_task: float,
) -> Dataflow:
    """The physical dataflow with U_cpu (cores), U_io and U_net (bytes/s) of each task (CAPSys Table 1).

    A forward edge between operators of different parallelism becomes a rebalance, as Flink does it. The share of each of
    several outgoing edges is that of the records sent: each edge of a job takes all records, unless it states a share.

    Args:
        parallelism: tasks of each operator, sources included.
        records_in_per_s: records/s into all tasks of each operator.
        unit_costs: of each operator.
        memory_mb_per_task: memory that each task must have on its worker, MiB.
    """
    operators = []
    for name in job.order:
        per_task, cost = records_in_per_s[name] / parallelism[name], unit_costs[name]
        operators.append(
            OperatorLoad(
                name=name,
                parallelism=parallelism[name],
                cpu=cost.cpu_s * per_task,
                io=cost.state_bytes * per_task,
                net=_sent(job, name, cost, parallelism) * per_task,
                memory_mb=memory_mb_per_task,
            )
        )
    edges = tuple(_physical(job, e, parallelism) for e in job.edges)
    return Dataflow(name=job.name, operators=tuple(operators), edges=edges)


def _sent(job: Job, name: str, cost: UnitCost, parallelism: Mapping[str, int]) -> float:
    """Bytes that leave a task of an operator per record in."""
    return cost.bytes_out * broadcast_factor(job, name, parallelism) if job.downstream_edges(name) else 0.0


def _physical(job: Job, edge: Edge, parallelism: Mapping[str, int]) -> Edge:
    sent = copies(job, edge.upstream, parallelism)
    changed: dict[str, object] = {}
    if len(sent) > 1:
        changed["share"] = sent[edge.downstream] / sum(sent.values())
    unequal = parallelism[edge.upstream] != parallelism[edge.downstream]
    if edge.partitioning is Partitioning.FORWARD and unequal:
        changed["partitioning"] = Partitioning.REBALANCE
    return edge.model_copy(update=changed)
