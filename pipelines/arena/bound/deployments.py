"""The fewest tasks for a rate, as a convex function: the lower hull of all deployments of a job.

| symbol | meaning | unit |
|---|---|---|
| C_i(p), S_i | `costs.OperatorLimits.capacity`, `costs.buffered` | records/s, records |
| D, d | least time from the end of a rescale to the next one; least downtime | s |
| B_i(p) | C_i(p) + max(0, S_i + (h - d) C_i(p)) / (D + d), where h is a step of the simulator | records/s |

In D + d seconds or more of one deployment, operator i processes C_i for all but d of them, and the next rescale forgives
what waits in buffers, at most S_i: never more than B_i a second. E is the lower hull of the points (B, tasks) of all
deployments, B = min_i B_i.

S_i grows with the tasks of all operators. If no operator of a deployment has more than m tasks above what its rate needs by
C, and one has m, then the S_i are at most those of m more tasks of each, and the deployment has m more at least. Rates are on a
grid and m in ranges; a point takes the better end of both. Hot keys lower C_i the more, the fewer tasks send to i.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import inf
from typing import Final

import numpy as np

from models.job import Job
from pipelines.arena.bound.costs import OperatorLimits, buffered
from testbeds.simulator.settings import Physics

GRID: Final = 1.002
"""Ratio of neighbouring rates."""
_RANGES: Final = ((0, 0), (1, 1), (2, 2), (3, 4), (5, 8), (9, 16), (17, 64), (65, 256), (257, 10_000))
"""Values of m."""
AMPLE: Final = 1.4
"""Capacity over the highest useful rate from which hot keys are left out."""
MOST_ADDED: Final = 4
"""Tasks added upstream of hot keys that are tried; with more, those tasks alone are counted."""


@dataclass(frozen=True)
class Hull:
    """The convex function E: mean tasks for a mean rate, in segments of ascending slope."""

    least_tasks: float
    """E(0): one task of each operator."""
    free: float
    """Rate of the fewest tasks, records/s."""
    width: np.ndarray
    """Rate of each segment after that, records/s, float64[segments]."""
    slope: np.ndarray
    """Tasks per record/s in each segment, ascending, float64[segments]."""
    favour: float = 0.0
    """Records of the sources by which hot keys can be more favourable than in the mean."""

    @property
    def most(self) -> float:
        """The highest rate that all slots take, records/s."""
        return self.free + float(np.sum(self.width))

    def tasks(self, rate: float) -> float:
        """E(rate); infinite above the highest rate."""
        if rate > self.most * (1 + 1e-12):
            return float("inf")
        before = np.concatenate([[0.0], np.cumsum(self.width)])[:-1]
        return self.least_tasks + float(np.sum(np.clip(rate - self.free - before, 0.0, self.width) * self.slope))


def hull(
    job: Job,
    limits: Sequence[OperatorLimits],
    slots: int,
    downtime_s: float,
    dwell_s: float,
    physics: Physics,
    most: float = inf,
) -> Hull:
    """The hull of all deployments on `slots` slots.

    Args:
        downtime_s, dwell_s: d and D.
        most: rate beyond which capacity is of no use, records/s.
    """
    first = min(float(limit.capacity[0]) for limit in limits)
    points = [(min(first, most), float(len(limits)))]
    by_name, favours = {limit.name: limit for limit in limits}, [0.0]

    @cache
    def hot(name: str, tasks_upstream: int) -> tuple[np.ndarray, np.ndarray]:
        """Capacity beside hot keys, and what a deployment can do beyond it, by tasks; as without them where that is ample."""
        limit = by_name[name]
        capacity, once = limit.capacity.copy(), np.zeros(slots)
        for tasks in range(1, min(_first(capacity, AMPLE * most), slots) + 1):
            capacity[tasks - 1], once[tasks - 1], favour = limit.with_hot_keys(tasks, tasks_upstream, physics)
            favours.append(favour)
        return capacity, once

    def most_in(capacity: np.ndarray, more: np.ndarray | float) -> np.ndarray:
        """B of an operator with `more` records beside what it has time for, by its tasks."""
        spared = np.maximum(more + (physics.step_s - downtime_s) * capacity, 0.0) / (dwell_s + downtime_s)
        return np.asarray(np.maximum.accumulate(capacity + spared, axis=-1))

    def tasks_for(rate: float, extended: dict[str, int]) -> tuple[int, int]:
        """Fewest tasks of all operators without hot keys, and with them."""
        waiting = buffered(job, extended, physics)
        fewest = {o.name: _first(most_in(o.capacity, waiting[o.name]), rate) for o in limits}
        more = 0
        for limit in limits:
            if limit.hot is None:
                continue
            upstream, found = limit.hot.upstream, []
            for added in range(MOST_ADDED + 1):
                capacity, once = hot(limit.name, fewest[upstream] + added)
                own = _first(most_in(capacity, waiting[limit.name] + once), rate)
                found.append(added + own - fewest[limit.name])
            more += min(*found, MOST_ADDED + 1)
        plain = sum(fewest.values())
        return plain, plain + more

    rate = min(first, most) / GRID
    while rate < most:
        most_needed = {o.name: _first(o.capacity, rate * GRID) for o in limits}
        found = len(points)
        for low, high in _RANGES:
            plain, with_hot = tasks_for(rate, {name: tasks + high for name, tasks in most_needed.items()})
            tasks = max(plain + low, with_hot)
            if tasks <= slots:
                points.append((min(rate * GRID, most), float(tasks)))
        if len(points) == found:
            break
        rate *= GRID
    return replace(_lower_hull(points), favour=max(favours))


def _first(capacity: np.ndarray, rate: float) -> int:
    """The fewest tasks that take a rate, by the capacities of 1, 2, ... tasks."""
    return int(np.searchsorted(capacity, rate, side="left")) + 1


def _lower_hull(points: Sequence[tuple[float, float]]) -> Hull:
    least = min(tasks for _, tasks in points)
    free = max(rate for rate, tasks in points if tasks == least)
    cheapest: dict[float, float] = {}
    for rate, tasks in points:
        cheapest[rate] = min(tasks, cheapest.get(rate, np.inf))
    kept = [(free, least)]
    for corner in sorted(p for p in cheapest.items() if p[0] > free):
        while len(kept) > 1 and _slope(kept[-1], corner) <= _slope(kept[-2], kept[-1]):
            kept.pop()
        kept.append(corner)
    corners = np.array(kept)
    width = np.diff(corners[:, 0])
    return Hull(least, free, width, np.diff(corners[:, 1]) / width)


def _slope(a: tuple[float, float], b: tuple[float, float]) -> float:
    return (b[1] - a[1]) / (b[0] - a[0])
