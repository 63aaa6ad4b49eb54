"""Counters read at intervals, with interpolated values in between."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from models.errors import SluiceError


@dataclass
class Counter:
    """One counter of one task. Flink refreshes its values about once a second, so most readings repeat the last.

    It is assumed to grow evenly between two refreshes.
    """

    may_fall: bool = False
    """Whether it may fall. Busy time may: it is reported as the time that is neither idle nor backpressured, and Flink
    updates those only when they end, or every five seconds."""
    times: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def read(self, time_s: float, value: float, refreshed: bool) -> None:
        """Add a reading.

        Args:
            time_s: when the value was taken, as far as known; at least the time of the reading before.
            refreshed: whether any counter of the same refresh has changed, so that an unchanged value is new, too.

        Raises:
            SluiceError: it went backwards, for example since the task was restarted.
        """
        if self.values and value < self.values[-1] and not self.may_fall:
            raise SluiceError(
                f"a counter went from {self.values[-1]:g} back to {value:g}: the task was restarted while it was "
                f"measured; measure again"
            )
        if refreshed or not self.values:
            self.times.append(max(time_s, self.times[-1]) if self.times else time_s)
            self.values.append(value)

    def covers(self, begin_s: float, end_s: float) -> bool:
        """Whether it was read at or before `begin_s`, and after `end_s`."""
        return len(self.times) > 1 and self.times[0] <= begin_s and self.times[-1] >= end_s

    def longest_gap_s(self, begin_s: float, end_s: float) -> float:
        """The longest time between two refreshes that overlaps the given period, seconds."""
        first, last = max(0, bisect_left(self.times, begin_s) - 1), bisect_left(self.times, end_s) + 1
        return float(np.max(np.diff(self.times[first:last]), initial=0.0))

    def increments(self, boundaries: Sequence[float]) -> np.ndarray:
        """Its growth between consecutive boundaries, float64[boundaries - 1]."""
        return np.diff(np.interp(boundaries, self.times, self.values))

    def at(self, times: Sequence[float]) -> np.ndarray:
        """Its values at the given times, float64[times]; constant before the first reading and after the last."""
        return np.interp(times, self.times, self.values)

    def forget_before(self, time_s: float) -> None:
        """Drop data that is not needed for times from `time_s` on."""
        keep = max(0, bisect_left(self.times, time_s) - 1)
        del self.times[:keep], self.values[:keep]
