"""The MST of a twin between the sizes that are simulated, by the fullest task of each size.

Notation:

    p_i      tasks that BIDS2 gives operator i at n slots
    c_i      seconds of a task of operator i for each record of the sources, CPU time and waits outside the job
    h_i      share of its records with a key that stays hot
    e(p)     largest share of the key groups that one of p tasks has; 1 / p where the input is not hashed

    bound(n) = min_i 1 / (c_i (h_i + (1 - h_i) e(p_i)))                                           (1)
    MST(n)   = efficiency(n) bound(n),   efficiency(n) interpolated between simulated sizes       (2)

(1) is the source rate at which a task is busy all the time, so that no MST is above it for long. Flink's key groups make it
a staircase: by default 342 to 511 tasks have 1,024 groups, so that the fullest has three of them, and from 512 on two. A
straight line between simulated sizes is off by up to half there; what contention and bursts take from (1) changes
slowly with the size.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from models.capacity.growth.twin import TwinCurve
from models.capacity.observation import OperatorRates
from models.capacity.twin.keys import FOR_GOOD, even_share
from models.capacity.twin.ladder import tasks_of
from models.dataflow import Partitioning
from models.errors import Infeasible
from models.job import Job
from models.keys.groups import MOST_KEY_GROUPS

SPACING: Final = 1.03
"""Ratio of neighbouring sizes between the simulated ones."""
STEP: Final = 0.02
"""A step of log bound(n) that is kept where it is."""


@dataclass(frozen=True)
class FullestTask:
    """What (1) needs of a job."""

    job: Job
    operators: tuple[OperatorRates, ...]
    """For BIDS2."""

    def bound(self, tasks: Mapping[str, int]) -> float:
        """(1) for a parallelism, records/s; infinite where no task has anything to do."""
        busy = [self._busy_s(o, tasks[o.name]) for o in self.operators]
        return 1 / max(busy) if max(busy) > 0 else float("inf")

    def bound_at(self, slots: int) -> float:
        """(1) for what BIDS2 makes of so many slots.

        Raises:
            Infeasible: the job cannot use so many.
        """
        return self.bound(tasks_of(self.job, self.operators, slots)[0])

    def _busy_s(self, rates: OperatorRates, tasks: int) -> float:
        """Of the fullest task, for each record of the sources."""
        operator = self.job.operator(rates.name)
        into = {e.partitioning for e in self.job.upstream_edges(rates.name)}
        if Partitioning.BROADCAST in into:
            return 0.0
        share, keys = 1 / tasks, operator.keys
        if Partitioning.HASH in into:
            groups = self.job.key_groups
            share = even_share(tasks, groups) if tasks <= (groups or MOST_KEY_GROUPS) else share
            if keys is not None and (keys.hot_period_records or 0) >= FOR_GOOD:
                share = keys.hot_share + (1 - keys.hot_share) * share
        return rates.records_in_per_source_record * operator.cost.thread_s * share


@dataclass(frozen=True)
class Simulated:
    """One simulated size."""

    slots: int
    tasks: Mapping[str, int]
    mst: float
    lasts: bool
    """Whether it was observed for long enough for (1) to hold; short searches fill buffers first."""


def curve_of(memory_mb: Sequence[float], rows: Sequence[Sequence[Simulated]], fullest: FullestTask) -> TwinCurve:
    """The curve through simulated sizes, (2) between them.

    Args:
        rows: for each memory the same sizes, ascending, two at least.
    """
    sizes = [one.slots for one in rows[0]]
    filled = _between(sizes[0], sizes[-1], fullest.bound_at)
    known = sorted({*sizes, *filled})
    return TwinCurve(
        memory_mb=tuple(memory_mb),
        task_slots=tuple(float(n) for n in known),
        mst=tuple(tuple(_row(row, known, filled, fullest)) for row in rows),
    )


def _row(
    row: Sequence[Simulated], known: Sequence[int], filled: Mapping[int, float], fullest: FullestTask
) -> list[float]:
    bounds = [fullest.bound(one.tasks) for one in row]
    mst = [min(one.mst, bound) if one.lasts else one.mst for one, bound in zip(row, bounds, strict=True)]
    at, simulated = np.log([one.slots for one in row]), dict(zip([one.slots for one in row], mst, strict=True))
    efficiency = np.log(mst) - np.log(bounds)
    return [
        simulated[n] if n in simulated else filled[n] * float(np.exp(np.interp(np.log(n), at, efficiency)))
        for n in known
    ]


def _between(first: int, last: int, bound_at: Callable[[int], float]) -> dict[int, float]:
    """Sizes and their bounds: about SPACING apart, and both sides of each STEP."""
    found: dict[int, float] = {}
    for n in range(first, last + 1):
        try:
            found[n] = bound_at(n)
        except Infeasible:
            continue
    kept, spaced = set[int](), float(first)
    for before, after in zip(list(found), list(found)[1:], strict=False):
        if np.log(found[after] / found[before]) >= STEP:
            kept |= {before, after}
        if after >= spaced * SPACING:
            kept.add(after)
            spaced = after
    return {n: found[n] for n in sorted(kept)}
