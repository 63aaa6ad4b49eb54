"""The budget of late records, and what a late record is worth: the share 1 - attainment of all records may be late.

The fewest task-seconds within a budget for the whole time are those that minimise, at every decision,

    task-seconds + price x work x late records

with one price for all of the time (the Lagrange multiplier of the budget): so the budget is spent where that saves most. The
price is unknown beforehand; it is taken to be PRICE / (1 - attainment). A price that fell while the budget was not spent, and
rose when it was overspent, held the attainment less often and saved nothing (benchmarks/scaling.md).
"""

import math
from typing import Final

PRICE: Final = 0.15
"""Price at the budget's own share of late records, times that share. Set on workloads of the arena's patterns with seeds 11
and 12."""


class LatenessBudget:
    """Counts records and late ones, with exponential forgetting."""

    def __init__(self, attainment: float, memory_s: float) -> None:
        """Args:
        attainment: share of the records that must not be late.
        memory_s: time constant of forgetting, seconds.
        """
        self.price = PRICE / (1.0 - attainment)
        """Of a late record, in work: the task-seconds that a record takes."""
        self._memory_s = memory_s
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
