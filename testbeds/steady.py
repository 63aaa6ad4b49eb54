"""Whether a job has reached its full speed: code is compiled while it runs, so a record costs less and less."""

from collections.abc import Sequence
from typing import Final

WINDOWS: Final = 3
SHARE: Final = 0.05


def is_steady(rates: Sequence[float]) -> bool:
    """Whether none of the last WINDOWS was faster than the fastest before them by more than SHARE.

    Args:
        rates: records/s of windows of one length, in order.
    """
    return len(rates) > WINDOWS and max(rates[-WINDOWS:]) <= (1 + SHARE) * max(rates[:-WINDOWS])
