"""Shared slots of a plan: the tasks that each slot of a TaskManager holds."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

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


class PlacedTask(NamedTuple):
    """Where one task of a vertex goes."""

    vertex: str
    subtask: int
    worker: str
    slot: int | None = None
    """Number of the slot on its worker; None where Flink's default decides which tasks share one."""


def subtasks_in(slots: Mapping[str, Sequence[SlotBundle]], group_of: Mapping[str, str | None]) -> list[PlacedTask]:
    """Every task, by vertex.

    The slots with the most tasks have the lowest numbers, and a vertex numbers its tasks in the order of their slots. So
    where `is_nested`, slot i of a group holds subtask i of each of its vertices, and slots need no numbers; and vertices
    that share all of their slots have tasks of the same number in each.

    Args:
        slots: workers in the order in which equal slots are numbered.
        group_of: vertex -> slot sharing group.
    """
    ordered = sorted(
        ((worker, bundle) for worker, bundles in slots.items() for bundle in bundles for _ in range(bundle.slots)),
        key=lambda slot: -len(slot[1].vertices),
    )
    nested = is_nested(slots, group_of)
    taken: Counter[str] = Counter()
    tasks: dict[str, list[PlacedTask]] = {}
    for worker, bundle in ordered:
        for vertex in bundle.vertices:
            own = tasks.setdefault(vertex, [])
            own.append(PlacedTask(vertex, len(own), worker, None if nested else taken[worker]))
        taken[worker] += 1
    return [task for own in tasks.values() for task in own]


def slots_in(slots: Mapping[str, Sequence[SlotBundle]]) -> int:
    """Slots of all TaskManagers that hold tasks."""
    return sum(bundle.slots for bundles in slots.values() for bundle in bundles)
