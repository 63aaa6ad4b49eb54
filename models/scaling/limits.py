"""Limiting a decision that asks for more tasks than the cluster can hold.

Ruling: no operator gets more than its maximum. Operators that keep or give up tasks get what they ask for. If the rest
exceeds the free slots, the growing operators share them: the next slot always goes to the one with the smallest granted
share of its growth (ties: the given order). So growth of one operator never costs another one tasks, and a decision that
grows all of them is reduced evenly.
"""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass

from models.errors import Infeasible
from models.job import Job


@dataclass(frozen=True)
class Granted:
    """The part of a decision that can be deployed."""

    parallelism: dict[str, int]
    """Tasks of every operator."""
    note: str | None
    """What was refused, in words; None if nothing."""


def most_tasks(job: Job) -> dict[str, int]:
    """The most tasks of each operator that has a limit: its own, or the key groups of its input."""
    return {o.name: most for o in job.operators if (most := job.most_tasks(o.name)) is not None}


def within(wanted: Mapping[str, int], running: Mapping[str, int], slots: int, most: Mapping[str, int]) -> Granted:
    """The tasks that operators get of those wanted.

    Args:
        wanted: tasks by operator; an operator that is left out keeps its tasks.
        running: tasks of every operator now.
        slots: of the cluster, for all operators.
        most: the most tasks of an operator, where there is a limit.

    Raises:
        Infeasible: the operators that do not grow take more than all slots.
    """
    asked = {name: min(wanted.get(name, tasks), most.get(name, slots)) for name, tasks in running.items()}
    granted = {name: min(asked[name], tasks) for name, tasks in running.items()}
    left = slots - sum(granted.values())
    if left < 0:
        raise Infeasible(
            f"the operators must fit the cluster's {slots} slots, but without growing they need "
            f"{sum(granted.values())}; use a larger cluster"
        )
    growing = [(0.0, i, name) for i, name in enumerate(running) if asked[name] > granted[name]]
    heapq.heapify(growing)
    while growing and left:
        _, i, name = growing[0]
        granted[name] += 1
        left -= 1
        if granted[name] < asked[name]:
            growth = (granted[name] - running[name]) / (asked[name] - running[name])
            heapq.heapreplace(growing, (growth, i, name))
        else:
            heapq.heappop(growing)
    return Granted(granted, _note({**running, **wanted}, granted, slots))


def _note(wanted: Mapping[str, int], granted: Mapping[str, int], slots: int) -> str | None:
    refused = [f"{name} {granted[name]} of {wanted[name]}" for name in granted if granted[name] < wanted[name]]
    if not refused:
        return None
    asked = sum(wanted[name] for name in granted)
    why = f"{asked} tasks wanted and {slots} slots there" if asked > slots else "operators may not have more"
    return f"{why}, so granted: {', '.join(refused[:4])}{', ...' if len(refused) > 4 else ''}"
