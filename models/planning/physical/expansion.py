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
    bytes_out: NonNegative = Field(description="Bytes emitted.")


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


def expand(
    job: Job,
    parallelism: Mapping[str, int],
    records_in_per_s: Mapping[str, float],
    unit_costs: Mapping[str, UnitCost],
    memory_mb_per_task: float,
) -> Dataflow:
    """The physical dataflow with U_cpu (cores), U_io and U_net (bytes/s) of each task (CAPSys Table 1).

    A forward edge between operators of different parallelism becomes a rebalance, as Flink does it.

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
                net=cost.bytes_out * per_task if job.downstream_edges(name) else 0.0,
                memory_mb=memory_mb_per_task,
            )
        )
    return Dataflow(
        name=job.name, operators=tuple(operators), edges=tuple(_physical(e, parallelism) for e in job.edges)
    )


def _physical(edge: Edge, parallelism: Mapping[str, int]) -> Edge:
    unequal = parallelism[edge.upstream] != parallelism[edge.downstream]
    if edge.partitioning is Partitioning.FORWARD and unequal:
        return edge.model_copy(update={"partitioning": Partitioning.REBALANCE})
    return edge
