"""How soon one rescale can follow another: the stated time, or what it takes on the job at hand, which is learned.

After a rescale metrics settle, a whole interval is measured, and an autopilot has limits of its own; until then an error stays.
The median is learned, since the metrics of a job without records are missing for as long as there are none.
"""

from collections import deque
from statistics import median_low
from typing import Final

REMEMBERED: Final = 5
"""Number of times that the median is of."""


class Pace:
    """Collects the times from the end of a rescale to the first decision that might have been followed by another."""

    def __init__(self, least_between_s: float, learns: bool = True) -> None:
        """Args:
        least_between_s: stated, seconds; counts as one that was seen.
        learns: whether it changes with what is measured.
        """
        self._learns = learns
        self._seen = deque([least_between_s], maxlen=REMEMBERED)

    def observe(self, seconds: float) -> None:
        """Record the time from the end of a rescale to the first decision that might have been followed by another."""
        if self._learns:
            self._seen.append(seconds)

    @property
    def between_s(self) -> float:
        """Expected time from the end of a rescale to the begin of the next, seconds."""
        return median_low(self._seen)
