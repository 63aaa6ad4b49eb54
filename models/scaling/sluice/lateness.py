"""The budget of late records: the share 1 - attainment of all records may be late.

Notation: r records that came, l of them late, both summed over the past with exponential forgetting (time constant W);
e records expected over a time H; S the time over which a balance is spent.

    balance    (1 - attainment) r - l
    allowance  (1 - attainment) e + balance x min(H / S, 1), at least LEAST (1 - attainment) e

So what was not used is spent over S rather than at once, and what was overspent is made up for.
"""

import math
from typing import Final

LEAST: Final = 0.1
SPENT_S: Final = 1200.0


class LatenessBudget:
    """Counts records and late ones."""

    def __init__(self, attainment: float, memory_s: float, balances: bool = True) -> None:
        """Args:
        attainment: share of the records that must not be late.
        memory_s: W, seconds.
        balances: whether the past counts.
        """
        self._share = 1.0 - attainment
        self._memory_s, self._balances = memory_s, balances
        self._records = self._late = 0.0

    def observe(self, records: float, late: float, seconds: float) -> None:
        """Record that `records` came in `seconds`, of which `late` were late."""
        keep = math.exp(-seconds / self._memory_s)
        self._records = keep * self._records + records
        self._late = keep * self._late + late

    def allowance(self, expected: float, seconds: float) -> float:
        """Records that may be late of the `expected` ones of the next `seconds`."""
        even = self._share * expected
        if not self._balances:
            return even
        balance = self._share * self._records - self._late
        return max(even + balance * min(seconds / SPENT_S, 1.0), LEAST * even)

    @property
    def late_share(self) -> float:
        """Share of the remembered records that were late; 0 before the first."""
        return self._late / self._records if self._records > 0 else 0.0
