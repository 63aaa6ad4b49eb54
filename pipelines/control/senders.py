"""Which vertices send records to which, by the edges of a running job."""

from collections import Counter
from collections.abc import Sequence

from flink_client.jobs.job_graph import PARTITIONINGS
from flink_client.rest.answers import VertexEdge
from models.dataflow import Partitioning


def sole_senders(edges: Sequence[VertexEdge]) -> dict[str, list[str]]:
    """The vertices that send to each one, by id, where all that these emit goes to it, once.

    What a vertex emits on several edges is counted together.
    """
    found = {}
    emits = Counter(edge.upstream for edge in edges)
    for id_ in {edge.downstream for edge in edges}:
        into = [edge for edge in edges if edge.downstream == id_]
        if all(emits[e.upstream] == 1 and partitioning(e) is not Partitioning.BROADCAST for e in into):
            found[id_] = [edge.upstream for edge in into]
    return found


def partitioning(edge: VertexEdge) -> Partitioning | None:
    """How an edge spreads records; None where that is without regard to what they are."""
    return PARTITIONINGS.get(edge.ship_strategy)
