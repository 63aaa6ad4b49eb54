"""Counters that are read at intervals, and their interpolated values in between."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from models.errors import SluiceError


@dataclass
class Counter:
    """One counter of one task. Flink refreshes its values about once a second, so most readings repeat the last.

    Between two times at which its values were taken it grows evenly.
    """

    may_fall: bool = False
    """Busy time may: it is reported as the time that is neither idle nor backpressured,
    and Flink brings those up to date only when they end, or every five seconds."""
    times: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def read(self, time_s: float, value: float, refreshed: bool) -> None:
        """Take note of a reading.

        Args:
            time_s: when the value was taken, as far as that is known; no earlier than that of the reading before counts.
            refreshed: whether any counter of the same refresh has changed, so that an unchanged value is news, too.

        Raises:
            SluiceError: it went backwards, as when the task was restarted: what was measured is of two runs.
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
        """Whether it was read before `begin_s` (or at it) and after `end_s`."""
        return len(self.times) > 1 and self.times[0] <= begin_s and self.times[-1] >= end_s

    def longest_gap_s(self, begin_s: float, end_s: float) -> float:
        """The longest time without a refresh that touches the given stretch, seconds."""
        first, last = max(0, bisect_left(self.times, begin_s) - 1), bisect_left(self.times, end_s) + 1
        return float(np.max(np.diff(self.times[first:last]), initial=0.0))

    def increments(self, boundaries: Sequence[float]) -> np.ndarray:
        """What it grew by from each boundary to the next, float64[boundaries - 1]."""
        return np.diff(np.interp(boundaries, self.times, self.values))

    def at(self, times: Sequence[float]) -> np.ndarray:
        """Its values at the given times, float64[times]; before the first reading and after the last, those."""
        return np.interp(times, self.times, self.values)

    def forget_before(self, time_s: float) -> None:
        """Drop what is not needed for times from `time_s` on."""
        keep = max(0, bisect_left(self.times, time_s) - 1)
        del self.times[:keep], self.values[:keep]
