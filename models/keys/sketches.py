"""What is kept of a stream's keys in bounded memory; two of a kind merge into what one would have of both streams.

Notation: N records, m the most keys kept.

`HeavyHitters` is the summary of Misra and Gries in its mergeable form (Agarwal et al., Mergeable Summaries, PODS 2012):
where more than m keys are counted, the count of the (m+1)-th is taken from all, and what is left of it adds up to the
error, at most N / (m + 1).
`KeySample` is Gibbons's distinct sampling (VLDB 2001): the keys whose hash is below a threshold that falls as keys come.
A key that is still in was in from its first record, so its count is exact, and every key is as likely to be in.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

Labels = Callable[[np.ndarray], Sequence[Hashable]]
"""The keys at these places, for what is to be kept of a batch."""
HASHES: Final = 2**32
"""Hashes are below this."""


@dataclass
class HeavyHitters:
    """The most frequent keys; a key with more than `error` records is among them."""

    most: int
    """Keys kept (m)."""
    counts: dict[Hashable, int] = field(default_factory=dict)
    """At least so many records of each; at most `error` more."""
    error: int = 0

    def add(self, counts: np.ndarray, labels: Labels) -> None:
        """Take in the records of a batch.

        Args:
            counts: of each distinct key, int64.
        """
        places = np.arange(len(counts))
        if len(counts) > self.most:
            places = np.argpartition(counts, -(self.most + 1))[-(self.most + 1) :]
            least = int(counts[places].min())
            places = places[counts[places] > least]
            counts, self.error = counts - least, self.error + least
        self._include(dict(zip(labels(places), counts[places].tolist(), strict=True)))

    def merge(self, other: "HeavyHitters") -> None:
        """Take in what another stream's summary holds."""
        self.error += other.error
        self._include(other.counts)

    def _include(self, counts: dict[Hashable, int]) -> None:
        own = self.counts
        for key, count in counts.items():
            own[key] = own.get(key, 0) + count
        if len(own) > self.most:
            least = int(np.partition(np.fromiter(own.values(), np.int64, len(own)), -(self.most + 1))[-(self.most + 1)])
            self.counts = {key: count - least for key, count in own.items() if count > least}
            self.error += least


@dataclass
class KeySample:
    """Keys drawn alike from all distinct ones, whatever their frequency, with exact counts."""

    most: int
    """Keys kept (m)."""
    threshold: int = HASHES
    """The keys with a hash below it are in; all of them where it is HASHES."""
    counts: dict[Hashable, int] = field(default_factory=dict)
    hashes: dict[Hashable, int] = field(default_factory=dict)
    """By the same keys as `counts`."""

    def add(self, counts: np.ndarray, hashes: np.ndarray, labels: Labels) -> None:
        """Take in the records of a batch.

        Args:
            counts: of each distinct key, int64.
            hashes: uint32, spread evenly and the same for a key in all batches.
        """
        places = np.flatnonzero(hashes.astype(np.int64) < self.threshold)
        if len(places) > self.most:
            self._lower(int(np.partition(hashes[places], self.most)[self.most]))
            places = places[hashes[places] < self.threshold]
        kept = labels(places)
        self._include(
            dict(zip(kept, counts[places].tolist(), strict=True)), dict(zip(kept, hashes[places].tolist(), strict=True))
        )

    def merge(self, other: "KeySample") -> None:
        """Take in what another stream's sample holds."""
        self._lower(min(self.threshold, other.threshold))
        inside = {key: count for key, count in other.counts.items() if other.hashes[key] < self.threshold}
        self._include(inside, {key: other.hashes[key] for key in inside})

    @property
    def rate(self) -> float:
        """Probability of a key to be in."""
        return self.threshold / HASHES

    @property
    def distinct(self) -> float:
        """Estimate of the distinct keys of the stream; exact where all are in."""
        return len(self.counts) / self.rate

    @property
    def distinct_deviation(self) -> float:
        """Standard deviation of that estimate: each key is in or not, independently."""
        return float(np.sqrt(len(self.counts) * (1.0 - self.rate))) / self.rate

    def _include(self, counts: dict[Hashable, int], hashes: dict[Hashable, int]) -> None:
        for key, count in counts.items():
            self.counts[key] = self.counts.get(key, 0) + count
        self.hashes.update(hashes)
        if len(self.hashes) > self.most:
            values = np.fromiter(self.hashes.values(), np.int64, len(self.hashes))
            self._lower(int(np.partition(values, self.most)[self.most]))

    def _lower(self, threshold: int) -> None:
        if threshold < self.threshold:
            self.threshold = threshold
            self.hashes = {key: hashed for key, hashed in self.hashes.items() if hashed < threshold}
            self.counts = {key: self.counts[key] for key in self.hashes}


@dataclass
class WindowCounts:
    """Records of each key group in windows of time; of so many windows that memory stays bounded, drawn by their hash."""

    groups: int
    """Key groups counted."""
    most: int
    """Windows kept."""
    threshold: int = HASHES
    counts: dict[int, np.ndarray] = field(default_factory=dict)
    """By number of the window, int64[groups]."""

    def add(self, windows: np.ndarray, groups: np.ndarray, counts: np.ndarray) -> None:
        """Take in the records of a batch: `counts` of them in each pair of window and group, which may repeat."""
        numbers, at = np.unique(windows, return_inverse=True)
        hashed = window_hash(numbers)
        if int((hashed < self.threshold).sum()) > self.most:
            self._lower(int(np.partition(hashed, self.most)[self.most]))
        inside = hashed < self.threshold
        row = np.where(inside, np.cumsum(inside) - 1, -1)[at]
        taken = row >= 0
        cells = row[taken] * self.groups + groups[taken]
        total = np.bincount(cells, counts[taken], int(inside.sum()) * self.groups).astype(np.int64)
        self._include(dict(zip(numbers[inside].tolist(), total.reshape(-1, self.groups), strict=True)))

    def merge(self, other: "WindowCounts") -> None:
        """Take in what another stream's windows hold."""
        self._lower(min(self.threshold, other.threshold))
        self._include({number: counts for number, counts in other.counts.items() if self._is_in(number)})

    @property
    def rate(self) -> float:
        """Probability of a window to be in."""
        return self.threshold / HASHES

    def _include(self, counts: dict[int, np.ndarray]) -> None:
        for number, of_window in counts.items():
            own = self.counts.get(number)
            self.counts[number] = of_window if own is None else own + of_window
        if len(self.counts) > self.most:
            hashed = window_hash(np.fromiter(self.counts, np.int64, len(self.counts)))
            self._lower(int(np.partition(hashed, self.most)[self.most]))

    def _lower(self, threshold: int) -> None:
        if threshold < self.threshold:
            self.threshold = threshold
            self.counts = {number: counts for number, counts in self.counts.items() if self._is_in(number)}

    def _is_in(self, number: int) -> bool:
        return int(window_hash(np.array([number], np.int64))[0]) < self.threshold


def window_hash(numbers: np.ndarray) -> np.ndarray:
    """Hash of a window's number: the upper half of splitmix64; int64 below HASHES."""
    x = numbers.astype(np.int64).view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray((x >> np.uint64(32)).astype(np.int64))
