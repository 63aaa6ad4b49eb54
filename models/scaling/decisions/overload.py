"""The rate at which records arrive at a job, from what its sources emit, how loaded they are, and what waits before them.

busyness, backpressure   shares of time of the source's fullest task, 0-1; the busyness of a chained source includes the
                         operators behind it in the chain
pending                  records that wait before the source (Flink's `pendingRecords`, FLIP-33), all tasks together
rate                     records/s that the sources emit, a mean over METER_S
growth                   of the pending records, records/s, since the newest reading that is METER_S old: over the same time

    arriving = rate + growth     where every source reports its pending records
    arriving = rate              otherwise, unless a source is overloaded: its rate is what the job achieves, and more may
                                 arrive

An overloaded job is never planned smaller, whatever its lag does: while it catches up it needs its tasks, and records that
expire shrink the lag, too.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

METER_S: Final = 60.0
"""Time that a rate is the mean of, seconds: that of Flink's meters."""
MOST_BACKPRESSURE: Final = 0.1
"""Backpressure up to which a source counts as keeping up; buffers even out short spells."""
FULLY_BUSY: Final = 0.95
LEAST_GROWTH: Final = 0.05
"""Growth of the pending records from which it counts, as a share of the emitted rate."""


@dataclass(frozen=True)
class SourceLoad:
    """How loaded a source vertex is; None where Flink reports no such metric."""

    name: str
    busyness: float | None = None
    backpressure: float | None = None
    pending: float | None = None
    pending_tasks: int = 0
    """Tasks that report their pending records; tasks without a partition do not."""


@dataclass(frozen=True)
class SourceReading:
    """One reading of a job's source rate."""

    rate: float
    """Records/s that all sources together emit, as read and not validated."""
    sources: tuple[SourceLoad, ...] = ()
    """Empty if the rate is that of arriving records."""


@dataclass(frozen=True)
class Growth:
    """How fast the pending records grow; below 0 while they shrink."""

    per_s: float
    """Records/s."""
    over_s: float
    """The time that it is the mean of."""


@dataclass(frozen=True)
class ArrivingRate:
    """Bounds of the rate of arriving records, records/s."""

    estimate: float
    least: float
    most: float
    """Infinite if the job may be held back."""
    doubt: str | None = None
    """Why a bound is open, in words."""


class PendingRecords:
    """Follows the records that wait before the sources. Give it every reading, in order of time."""

    def __init__(self) -> None:
        self._seen: list[tuple[float, float]] = []
        self._tasks = 0

    def see(self, time_s: float, sources: Sequence[SourceLoad]) -> Growth | None:
        """Their growth since the newest reading that is METER_S old, or the oldest; None where it is unknown.

        It begins again when other tasks report them: these may wait before partitions that were not counted.
        """
        pending, tasks = pending_records(sources), sum(one.pending_tasks for one in sources)
        if pending is None or tasks != self._tasks:
            self._seen = []
        self._tasks = tasks
        if pending is None:
            return None
        while len(self._seen) > 1 and time_s - self._seen[1][0] >= METER_S:
            self._seen.pop(0)
        self._seen.append((time_s, pending))
        before_s, before = self._seen[0]
        return Growth((pending - before) / (time_s - before_s), time_s - before_s) if time_s > before_s else None


def pending_records(sources: Sequence[SourceLoad]) -> float | None:
    """Records that wait before all sources; None where one reports none."""
    waiting = [one.pending for one in sources]
    return sum(one for one in waiting if one is not None) if waiting and None not in waiting else None


def arriving_rate(reading: SourceReading, growth: Growth | None) -> ArrivingRate:
    """Bounds of the rate at which records arrive.

    Args:
        growth: of the pending records up to this reading; None where it is unknown.
    """
    rate, why = reading.rate, overload(reading, growth)
    most = math.inf if why is not None else rate
    if pending_records(reading.sources) is None:
        return ArrivingRate(rate, rate, most, why)
    if growth is None or growth.over_s < METER_S:
        unknown = "the pending records of the sources are not known for a minute yet"
        why = unknown if why is None else f"{why}, and {unknown}"
        return ArrivingRate(rate, 0.0, math.inf if growth is None else most, why)
    arriving = max(0.0, rate + growth.per_s)
    return ArrivingRate(arriving, arriving, max(most, arriving), why)


def overload(reading: SourceReading, growth: Growth | None) -> str | None:
    """Why the sources may emit less than what arrives; None if there is no sign of that."""
    for source in reading.sources:
        if source.backpressure is not None and source.backpressure > MOST_BACKPRESSURE:
            return f"the source {source.name!r} is backpressured {source.backpressure:.0%} of the time"
        if source.busyness is not None and source.busyness >= FULLY_BUSY:
            return f"the source {source.name!r} is busy {source.busyness:.0%} of the time"
    if growth is not None and growth.per_s > LEAST_GROWTH * reading.rate:
        return f"the pending records of the sources grow by {growth.per_s:,.0f}/s"
    return None
