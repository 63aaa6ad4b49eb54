"""The budget for low latency: a mean number of tasks over time, controlled by the price of late records.

Notation: n tasks that ran, m tasks that an even load would have needed, at least one of each operator; both summed over
the past with exponential forgetting; B the budget. The price of late records is

    price = late_price x min(max((B m / n)^SENSITIVITY, LEAST), MOST)

so it rises while less than the budget is used, and falls while more is. A fixed price that suits one job and workload is
too high for a job whose skew needs more tasks, and too low for one that hardly changes; the budget suits all.
"""

import math
from typing import Final

SENSITIVITY: Final = 20.0
LEAST: Final = 0.05
MOST: Final = 5.0


class Spending:
    """Sums up the tasks that ran and the tasks that were needed."""

    def __init__(self, budget: float, memory_s: float) -> None:
        """Args:
        budget: tasks over those that an even load needs, mean over time.
        memory_s: time constant of forgetting the past, seconds.
        """
        self._budget, self._memory_s = budget, memory_s
        self._paid = self._needed = 0.0

    def observe(self, tasks: float, needed: float, seconds: float) -> None:
        """Record that `tasks` ran for `seconds`, where `needed` would have been enough."""
        keep = math.exp(-seconds / self._memory_s)
        self._paid = keep * self._paid + tasks * seconds
        self._needed = keep * self._needed + needed * seconds

    @property
    def price_factor(self) -> float:
        """Factor on the price of late records; 1 before the first record."""
        if self._paid == 0:
            return 1.0
        return float(min(max((self._budget * self._needed / self._paid) ** SENSITIVITY, LEAST), MOST))
