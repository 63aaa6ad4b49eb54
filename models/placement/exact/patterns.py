"""Patterns: the count vectors that one worker can hold within given limits, and the t of each on a ray.

A plan gives each worker one pattern of its type. So what all workers together must hold also bounds each one from
below: a worker holds at least what the others, all full, have no room for. Patterns below that occur in no plan and are
left out, which is what keeps their number small where the limits are tight.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

import numpy as np

from models.placement.cost import SAME, TOLERANCE, worker_limits
from models.placement.kernels.patterns import ALL, TOO_MANY, Counts, Scale, Sink, WorkerSpace, enumerate_patterns
from models.placement.kernels.problem import ADDITIVE, MEMORY, NET, Floats, Ints
from models.placement.problem import Problem
from models.placement.time_limit import TimeLimit

MARGIN: Final = 1e-9
"""A proof by prices must hold by this share of the price of all tasks."""
MOST_PATTERNS: Final = 2_000_000
"""Patterns that are stored at most."""
MOST_TRIES: Final = 60_000_000
"""Most tries to find them, some 10 ns each."""
TRIES_PER_SECOND: Final = 20_000_000
"""Duration of a try on a slow machine; used only to fit the tries into the time left."""
WINDOWS: Final = (0.1, 0.03, 0.01)
"""If there are too many, only those whose t is within this share of the largest are stored."""
RANGES: Final = 1024
"""Ranges of t for which the highest price of a pattern that is not stored is kept."""


class Space(NamedTuple):
    """Description of the patterns of one type of worker."""

    worker: WorkerSpace
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
        time: TimeLimit | None = None,
        most: int = MOST_PATTERNS,
        windows: Sequence[float] = WINDOWS,
    ) -> Self | None:
        """The patterns with loads up to `limits` (3,), which hold up to t on the ray base + t slope.

        Args:
            time: limits the tries to the time that is left.
            windows: shares of t, falling.

        Returns:
            all of them or, where they are more than `most`, those whose t lies within a window below the largest; None
            where even these are too many.
        """
        spaces, top = _spaces(problem, limits, base, slope), t * (1 + 1e-6) + 1e-9
        for from_t in (0.0, *((1 - window) * t for window in windows)):
            stored = _stored(spaces, from_t, most, _tries(time))
            if stored == TOO_MANY:  # too many even to enumerate; a window does not change that
                return None
            if not isinstance(stored, int):
                workers = np.bincount(problem.worker_type)
                return cls(*stored, workers, problem.parallelism, from_t == 0.0, top, spaces)
        return None

    def check(self, price: Floats, t: float, time: TimeLimit) -> float:
        """The largest t, up to the one given, below which workers cannot hold what all tasks cost at this price (n,).

        Every pattern is priced, stored or not.
        """
        asked = float(price @ self.parallelism) - MARGIN * float(np.abs(price) @ self.parallelism)
        total = np.zeros(RANGES)
        nothing = np.empty((0, len(price)), dtype=np.int16), np.empty(0)
        for space, workers in zip(self.spaces, self.workers, strict=True):
            best = np.full(RANGES, -np.inf)
            sink = Sink(*nothing, 0.0, price[space.order], t, best)
            if enumerate_patterns(space.worker, space.scale, sink, _tries(time))[1] != ALL:
                return 0.0
            total += workers * np.maximum.accumulate(best)
        met = np.flatnonzero(total >= asked)
        return t if not len(met) else t * float(met[0]) / RANGES


def _tries(time: TimeLimit | None) -> int:
    """Tries that the time left allows for."""
    left = None if time is None else time.left
    return MOST_TRIES if left is None else min(MOST_TRIES, int(left * TRIES_PER_SECOND))


def _stored(spaces: Sequence[Space], from_t: float, most: int, tries: int) -> tuple[Counts, Ints, Floats] | int:
    """Counts, types and t of the patterns from `from_t` on, by rising t; why not, where there are too many."""
    n = len(spaces[0].order)
    counts, reach = np.empty((most, n), dtype=np.int16), np.empty(most)
    kinds, kept = [], 0
    for kind, space in enumerate(spaces):
        sink = Sink(counts[kept:], reach[kept:], from_t, np.zeros(n), 0.0, np.empty(0))
        found, ended = enumerate_patterns(space.worker, space.scale, sink, tries)
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
    for w, worker in zip(first, worker_spaces(problem, limits, first), strict=True):
        scale = Scale(problem.capacity[:MEMORY, w].copy(), balanced, SAME * problem.most, per_t)
        order = np.argsort(worker.highest - worker.lowest, kind="stable")
        spaces.append(Space(reordered(worker, order), scale, order))
    return tuple(spaces)


def worker_spaces(problem: Problem, limits: Floats, chosen: Ints) -> list[WorkerSpace]:
    """What each of the workers `chosen` may hold within the limits (3,), operators in the problem's order."""
    compiled, slots = problem.compiled(), problem.slots
    tasks, loads = compiled.tasks, compiled.loads
    most = worker_limits(problem, limits)
    highest = np.minimum(slots[:, None], tasks)
    for d in ADDITIVE:
        with np.errstate(divide="ignore", invalid="ignore"):
            fit = np.where(loads[d] > 0, np.floor(most[d][:, None] / loads[d]), np.inf)
        highest = np.minimum(highest, fit).astype(np.int64)
    lowest = np.maximum(0, tasks - (highest.sum(axis=0) - highest))
    total = loads @ tasks
    full = np.minimum(most, total[:, None])
    least = total[:, None] - (full.sum(axis=1)[:, None] - full) - 10 * TOLERANCE * total[:, None]
    least[NET] = 0.0
    fewest = np.maximum(0, problem.tasks - (slots.sum() - slots))
    return [
        WorkerSpace(
            problem=compiled, lowest=lowest[w], highest=highest[w], fewest=int(fewest[w]), slots=int(slots[w]),
            least=least[:, w].copy(), most=most[:, w].copy(),
        )
        for w in chosen
    ]  # fmt: skip


def reordered(space: WorkerSpace, order: Ints) -> WorkerSpace:
    """The same with the operators in another order (n,)."""
    position, problem = np.argsort(order), space.problem
    return space._replace(
        lowest=space.lowest[order],
        highest=space.highest[order],
        problem=problem._replace(
            tasks=problem.tasks[order],
            loads=np.ascontiguousarray(problem.loads[:, order]),
            upstream=position[problem.upstream],
            downstream=position[problem.downstream],
        ),
    )
