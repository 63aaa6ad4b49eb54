"""Whether a source keeps up with the arriving records; if not, its rate is what the job achieves, not what arrives.

busyness, backpressure   shares of time of the source's fullest task, 0-1; the busyness of a chained source includes the
                         operators behind it in the chain
pending                  records that wait before the source (Flink's `pendingRecords`, FLIP-33), all tasks together
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

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


@dataclass(frozen=True)
class SourceReading:
    """One reading of a job's source rate."""

    rate: float
    """Records/s that all sources together emit, as read and not validated."""
    sources: tuple[SourceLoad, ...] = ()
    """Empty if the rate is that of arriving records."""


def pending_records(sources: Sequence[SourceLoad]) -> float | None:
    """Records that wait before all sources; None where one reports none."""
    waiting = [one.pending for one in sources]
    return sum(one for one in waiting if one is not None) if waiting and None not in waiting else None


def overload(reading: SourceReading, growth_per_s: float | None) -> str | None:
    """Why the sources may emit less than what arrives; None if there is no sign of that.

    Args:
        growth_per_s: by how much `pending_records` grew since the last reading, records/s; None where that is unknown.
    """
    for source in reading.sources:
        if source.backpressure is not None and source.backpressure > MOST_BACKPRESSURE:
            return f"the source {source.name!r} is backpressured {source.backpressure:.0%} of the time"
        if source.busyness is not None and source.busyness >= FULLY_BUSY:
            return f"the source {source.name!r} is busy {source.busyness:.0%} of the time"
    if growth_per_s is not None and growth_per_s > LEAST_GROWTH * reading.rate:
        return f"the pending records of the sources grow by {growth_per_s:,.0f}/s"
    return None
