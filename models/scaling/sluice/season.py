"""The period of a rate that repeats itself, found from the data: the highest peak of its autocorrelation."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LEAST_CORRELATION: Final = 0.5
"""Autocorrelation at the period from which the rate counts as seasonal."""
LEAST_PERIOD: Final = 12
"""Steps; shorter ones are left to the trend."""


def find_period(rates: Array) -> int | None:
    """Period of `rates`, shape (steps,), in steps; None without one, or with less than two periods of history.

    The autocorrelation is that of the rates less their mean, divided by the number of pairs. It must fall below 0 before the
    peak, so that a slow trend is not taken for a season. It may be a multiple of the shortest period, which serves as well.
    """
    n = len(rates)
    centred = rates - np.mean(rates)
    variance = float(np.mean(centred**2))
    if n < 2 * LEAST_PERIOD or variance <= 1e-12 * float(np.mean(rates)) ** 2:
        return None
    spectrum = np.fft.rfft(centred, 2 * n)
    lags = np.arange(n // 2 + 1)
    correlation = np.fft.irfft(np.abs(spectrum) ** 2)[: len(lags)] / (n - lags) / variance
    negative = np.flatnonzero(correlation < 0)
    if not len(negative):
        return None
    first = max(int(negative[0]), LEAST_PERIOD)
    if first >= len(lags):
        return None
    best = first + int(np.argmax(correlation[first:]))
    return best if correlation[best] >= LEAST_CORRELATION else None
