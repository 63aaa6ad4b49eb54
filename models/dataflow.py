"""Operators and edges of a dataflow, and its physical form: tasks with their loads.

Notation (CAPSys Table 1): a dataflow G has operators i = 1..n in topological order, each with p_i tasks; a task t
loads its worker with U_cpu(t), U_io(t) and U_net(t).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from typing import Annotated, Final, Literal

from pydantic import Field, model_validator

from models.errors import InvalidInput
from models.schema import SCHEMA_VERSION, Format, Name, NonNegative, Positive, PositiveInt

MOST_TASKS: Final = 1_000_000
MOST_LOAD: Final = 1e30
"""Keeps sums of loads far below the largest float."""
Load = Annotated[NonNegative, Field(le=MOST_LOAD)]


class Partitioning(StrEnum):
    """Which downstream tasks a task sends to: its own partner, or all of them."""

    FORWARD = "forward"
    REBALANCE = "rebalance"
    HASH = "hash"
    BROADCAST = "broadcast"


class Edge(Format):
    """A data dependency between two operators."""

    upstream: Name = Field(alias="from", description="Operator that sends.")
    downstream: Name = Field(alias="to", description="Operator that receives.")
    partitioning: Partitioning = Field(description="forward, rebalance, hash or broadcast.")
    share: Positive = Field(
        1.0, le=1.0, description="Share of the upstream operator's output records that take this edge."
    )


class OperatorLoad(Format):
    """An operator of a physical dataflow: its number of tasks, and the load of each."""

    name: Name = Field(description="Unique within the dataflow.")
    parallelism: PositiveInt = Field(le=MOST_TASKS, description="Number of tasks.")
    cpu: Load = Field(description="U_cpu: CPU load of one task (cores, or any consistent unit).")
    io: Load = Field(description="U_io: state access rate of one task (bytes/s, or any consistent unit).")
    net: Load = Field(description="U_net: output data rate of one task (bytes/s, or any consistent unit).")
    memory_mb: Load = Field(0.0, description="Memory that one task must have on its worker, MiB.")


class Dataflow(Format):
    """A physical dataflow with the loads of its tasks at the rate considered (`graph.json`)."""

    schema_version: Literal[1] = SCHEMA_VERSION
    name: Name = "dataflow"
    operators: tuple[OperatorLoad, ...] = Field(min_length=1)
    edges: tuple[Edge, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> "Dataflow":
        topological_order([o.name for o in self.operators], self.edges)
        parallelism = {o.name: o.parallelism for o in self.operators}
        for edge in self.edges:
            up, down = parallelism[edge.upstream], parallelism[edge.downstream]
            if edge.partitioning is Partitioning.FORWARD and up != down:
                raise ValueError(
                    f"a forward edge needs equal parallelism at both ends, but {edge.upstream!r} has {up} tasks and "
                    f"{edge.downstream!r} has {down}; make them equal, or use rebalance"
                )
        return self

    @property
    def tasks(self) -> int:
        """Number of tasks of all operators."""
        return sum(o.parallelism for o in self.operators)


def topological_order(operators: Sequence[str], edges: Iterable[Edge]) -> list[str]:
    """Operators so that every edge points forward; ties keep the given order.

    Raises:
        InvalidInput: a name is repeated, an edge names an unknown operator, or the edges form a cycle.
    """
    counts = Counter(operators)
    repeated = next((name for name, count in counts.items() if count > 1), None)
    if repeated is not None:
        raise _Unordered(f"operator names must be unique, but {repeated!r} appears {counts[repeated]} times")
    rank = {name: i for i, name in enumerate(operators)}
    upstream: dict[str, list[str]] = {name: [] for name in operators}
    for edge in edges:
        for end in (edge.upstream, edge.downstream):
            if end not in rank:
                raise _Unordered(
                    f"the edge {edge.upstream!r} -> {edge.downstream!r} names the operator {end!r}, which does not "
                    f"exist; known operators: {', '.join(operators)}"
                )
        if edge.upstream in upstream[edge.downstream]:
            raise _Unordered(f"the edge {edge.upstream!r} -> {edge.downstream!r} appears twice; keep one of them")
        upstream[edge.downstream].append(edge.upstream)
    sorter = TopologicalSorter(upstream)
    try:
        sorter.prepare()
    except CycleError as error:
        raise _Unordered(
            f"a dataflow must not have a cycle, but {' -> '.join(error.args[1])} is one; remove one of its edges"
        ) from None
    ordered: list[str] = []
    ready: list[int] = []
    while sorter.is_active():
        for name in sorter.get_ready():
            heappush(ready, rank[name])
        first = operators[heappop(ready)]
        ordered.append(first)
        sorter.done(first)
    return ordered


class _Unordered(InvalidInput, ValueError):
    """Also a ValueError, so that pydantic reports it with its field."""
