"""Rates from readings of a log's end and of a consumer group's lag.

| symbol | meaning | unit |
|---|---|---|
| A(t) | records that have arrived in the log | records |
| L(t) | lag: records that the group has not committed | records |
| C(t) = A(t) - L(t) | records that it has committed | records |

A group commits in steps (Flink: at checkpoints), while records arrive all the time. Between two steps L grows although the job
keeps up, so rates are taken from step to step: there A, L and C belong to the same moment.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from models.errors import InvalidInput


@dataclass(frozen=True)
class LagPoint:
    """One reading."""

    time_s: float
    arrived: float
    """A(t), from any origin."""
    lag: float
    """L(t)."""

    @property
    def consumed(self) -> float:
        """C(t)."""
        return self.arrived - self.lag


@dataclass(frozen=True)
class LagWindow:
    """Between two commits."""

    seconds: float
    arriving: float
    """Records/s that arrived."""
    consumed: float
    """Records/s that were committed."""
    lag_begin: float
    lag_end: float

    @property
    def kept_up(self) -> float:
        """What was taken of what arrived, records/s; reducing an older lag does not count."""
        return min(self.arriving, self.consumed)


def steps(points: Sequence[LagPoint]) -> list[LagPoint]:
    """The readings that are the first after a commit."""
    return [now for before, now in pairwise(points) if now.consumed > before.consumed]


def window(points: Sequence[LagPoint]) -> LagWindow:
    """Rates from the first commit to the last; where there are not two, from the first reading to the last.

    Raises:
        InvalidInput: there are no two readings, one after the other.
    """
    chosen = found if len(found := steps(points)) > 1 else list(points)
    if len(chosen) < 2 or chosen[-1].time_s <= chosen[0].time_s:
        raise InvalidInput(f"rates need two readings of the lag, one after the other, but there are {len(points)}")
    begin, end = chosen[0], chosen[-1]
    seconds = end.time_s - begin.time_s
    arriving = (end.arrived - begin.arrived) / seconds
    return LagWindow(seconds, arriving, (end.consumed - begin.consumed) / seconds, begin.lag, end.lag)
