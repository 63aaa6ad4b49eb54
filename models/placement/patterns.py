"""Patterns: the count vectors that one worker can hold within given limits, and the t of each on a ray.

A plan gives each worker one pattern of its type. So what all workers together must hold also bounds each one from
below: a worker holds at least what the others, all full, have no room for. Patterns below that occur in no plan and are
left out, which is what keeps their number small where the limits are tight.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

import numpy as np

from models.placement.budget import Budget
from models.placement.cost import SAME, TOLERANCE
from models.placement.pattern_kernel import ALL, TOO_MANY, Counts, Room, Scale, Sink, enumerate_patterns
from models.placement.problem import Floats, Ints, Problem

MARGIN: Final = 1e-9
"""A proof by prices must hold by this share of the price of all tasks."""
MOST_PATTERNS: Final = 2_000_000
"""Patterns that are stored at most."""
MOST_TRIES: Final = 60_000_000
"""Tries to find them, some 10 ns each."""
TRIES_PER_SECOND: Final = 20_000_000
"""On a slow machine; used only when the time runs out."""
WINDOWS: Final = (0.1, 0.03, 0.01)
"""Where there are too many, those are stored whose t lies this share below the largest."""
RANGES: Final = 1024
"""Ranges of t in which the dearest of the patterns that are not stored are told apart."""


class Space(NamedTuple):
    """What describes the patterns of one type of worker."""

    room: Room
    """With the operators in `order`."""
    scale: Scale
    order: Ints
    """(n,)"""


@dataclass(frozen=True, eq=False)
class Patterns:
    """The patterns of all types of workers, by rising t."""

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
    complete: bool
    """All patterns are stored; otherwise those with the largest t only, and what they seem to prove needs `check`."""
    top: float
    """Above the t of every pattern."""
    spaces: tuple[Space, ...]
    """(T,)"""

    def __len__(self) -> int:
        return len(self.reach)

    @classmethod
    def within(
        cls,
        problem: Problem,
        limits: Floats,
        base: Floats,
        slope: Floats,
        t: float,
        *,
        budget: Budget | None = None,
        most: int = MOST_PATTERNS,
        windows: Sequence[float] = WINDOWS,
    ) -> Self | None:
        """The patterns with loads up to `limits` (3,), which hold up to t on the ray base + t slope.

        Args:
            budget: limits the tries to the time that is left.
            windows: shares of t, falling.

        Returns:
            all of them or, where they are more than `most`, those whose t lies within a window below the largest; None
            where even these are too many.
        """
        spaces, top = _spaces(problem, limits, base, slope), t * (1 + 1e-6) + 1e-9
        for from_t in (0.0, *((1 - window) * t for window in windows)):
            stored = _stored(spaces, from_t, most, _tries(budget))
            if stored == TOO_MANY:  # even to look at; a window does not change that
                return None
            if not isinstance(stored, int):
                workers = np.bincount(problem.worker_type)
                return cls(*stored, workers, problem.parallelism, from_t == 0.0, top, spaces)
        return None

    def check(self, price: Floats, t: float, budget: Budget) -> float:
        """The largest t, up to the one given, below which workers cannot hold what all tasks cost at this price (n,).

        Every pattern is looked at, stored or not.
        """
        asked = float(price @ self.parallelism) - MARGIN * float(np.abs(price) @ self.parallelism)
        total = np.zeros(RANGES)
        nothing = np.empty((0, len(price)), dtype=np.int16), np.empty(0)
        for space, workers in zip(self.spaces, self.workers, strict=True):
            best = np.full(RANGES, -np.inf)
            sink = Sink(*nothing, 0.0, price[space.order], t, best)
            if enumerate_patterns(space.room, space.scale, sink, _tries(budget))[1] != ALL:
                return 0.0
            total += workers * np.maximum.accumulate(best)
        met = np.flatnonzero(total >= asked)
        return t if not len(met) else t * float(met[0]) / RANGES


def _tries(budget: Budget | None) -> int:
    """Tries that the time left allows for."""
    left = None if budget is None else budget.left
    return MOST_TRIES if left is None else min(MOST_TRIES, int(left * TRIES_PER_SECOND))


def _stored(spaces: Sequence[Space], from_t: float, most: int, tries: int) -> tuple[Counts, Ints, Floats] | int:
    """Counts, types and t of the patterns from `from_t` on, by rising t; why not, where there are too many."""
    n = len(spaces[0].order)
    counts, reach = np.empty((most, n), dtype=np.int16), np.empty(most)
    kinds, kept = [], 0
    for kind, space in enumerate(spaces):
        sink = Sink(counts[kept:], reach[kept:], from_t, np.zeros(n), 0.0, np.empty(0))
        found, ended = enumerate_patterns(space.room, space.scale, sink, tries)
        if ended != ALL:
            return int(ended)
        counts[kept : kept + found, space.order] = counts[kept : kept + found].copy()
        kinds.append(np.full(found, kind))
        kept += found
    rising = np.argsort(reach[:kept])
    return counts[rising], np.concatenate(kinds)[rising], reach[rising]


def _spaces(problem: Problem, limits: Floats, base: Floats, slope: Floats) -> tuple[Space, ...]:
    first = np.unique(problem.worker_type, return_index=True)[1]
    span = problem.most - problem.least
    equivalent = span <= SAME * problem.most
    balanced, per_t = problem.least + base * span, np.where(equivalent, 0.0, slope * span)
    spaces = []
    for w, room in zip(first, rooms(problem, limits, first), strict=True):
        scale = Scale(problem.capacity[:, w].copy(), balanced, SAME * problem.most, per_t)
        order = np.argsort(room.highest - room.lowest, kind="stable")
        spaces.append(Space(reordered(room, order), scale, order))
    return tuple(spaces)


def rooms(problem: Problem, limits: Floats, chosen: Ints) -> list[Room]:
    """What each of the workers `chosen` may hold, operators in the problem's order."""
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
        for w in chosen
    ]  # fmt: skip


def _limit(limit: float, capacity: Floats) -> Floats:
    """(W,): a limit in units of load; infinite where it or the worker's capacity is."""
    bounded = np.isfinite(capacity) & np.isfinite(limit)
    return np.where(bounded, limit * (1 + TOLERANCE) * np.where(bounded, capacity, 1.0), np.inf)


def reordered(room: Room, order: Ints) -> Room:
    position = np.argsort(order)
    return room._replace(
        tasks=room.tasks[order],
        lowest=room.lowest[order],
        highest=room.highest[order],
        loads=np.ascontiguousarray(room.loads[:, order]),
        upstream=position[room.upstream],
        downstream=position[room.downstream],
    )
