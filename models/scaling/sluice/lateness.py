"""The budget of late records, and what a late record is worth: the share 1 - attainment of all records may be late.

The fewest task-seconds within a budget for the whole time are those that minimise, at every decision,

    task-seconds + price x work x late records

with one price for all of the time (the Lagrange multiplier of the budget): so the budget is spent where that saves most. The
price is unknown beforehand. It begins with PRICE / (1 - attainment) and follows what was spent: with s the share of late
records of the past, over the share that may be late, it is multiplied by sqrt(UNSPENT^2 + (1 - UNSPENT^2) s), at most MOST.
"""

import math
from typing import Final

PRICE: Final = 0.15
"""Price at the budget's own share of late records, times that share. Set on workloads of the arena's patterns with seeds 11
and 12."""
UNSPENT: Final = 0.4
"""Factor on the price while nothing is late."""
MOST: Final = 4.0


class LatenessBudget:
    """Counts records and late ones, with exponential forgetting."""

    def __init__(self, attainment: float, memory_s: float, follows: bool = True) -> None:
        """Args:
        attainment: share of the records that must not be late.
        memory_s: time constant of forgetting, seconds.
        follows: whether the price follows what was spent.
        """
        self._share = 1.0 - attainment
        self._memory_s, self._follows = memory_s, follows
        self._records = self._late = 0.0

    def observe(self, records: float, late: float, seconds: float) -> None:
        """Record that `records` came in `seconds`, of which `late` were late."""
        keep = math.exp(-seconds / self._memory_s)
        self._records = keep * self._records + records
        self._late = keep * self._late + late

    @property
    def late_share(self) -> float:
        """Share of the remembered records that were late; 0 before the first."""
        return self._late / self._records if self._records > 0 else 0.0

    @property
    def price(self) -> float:
        """Of a late record, in work: the task-seconds that a record takes."""
        factor = 1.0
        if self._follows and self._records > 0:
            spent = self.late_share / self._share
            factor = min(math.sqrt(UNSPENT**2 + (1 - UNSPENT**2) * spent), MOST)
        return PRICE / self._share * factor
