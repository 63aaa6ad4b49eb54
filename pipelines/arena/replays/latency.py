"""How long records waited in the input queue (evaluation of autoscalers, section 5.1), from two cumulative curves.

Notation: A(t) records that arrived until t, R(t) records read until t, both linear within a reporting interval, R <= A.
Records are read in order of arrival, so record n waits

    w(n) = R^-1(n) - A^-1(n)

which is linear between the n at which either curve bends. Percentiles are over all records that arrived. Ruling: a record
that was not read by the end counts with the time it has waited by then, a lower bound; without it, a job that stops reading
would look fast. The resolution is a reporting interval: a record that is read in the interval of its arrival waits 0 if
nothing waited at its ends.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

_NO_TIME_S: Final = 1e-9
"""Waiting times closer than this count as equal."""
_ROUNDING: Final = 1e-9
"""Largest rounding error, as a share of the records."""


@dataclass(frozen=True)
class Waiting:
    """The distribution of the waiting times of records: linear between values, each of which appears twice, before and
    after its point weight."""

    values_s: np.ndarray
    reached: np.ndarray
    """Share of the records that waited at most this long, ascending to 1."""

    def quantiles(self, shares: Sequence[float]) -> list[float]:
        """Seconds within which each share of the records was read."""
        values, reached = self.values_s, self.reached
        right = np.clip(np.searchsorted(reached, np.asarray(shares) - _ROUNDING), 1, len(values) - 1)
        low, high = reached[right - 1], reached[right]
        part = np.clip(np.divide(shares - low, high - low, out=np.ones_like(low), where=high > low), 0.0, 1.0)
        return [float(v) for v in values[right - 1] + part * (values[right] - values[right - 1])]

    def share_within(self, limit_s: float) -> float:
        """Share of the records that waited at most `limit_s`."""
        values, reached, limit_s = self.values_s, self.reached, limit_s + _NO_TIME_S
        last = int(np.searchsorted(values, limit_s, side="right")) - 1
        if last < 0:
            return 0.0
        if last == len(values) - 1:
            return 1.0
        part = (limit_s - values[last]) / (values[last + 1] - values[last])
        return float(min(reached[last] + part * (reached[last + 1] - reached[last]), 1.0))


def waiting(arrived: np.ndarray, read: np.ndarray, interval_s: float, skipped: int = 0) -> Waiting | None:
    """How long records waited; None if none arrived.

    Args:
        arrived: records that arrived in each interval; float64[intervals].
        read: records read in each interval.
        skipped: intervals at the beginning whose records do not count.
    """
    starts, ends, weights = _segments(arrived, read, interval_s, skipped)
    total = float(np.sum(weights))
    if total <= 0:
        return None
    return Waiting(*_distribution(np.minimum(starts, ends), np.maximum(starts, ends), weights / total))


def waiting_s(arrived: np.ndarray, read: np.ndarray, interval_s: float) -> np.ndarray:
    """How long the next record to read has waited at the end of each interval, s; 0 where none waits."""
    came, gone, times = _curves(arrived, read, interval_s)
    since = times - _inverse(came, times, gone, after=True)
    return np.asarray(np.maximum(np.where(came - gone > _tolerance(came), since, 0.0), 0.0)[1:])


def _curves(arrived: np.ndarray, read: np.ndarray, interval_s: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A, R and t at the ends of intervals, float64[intervals + 1]."""
    came = np.concatenate([[0.0], np.cumsum(arrived)])
    gone = np.minimum(np.concatenate([[0.0], np.cumsum(read)]), came)
    return came, np.maximum.accumulate(gone), interval_s * np.arange(len(came))


def _tolerance(came: np.ndarray) -> float:
    """Largest rounding error of the sums, records."""
    return float(came[-1]) * 1e-9


def _segments(
    arrived: np.ndarray, read: np.ndarray, interval_s: float, skipped: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sections of records with linear waiting times: that of the first, of the last, and the number of records."""
    came, gone, times = _curves(arrived, read, interval_s)
    bends = np.unique(np.concatenate([came, gone]))
    bends = bends[bends >= came[skipped]]
    first, last = bends[:-1], bends[1:]
    # Unread records count as read at the end.
    out_first = _inverse(gone, times, first, after=True)
    out_last = np.where(last <= gone[-1], _inverse(gone, times, last, after=False), times[-1])
    starts = out_first - _inverse(came, times, first, after=True)
    ends = out_last - _inverse(came, times, last, after=False)
    return np.maximum(starts, 0.0), np.maximum(ends, 0.0), last - first


def _inverse(curve: np.ndarray, times: np.ndarray, counts: np.ndarray, *, after: bool) -> np.ndarray:
    """When a cumulative curve reaches `counts`: if it stays there, the end of that time (`after`) or its beginning."""
    right = np.clip(np.searchsorted(curve, counts, side="right" if after else "left"), 1, len(curve) - 1)
    low, high = curve[right - 1], curve[right]
    part = np.clip(np.divide(counts - low, high - low, out=np.ones_like(counts), where=high > low), 0.0, 1.0)
    return np.asarray(times[right - 1] + part * (times[right] - times[right - 1]))


def _distribution(low: np.ndarray, high: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values, and the cumulative weight at each, where every weight is spread evenly from `low` to `high`.

    Each value appears twice, before and after its point weight; between values the cumulative weight is linear.
    """
    values, at = np.unique(np.concatenate([low, high]), return_inverse=True)
    first, last = at[: len(low)], at[len(low) :]
    width = values[last] - values[first]
    spread = width > _NO_TIME_S
    density = np.divide(weights, width, out=np.zeros_like(weights), where=spread)
    change = np.bincount(first, density, len(values)) - np.bincount(last, density, len(values))
    alone = np.bincount(last[~spread], weights[~spread], len(values))
    reached = np.concatenate([[0.0], np.cumsum(np.cumsum(change)[:-1] * np.diff(values))]) + np.cumsum(alone)
    both = np.ravel(np.column_stack([reached - alone, reached]))
    return np.repeat(values, 2), np.maximum.accumulate(both)
