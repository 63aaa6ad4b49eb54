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


def slots_in(slots: Mapping[str, Sequence[SlotBundle]]) -> int:
    """Slots of all TaskManagers that hold tasks."""
    return sum(bundle.slots for bundles in slots.values() for bundle in bundles)
