"""The fewest tasks for a rate, as a convex function: the lower hull of all deployments of a job.

| symbol | meaning | unit |
|---|---|---|
| C_i(p), S_i | `costs.OperatorLimits.capacity`, `costs.buffered` | records/s, records |
| D, d | least time from the end of a rescale to the next one; least downtime | s |
| B_i(p) | C_i(p) + max(0, S_i + (h - d) C_i(p)) / (D + d), where h is a step of the simulator | records/s |

In D + d seconds or more of one deployment, operator i processes C_i for all but d of them, and the next rescale forgives
what waits in buffers, at most S_i: never more than B_i a second. E is the lower hull of the points (B, tasks) of all
deployments, B = min_i B_i.

S_i grows with the tasks of all operators. A deployment of m tasks more than its rate needs has at most m more of each
operator, so its S_i are those of that many. Rates are on a grid and m in ranges; a point takes the better end of both.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from models.job import Job
from pipelines.arena.bound.costs import OperatorLimits, buffered
from testbeds.simulator.settings import Physics

GRID: Final = 1.002
"""Ratio of neighbouring rates."""
_RANGES: Final = ((0, 0), (1, 1), (2, 2), (3, 4), (5, 8), (9, 16), (17, 64), (65, 256), (257, 10_000))
"""Tasks more than needed."""


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
    job: Job, limits: Sequence[OperatorLimits], slots: int, downtime_s: float, dwell_s: float, physics: Physics
) -> Hull:
    """The hull of all deployments on `slots` slots.

    Args:
        downtime_s, dwell_s: d and D.
    """
    first = min(float(limit.capacity[0]) for limit in limits)
    points = [(first, float(len(limits)))]
    period_s = dwell_s + downtime_s

    def needed(rate: float, waiting: dict[str, float]) -> int:
        tasks = 0
        for limit in limits:
            spared = np.maximum(waiting[limit.name] + (physics.step_s - downtime_s) * limit.capacity, 0.0) / period_s
            tasks += int(np.searchsorted(limit.capacity + spared, rate, side="left")) + 1
        return tasks

    rate = first / GRID
    while True:
        most_needed = {o.name: int(np.searchsorted(o.capacity, rate * GRID)) + 1 for o in limits}
        found = len(points)
        for low, high in _RANGES:
            extended = {name: tasks + high for name, tasks in most_needed.items()}
            tasks = needed(rate, buffered(job, extended, physics)) + low
            if tasks <= slots:
                points.append((rate * GRID, float(tasks)))
        if len(points) == found:
            return _lower_hull(points)
        rate *= GRID


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
