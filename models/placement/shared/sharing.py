"""The vertices of a job as a dataflow, with the slot sharing group of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from models.dataflow import Dataflow, Edge, OperatorLoad, Partitioning
from models.errors import InvalidInput
from models.placement.problem import edge_weights
from models.plan.parts import Placement
from models.vertices import JobVertex


@dataclass(frozen=True)
class SharedDataflow:
    """What Flink deploys: vertices, and the groups in which they share slots."""

    dataflow: Dataflow
    """Vertices in place of operators, each named as its first operator."""
    group_of: Mapping[str, str]
    """Vertex -> group; a vertex whose tasks have slots of their own is in a group alone."""
    chains: Mapping[str, tuple[str, ...]]
    """Vertex -> its operators."""

    @classmethod
    def of(cls, dataflow: Dataflow, vertices: Sequence[JobVertex]) -> Self:
        """The vertices of a physical dataflow.

        A task of a vertex has the loads of all its operators, but sends only what leaves the vertex.

        Args:
            vertices: with every operator once, as `Job.deployed_vertices` gives them.

        Raises:
            InvalidInput: operators of one vertex differ in parallelism.
        """
        head = {name: v.operators[0] for v in vertices for name in v.operators}
        loads = {o.name: o for o in dataflow.operators}
        sent = _sent(dataflow, head)
        operators = tuple(_vertex(v, loads, sum(sent.get(v.operators[0], {}).values())) for v in vertices)
        edges = [edge for v in vertices for edge in _edges(dataflow, head, v.operators[0], sent)]
        return cls(
            dataflow=Dataflow(name=dataflow.name, operators=operators, edges=tuple(edges)),
            group_of={v.operators[0]: v.slot_sharing_group or v.operators[0] for v in vertices},
            chains={v.operators[0]: v.operators for v in vertices},
        )

    @property
    def parallelism(self) -> dict[str, int]:
        return {o.name: o.parallelism for o in self.dataflow.operators}

    @property
    def groups(self) -> dict[str, tuple[str, ...]]:
        """Group -> its vertices, in topological order."""
        found: dict[str, list[str]] = {}
        for name, group in self.group_of.items():
            found.setdefault(group, []).append(name)
        return {group: tuple(names) for group, names in found.items()}

    @property
    def slots(self) -> int:
        """Slots of all groups: those of the widest vertex of each."""
        return sum(max(self.parallelism[v] for v in names) for names in self.groups.values())

    def by_operator(self, placement: Placement) -> Placement:
        """A placement of vertices as one of operators."""
        return {
            worker: {operator: number for vertex, number in tasks.items() for operator in self.chains[vertex]}
            for worker, tasks in placement.items()
        }


def _vertex(vertex: JobVertex, loads: Mapping[str, OperatorLoad], net: float) -> OperatorLoad:
    chained = [loads[name] for name in vertex.operators]
    if len({o.parallelism for o in chained}) > 1:
        raise InvalidInput(
            "operators of one vertex must have equal parallelism, but got "
            + ", ".join(f"{o.name} {o.parallelism}" for o in chained)
        )
    return OperatorLoad(
        name=vertex.operators[0],
        parallelism=chained[0].parallelism,
        cpu=sum(o.cpu for o in chained),
        io=sum(o.io for o in chained),
        net=net,
        memory_mb=max(o.memory_mb for o in chained),
    )


def _sent(dataflow: Dataflow, head: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """Vertex -> downstream vertex -> what one task sends there."""
    parallelism = {o.name: o.parallelism for o in dataflow.operators}
    sent: dict[str, dict[str, float]] = {}
    for o in dataflow.operators:
        outgoing = [e for e in dataflow.edges if e.upstream == o.name]
        for edge, weight in zip(outgoing, edge_weights(outgoing, parallelism), strict=True):
            if head[edge.upstream] != head[edge.downstream]:
                to = sent.setdefault(head[o.name], {})
                to[head[edge.downstream]] = to.get(head[edge.downstream], 0.0) + o.net * weight
    return sent


def _edges(
    dataflow: Dataflow, head: Mapping[str, str], vertex: str, sent: Mapping[str, Mapping[str, float]]
) -> list[Edge]:
    """The edges that leave a vertex, one to each other vertex, with their shares of what it sends."""
    to, total = sent.get(vertex, {}), sum(sent.get(vertex, {}).values())
    edges = []
    for downstream, load in to.items():
        joining = [e for e in dataflow.edges if (head[e.upstream], head[e.downstream]) == (vertex, downstream)]
        forward = all(e.partitioning is Partitioning.FORWARD for e in joining)
        how = next(
            (e.partitioning for e in joining if e.partitioning is not Partitioning.FORWARD), Partitioning.FORWARD
        )
        share = 1 / len(to) if total == 0 else load / total
        if share > 0:  # an edge that carries nothing needs no place
            edges.append(
                Edge(
                    upstream=vertex,
                    downstream=downstream,
                    partitioning=Partitioning.FORWARD if forward else how,
                    share=min(1.0, share),
                )
            )
    return edges
