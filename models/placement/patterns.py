"""Patterns: the count vectors that one worker can hold within given limits, and the t of each on a ray.

A plan gives each worker one pattern of its type. So what all workers together must hold also bounds each one from
below: a worker holds at least what the others, all full, have no room for. Patterns below that occur in no plan and are
left out, which is what keeps their number small where the limits are tight.
"""

from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from models.placement.cost import SAME, TOLERANCE
from models.placement.pattern_kernel import Counts, Room, Scale, enumerate_patterns
from models.placement.problem import Floats, Ints, Problem

MOST_PATTERNS: Final = 2_000_000
"""Patterns that are stored at most."""
MOST_TRIES: Final = 40_000_000
"""Tries to find them, some 5 ns each."""


@dataclass(frozen=True, eq=False)
class Patterns:
    """All patterns of all types of workers, by rising t."""

    counts: Counts
    """(N, n): tasks of each operator."""
    kind: Ints
    """(N,): number of the type among `workers`."""
    reach: Floats
    """(N,): the smallest t whose limits the pattern keeps, rising."""
    workers: Ints
    """(T,): workers of each type."""
    parallelism: Ints
    """(n,): tasks that a plan places."""

    def __len__(self) -> int:
        return len(self.reach)

    @classmethod
    def within(
        cls, problem: Problem, limits: Floats, base: Floats, slope: Floats, most: int = MOST_PATTERNS
    ) -> Self | None:
        """All patterns with loads up to `limits` (3,), for the ray base + t slope; None where there are too many."""
        first = np.unique(problem.worker_type, return_index=True)[1]
        workers = np.bincount(problem.worker_type)
        scales, rooms, order = _scales(problem, base, slope), _rooms(problem, limits), None
        counts = np.empty((most, len(problem.operators)), dtype=np.int16)
        reach = np.empty(most)
        kinds, kept = [], 0
        for kind, w in enumerate(first):
            order = np.argsort(rooms[w].highest - rooms[w].lowest, kind="stable")
            found, complete = enumerate_patterns(
                _reordered(rooms[w], order), scales[w], counts[kept:], reach[kept:], MOST_TRIES
            )
            if not complete:
                return None
            counts[kept : kept + found, order] = counts[kept : kept + found].copy()
            kinds.append(np.full(found, kind))
            kept += found
        rising = np.argsort(reach[:kept])
        return cls(
            counts=counts[rising],
            kind=np.concatenate(kinds)[rising],
            reach=reach[rising],
            workers=workers,
            parallelism=problem.parallelism,
        )


def _scales(problem: Problem, base: Floats, slope: Floats) -> list[Scale]:
    span = problem.most - problem.least
    equivalent = span <= SAME * problem.most
    balanced, per_t = problem.least + base * span, np.where(equivalent, 0.0, slope * span)
    return [
        Scale(problem.capacity[:, w].copy(), balanced, SAME * problem.most, per_t) for w in range(len(problem.workers))
    ]


def _rooms(problem: Problem, limits: Floats) -> list[Room]:
    """What each worker may hold, operators in the problem's order."""
    loads = np.vstack([problem.loads[:2], problem.memory_mb])
    tasks, slots = problem.parallelism, problem.slots
    most = np.full((3, len(slots)), np.inf)
    for row, d in enumerate((0, 1)):
        most[row] = _limit(limits[d], problem.capacity[d])
    most[2] = problem.memory_limit_mb * (1 + TOLERANCE)
    net_most = _limit(limits[2], problem.capacity[2])
    highest = np.minimum(slots[:, None], tasks)
    for row in range(3):
        with np.errstate(divide="ignore", invalid="ignore"):
            fit = np.where(loads[row] > 0, np.floor(most[row][:, None] / loads[row]), np.inf)
        highest = np.minimum(highest, fit).astype(np.int64)
    lowest = np.maximum(0, tasks - (highest.sum(axis=0) - highest))
    total = loads @ tasks
    full = np.minimum(most, total[:, None])
    least = total[:, None] - (full.sum(axis=1)[:, None] - full) - 10 * TOLERANCE * total[:, None]
    fewest = np.maximum(0, problem.tasks - (slots.sum() - slots))
    edges = problem.edges
    return [
        Room(
            tasks=tasks, lowest=lowest[w], highest=highest[w], fewest=int(fewest[w]), slots=int(slots[w]),
            loads=loads, least=least[:, w].copy(), most=most[:, w].copy(), net_most=float(net_most[w]),
            upstream=edges.upstream, downstream=edges.downstream, edge_load=edges.load, forward=edges.forward,
        )
        for w in range(len(slots))
    ]  # fmt: skip


def _limit(limit: float, capacity: Floats) -> Floats:
    """(W,): a limit in units of load; infinite where it or the worker's capacity is."""
    bounded = np.isfinite(capacity) & np.isfinite(limit)
    return np.where(bounded, limit * (1 + TOLERANCE) * np.where(bounded, capacity, 1.0), np.inf)


def _reordered(room: Room, order: Ints) -> Room:
    position = np.argsort(order)
    return room._replace(
        tasks=room.tasks[order],
        lowest=room.lowest[order],
        highest=room.highest[order],
        loads=np.ascontiguousarray(room.loads[:, order]),
        upstream=position[room.upstream],
        downstream=position[room.downstream],
    )
