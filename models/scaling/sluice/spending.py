"""What low latency may cost: a mean over time, held by the price of late records.

Notation: n tasks that ran, m tasks that an evenly spread load would have needed, at least one of each operator; both summed
over the past with exponential forgetting; B the budget. The price of late records is

    price = late_price x min(max((B m / n)^SENSITIVITY, LEAST), MOST)

so it rises while less than the budget is used, and falls while more is. A price that is right for one job and workload is too
high for another whose skew needs more tasks, or too low for one that hardly changes; the budget says the same for all.
"""

import math
from typing import Final

SENSITIVITY: Final = 20.0
LEAST: Final = 0.05
MOST: Final = 5.0


class Spending:
    """Sums up what was paid for and what was needed."""

    def __init__(self, budget: float, memory_s: float) -> None:
        """Args:
        budget: tasks over those that an even load needs, mean over time.
        memory_s: over which the past is forgotten, seconds.
        """
        self._budget, self._memory_s = budget, memory_s
        self._paid = self._needed = 0.0

    def observe(self, tasks: float, needed: float, seconds: float) -> None:
        """`tasks` ran for `seconds`, where `needed` would have done."""
        keep = math.exp(-seconds / self._memory_s)
        self._paid = keep * self._paid + tasks * seconds
        self._needed = keep * self._needed + needed * seconds

    @property
    def price_factor(self) -> float:
        """By which the price of late records is multiplied; 1 until something was paid."""
        if self._paid == 0:
            return 1.0
        return float(min(max((self._budget * self._needed / self._paid) ** SENSITIVITY, LEAST), MOST))
