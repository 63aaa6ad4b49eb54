"""What Flink deploys of a job: its vertices, the operators chained in each, and the slots that they share.

Flink runs operators chained in a vertex in one thread, so they have the same number of tasks. It puts at most one task of
each vertex of a slot sharing group into a slot, so a group takes as many slots as its widest vertex has tasks.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pydantic import Field

from models.dataflow import Edge, Partitioning
from models.schema import Format, Name

DEFAULT_GROUP: Final = "default"
"""Where Flink puts a vertex that names no group."""


class JobVertex(Format):
    """The operators that Flink chains into one vertex, and the group of vertices that it shares slots with."""

    operators: tuple[Name, ...] = Field(
        min_length=1,
        description="Chained operators, the first one first. Each of the others has one input, a `forward` edge from an "
        "operator of the same vertex.",
    )
    slot_sharing_group: Name | None = Field(
        None,
        description="Vertices of one group put a task each into one slot. Where any vertex names a group, those that name "
        "none are in the group 'default'; where none does, each task has a slot of its own.",
    )


def check_vertices(vertices: Sequence[JobVertex], operators: Iterable[str], edges: Iterable[Edge]) -> None:
    """Raise ValueError where Flink could not chain operators as stated."""
    known, inputs = list(operators), _inputs(edges)
    listed = [name for vertex in vertices for name in vertex.operators]
    for name in listed:
        if name not in known:
            raise ValueError(
                f"vertices must name operators of the job, but {name!r} is none; known operators: {', '.join(known)}"
            )
        if listed.count(name) > 1:
            raise ValueError(f"an operator is in one vertex, but {name!r} is listed {listed.count(name)} times")
    for vertex in vertices:
        for position, name in enumerate(vertex.operators[1:], start=1):
            ahead, into = vertex.operators[:position], inputs.get(name, [])
            if len(into) != 1 or into[0].partitioning is not Partitioning.FORWARD or into[0].upstream not in ahead:
                found = ", ".join(f"{e.upstream} ({e.partitioning})" for e in into) or "none"
                raise ValueError(
                    f"a chained operator must have one input, a forward edge from an operator ahead of it in its vertex "
                    f"({', '.join(ahead)}), but the inputs of {name!r} are {found}; list it in a vertex of its own, or "
                    "correct the edge"
                )


def deployed_vertices(vertices: Sequence[JobVertex], order: Sequence[str]) -> tuple[JobVertex, ...]:
    """All vertices of a job with their groups: those stated, and one for each operator that none of them lists.

    Args:
        vertices: as the job's file states them.
        order: the job's operators in topological order; vertices are ordered by their first ones.
    """
    shared = any(v.slot_sharing_group is not None for v in vertices)
    stated = {name: v for v in vertices for name in v.operators}
    found = dict.fromkeys(stated.get(name, JobVertex(operators=(name,))) for name in order)
    return tuple(
        JobVertex(operators=v.operators, slot_sharing_group=(v.slot_sharing_group or DEFAULT_GROUP) if shared else None)
        for v in found
    )


def slots_by_group(vertices: Iterable[JobVertex], parallelism: Mapping[str, int]) -> dict[str, int]:
    """Slots of each slot sharing group, those of its widest vertex; vertices without a group count their tasks.

    Args:
        parallelism: tasks by operator; those of one vertex have the same number.

    Returns:
        slots by group, for a vertex without one by its first operator, which no group is then named as.
    """
    slots: dict[str, int] = {}
    for vertex in vertices:
        group = vertex.slot_sharing_group or vertex.operators[0]
        slots[group] = max(slots.get(group, 0), parallelism[vertex.operators[0]])
    return slots


def _inputs(edges: Iterable[Edge]) -> dict[str, list[Edge]]:
    inputs: dict[str, list[Edge]] = {}
    for edge in edges:
        inputs.setdefault(edge.downstream, []).append(edge)
    return inputs
