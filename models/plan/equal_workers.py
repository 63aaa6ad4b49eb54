"""Equal workers as one: a plan for 128 workers has few different ones, and people read only these."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pydantic import Field

from models.plan.changes import PlacementChange
from models.plan.parts import Placement
from models.schema import Format, Name, PositiveInt

_NUMBERED: Final = re.compile(r"(?P<stem>.*?)(?P<number>0|[1-9][0-9]{0,17})")
"""A name that ends in a number, as `tm-12`; leading zeros belong to the stem."""


class WorkerGroup(Format):
    """Workers that run the same tasks."""

    workers: tuple[Name, ...] = Field(min_length=1, description="In the order of the plan.")
    tasks: dict[Name, PositiveInt] = Field(description="Operator -> number of its tasks on each of these workers.")


class GroupedChange(Format):
    """Workers on which an operator has the same number of tasks before, and the same after."""

    workers: tuple[Name, ...] = Field(min_length=1, description="In the order of the plans.")
    operator: Name
    before: int = Field(ge=0, description="Its tasks on each of these workers.")
    after: int = Field(ge=0, description="The same after.")

    @property
    def started(self) -> int:
        """Tasks that start on these workers together; below zero those that stop."""
        return (self.after - self.before) * len(self.workers)


def equal_workers(placement: Placement) -> tuple[WorkerGroup, ...]:
    """Workers with the same tasks together, each group at the place of its first worker."""
    groups: dict[frozenset[tuple[str, int]], list[str]] = {}
    for worker, tasks in placement.items():
        groups.setdefault(frozenset(tasks.items()), []).append(worker)
    return tuple(WorkerGroup(workers=tuple(names), tasks=placement[names[0]]) for names in groups.values())


def grouped_changes(changes: Iterable[PlacementChange]) -> tuple[GroupedChange, ...]:
    """Changes of the same operator by the same numbers together, each group at the place of its first change."""
    groups: dict[tuple[str, int, int], list[str]] = {}
    for one in changes:
        groups.setdefault((one.operator, one.before, one.after), []).append(one.worker)
    return tuple(
        GroupedChange(workers=tuple(names), operator=operator, before=before, after=after)
        for (operator, before, after), names in groups.items()
    )


def spans(names: Sequence[str]) -> tuple[str, ...]:
    """Names in their order, with three or more in a row as one: `tm-1 to tm-64`."""
    found: list[str] = []
    for first, last, count in _runs(names):
        if count > 2:
            found.append(f"{first} to {last}")
        else:
            found += [first, last][:count]
    return tuple(found)


def _runs(names: Sequence[str]) -> Iterator[tuple[str, str, int]]:
    """First, last and number of names that are numbered consecutively."""
    first = 0
    for place in range(1, len(names)):
        if not _follows(names[place], names[place - 1]):
            yield names[first], names[place - 1], place - first
            first = place
    if names:
        yield names[first], names[-1], len(names) - first


def _follows(name: str, before: str) -> bool:
    one, other = _NUMBERED.fullmatch(before), _NUMBERED.fullmatch(name)
    if one is None or other is None:
        return False
    return one["stem"] == other["stem"] and int(other["number"]) == int(one["number"]) + 1
