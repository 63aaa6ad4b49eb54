"""All that is kept of a stream's keys, in bounded memory: of a part of the stream, and merged, of the whole."""

import io
import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Self

import numpy as np

from models.errors import InvalidInput
from models.keys.columns import MOST_COLUMNS, ROW_SEED, Column, row_hash
from models.keys.groups import MOST_KEY_GROUPS, group_of
from models.keys.sketches import HeavyHitters, KeySample, Labels, WindowCounts

MOST_KEYS: Final = 16384
"""Keys kept of each kind; the error of a heavy hitter's share is then below 0.00007."""
MOST_CELLS: Final = 2**20
"""Counts kept of windows: 8192 windows of 128 key groups."""
_SAMPLE_SEED: Final = ROW_SEED + 1


class KeyedBy(StrEnum):
    """Who computes the key, which decides its hash code."""

    SQL = "sql"
    DATASTREAM = "datastream"


_HASH: Final[Mapping[KeyedBy, Callable[[Sequence[Column]], np.ndarray]]] = {
    KeyedBy.SQL: row_hash,
    KeyedBy.DATASTREAM: lambda columns: columns[0].java_hash(),
}


def check_columns(columns: int, keyed_by: KeyedBy) -> None:
    """Raise InvalidInput unless a key can have so many columns."""
    if keyed_by is KeyedBy.DATASTREAM and columns != 1:
        raise InvalidInput(
            f"the key of a DataStream must be one value, but has {columns} columns; how a class of several fields hashes "
            f"is its own affair: give an expression for the number that its hashCode returns"
        )
    if not 1 <= columns <= MOST_COLUMNS:
        raise InvalidInput(f"a key must have 1 to {MOST_COLUMNS} columns, but has {columns}")


@dataclass(frozen=True)
class Measure:
    """How keys are counted."""

    keyed_by: KeyedBy = KeyedBy.SQL
    groups: int = MOST_KEY_GROUPS
    """Key groups of the whole stream's counts."""
    window_groups: int | None = None
    """Key groups of the counts by window; None: none are made."""
    most_keys: int = MOST_KEYS


@dataclass
class KeySketch:
    """The keys of a stream, or of a part of it."""

    measure: Measure
    groups: np.ndarray
    """Records of each key group, int64[measure.groups]; exact."""
    heavy: HeavyHitters
    sample: KeySample
    windows: WindowCounts | None
    nulls: int = 0
    """Records without a key."""

    @classmethod
    def empty(cls, measure: Measure) -> Self:
        total = measure.window_groups
        return cls(
            measure=measure,
            groups=np.zeros(measure.groups, np.int64),
            heavy=HeavyHitters(measure.most_keys),
            sample=KeySample(measure.most_keys),
            windows=None if total is None else WindowCounts(total, max(MOST_CELLS // total, 1)),
        )

    @property
    def records(self) -> int:
        return int(self.groups.sum())

    def add_keys(self, keys: Sequence[Column], counts: np.ndarray, labels: Labels) -> None:
        """Take in the records of a batch: `counts` of each key, none of which stands twice."""
        groups = group_of(_HASH[self.measure.keyed_by](keys), self.measure.groups)
        self.groups += np.bincount(groups, counts, self.measure.groups).astype(np.int64)
        self.heavy.add(counts, labels)
        self.sample.add(counts, row_hash(keys, _SAMPLE_SEED), labels)

    def add_windows(self, keys: Sequence[Column], windows: np.ndarray, counts: np.ndarray) -> None:
        """Take in when the records of a batch came: `counts` of each pair of a key and a window."""
        assert self.windows is not None
        self.windows.add(windows, group_of(_HASH[self.measure.keyed_by](keys), self.windows.groups), counts)

    def merge(self, other: "KeySketch") -> None:
        """Take in another part of the stream."""
        self.groups += other.groups
        self.heavy.merge(other.heavy)
        self.sample.merge(other.sample)
        if self.windows is not None and other.windows is not None:
            self.windows.merge(other.windows)
        self.nulls += other.nulls

    def to_bytes(self) -> bytes:
        """For `from_bytes` of a sketch with the same measure."""
        windows = self.windows or WindowCounts(1, 1)
        buffer = io.BytesIO()
        np.savez_compressed(
            buffer,
            groups=self.groups,
            heavy=_packed(self.heavy.counts),
            sample=_packed(self.sample.counts),
            hashes=np.array([self.sample.hashes[key] for key in self.sample.counts], np.int64),
            windows=np.array(list(windows.counts), np.int64),
            window_counts=np.array(list(windows.counts.values()), np.int64),
            scalars=np.array([self.heavy.error, self.sample.threshold, windows.threshold, self.nulls], np.int64),
        )
        return buffer.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes, measure: Measure) -> Self:
        made = cls.empty(measure)
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            error, threshold, window_threshold, made.nulls = (int(value) for value in arrays["scalars"])
            made.groups = arrays["groups"]
            made.heavy.counts, made.heavy.error = _unpacked(arrays["heavy"]), error
            made.sample.counts, made.sample.threshold = _unpacked(arrays["sample"]), threshold
            made.sample.hashes = dict(zip(made.sample.counts, arrays["hashes"].tolist(), strict=True))
            if made.windows is not None:
                made.windows.threshold = window_threshold
                made.windows.counts = dict(zip(arrays["windows"].tolist(), arrays["window_counts"], strict=True))
        return made


def _packed(counts: Mapping[Hashable, int]) -> np.ndarray:
    text = json.dumps([list(counts), list(counts.values())])
    return np.frombuffer(text.encode(), np.uint8)


def _unpacked(packed: np.ndarray) -> dict[Hashable, int]:
    keys, counts = json.loads(packed.tobytes())
    return dict(zip((_key(key) for key in keys), counts, strict=True))


def _key(key: Any) -> Hashable:
    """A key of several columns is a tuple, which JSON has as a list."""
    return tuple(key) if isinstance(key, list) else key
