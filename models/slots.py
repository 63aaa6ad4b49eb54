"""Shared slots of a plan: the tasks that each slot of a TaskManager holds."""

from collections import Counter
from collections.abc import Mapping, Sequence

from pydantic import Field

from models.schema import Format, Name, PositiveInt


class SlotBundle(Format):
    """Slots of one TaskManager that hold a task of the same vertices each."""

    vertices: tuple[Name, ...] = Field(
        min_length=1, description="Vertices of one slot sharing group, by their first operators."
    )
    slots: PositiveInt = Field(description="How many such slots.")


def tasks_in(bundles: Sequence[SlotBundle]) -> dict[str, int]:
    """Tasks of each vertex in the slots of a TaskManager."""
    tasks: Counter[str] = Counter()
    for bundle in bundles:
        tasks.update(dict.fromkeys(bundle.vertices, bundle.slots))
    return dict(tasks)


def is_nested(slots: Mapping[str, Sequence[SlotBundle]], group_of: Mapping[str, str | None]) -> bool:
    """Whether Flink's default makes these slots: in each group the tasks of a slot include those of every slot with fewer, so
    that slot i can hold subtask i of each of its vertices.

    Args:
        group_of: vertex -> slot sharing group.
    """
    every = {bundle.vertices for bundles in slots.values() for bundle in bundles}
    return all(
        set(one) <= set(other) or set(other) <= set(one)
        for one in every
        for other in every
        if group_of[one[0]] is not None and group_of[one[0]] == group_of[other[0]]
    )


def subtasks_in(slots: Mapping[str, Sequence[SlotBundle]]) -> list[tuple[str, int, str]]:
    """(vertex, subtask, worker) of every task, by vertex.

    The slots with the most tasks have the lowest numbers, and a vertex numbers its tasks in the order of their slots. So
    where `is_nested`, slot i of a group holds subtask i of each of its vertices.

    Args:
        slots: workers in the order in which equal slots are numbered.
    """
    ordered = sorted(
        ((worker, bundle) for worker, bundles in slots.items() for bundle in bundles),
        key=lambda slot: -len(slot[1].vertices),
    )
    workers: dict[str, list[str]] = {}
    for worker, bundle in ordered:
        for vertex in bundle.vertices:
            workers.setdefault(vertex, []).extend([worker] * bundle.slots)
    return [(vertex, i, worker) for vertex, own in workers.items() for i, worker in enumerate(own)]


def slots_in(slots: Mapping[str, Sequence[SlotBundle]]) -> int:
    """Slots of all TaskManagers that hold tasks."""
    return sum(bundle.slots for bundles in slots.values() for bundle in bundles)
