"""Columns of keys, and their hash codes as Flink computes them.

A DataStream's `keyBy` calls Java's `hashCode` of the key. Flink SQL writes the columns of the key to a binary row
(BinaryRowData) and hashes its words: 8 bytes of header, 8 bytes for each column, then the texts longer than 7 bytes,
each padded to 8 bytes. A text of 7 bytes or fewer stands in its column's 8 bytes, its length + 128 in the last one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from models.keys.murmur import finished, mixed

ROW_SEED: Final = 42
"""Flink's for binary rows."""
MOST_COLUMNS: Final = 56
"""With more, the header of a row is longer than 8 bytes."""
_HEADER_BYTES: Final = 8
_INLINE_BYTES: Final = 7


@dataclass(frozen=True)
class Integers:
    """Whole numbers, or booleans."""

    values: np.ndarray
    """int64."""
    width: int
    """Bytes of one: 1, 2, 4 or 8."""
    boolean: bool = False

    def __len__(self) -> int:
        return len(self.values)

    def java_hash(self) -> np.ndarray:
        """`hashCode` of Long, Integer, Short, Byte or Boolean, uint32[n]."""
        if self.boolean:
            return np.where(self.values != 0, 1231, 1237).astype(np.uint32)
        bits = self.values.view(np.uint64)
        folded = bits ^ (bits >> np.uint64(32)) if self.width == 8 else bits
        return folded.astype(np.uint32)


@dataclass(frozen=True)
class Texts:
    """Texts in UTF-8, one after the other."""

    data: np.ndarray
    """uint8."""
    offsets: np.ndarray
    """int64[n + 1], where each starts in `data`; last, where the last one ends."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def lengths(self) -> np.ndarray:
        """Bytes of each, int64[n]."""
        return np.diff(self.offsets)

    def java_hash(self) -> np.ndarray:
        """`hashCode` of String, uint32[n]: the sum of u_i 31^(n-1-i) over its UTF-16 units u."""
        units, starts, lengths = self._utf16()
        hashed = np.zeros(len(self), np.uint32)
        for rows, at in _positions(lengths):
            hashed[rows] = hashed[rows] * np.uint32(31) + units[starts[rows] + at]
        return hashed

    def words(self) -> np.ndarray:
        """The 32-bit words of each, in rows of equal length that zeros fill up, uint32[words]; see `word_starts`."""
        padded = np.zeros(int(self.word_starts[-1]) * 4, np.uint8)
        shift = self.word_starts[:-1] * 4 - self.offsets[:-1]
        used = slice(int(self.offsets[0]), int(self.offsets[-1]))
        padded[np.arange(used.start, used.stop) + np.repeat(shift, self.lengths)] = self.data[used]
        return padded.view("<u4").astype(np.uint32)

    @cached_property
    def word_starts(self) -> np.ndarray:
        """Where the words of each start, int64[n + 1]; each has a multiple of 8 bytes, as in a binary row."""
        return np.concatenate([[0], np.cumsum(-(-self.lengths // 8) * 2)])

    def _utf16(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """UTF-16 units, where each text starts among them, and how many it has."""
        first, last = int(self.offsets[0]), int(self.offsets[-1])
        used = self.data[first:last]
        if not (used & 0x80).any():
            return used.astype(np.uint32), self.offsets[:-1] - first, self.lengths
        # A byte that begins a character counts one unit, or two in characters of four bytes; the others none.
        counts = ((used & 0xC0) != 0x80).astype(np.int64) + (used >= 0xF0)
        before = np.concatenate([[0], np.cumsum(counts)])
        units = np.frombuffer(used.tobytes().decode().encode("utf-16-le"), "<u2").astype(np.uint32)
        starts = before[self.offsets - first]
        return units, starts[:-1], np.diff(starts)


Column = Integers | Texts


def row_hash(columns: Sequence[Column], seed: int = ROW_SEED) -> np.ndarray:
    """Hash codes of keys as Flink SQL has them, of their binary rows; uint32[n].

    Args:
        columns: of equal length, in the order of the key; at most MOST_COLUMNS.
    """
    state = np.full(len(columns[0]), seed, np.uint32)
    zero, size = np.zeros_like(state), np.full(len(state), _HEADER_BYTES + 8 * len(columns), np.int64)
    for _ in range(_HEADER_BYTES // 4):
        state = mixed(state, zero)
    for column in columns:
        if isinstance(column, Integers):
            low, high = _words_of_integers(column)
        else:
            low, high = _words_of_texts(column, size)
            size += np.where(column.lengths > _INLINE_BYTES, -(-column.lengths // 8) * 8, 0)
        state = mixed(mixed(state, low), high)
    for column in columns:
        if isinstance(column, Texts):
            _mix_long_texts(state, column)
    return finished(state, size)


def _words_of_integers(column: Integers) -> tuple[np.ndarray, np.ndarray]:
    bits = column.values.view(np.uint64) & np.uint64((1 << 8 * column.width) - 1)
    return (bits & np.uint64(0xFFFFFFFF)).astype(np.uint32), (bits >> np.uint64(32)).astype(np.uint32)


def _words_of_texts(column: Texts, offset: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The column's 8 bytes: a short text and its length, or where a long one lies and its length."""
    lengths = column.lengths
    low, high = lengths.astype(np.uint32), offset.astype(np.uint32)
    inline = lengths <= _INLINE_BYTES
    low[inline], high[inline] = 0, (lengths[inline].astype(np.uint32) | np.uint32(0x80)) << np.uint32(24)
    short = inline & (lengths > 0)
    words, starts = column.words(), column.word_starts[:-1][short]
    low[short] = words[starts]
    high[short] |= words[starts + 1]
    return low, high


def _mix_long_texts(state: np.ndarray, column: Texts) -> None:
    words, starts = column.words(), column.word_starts[:-1]
    counts = np.where(column.lengths > _INLINE_BYTES, np.diff(column.word_starts), 0)
    for rows, at in _positions(counts):
        state[rows] = mixed(state[rows], words[starts[rows] + at])


def _positions(lengths: np.ndarray) -> Iterator[tuple[np.ndarray, int]]:
    """For each position, the rows that are longer than it."""
    rows = np.arange(len(lengths))
    for at in range(int(lengths.max(initial=0))):
        rows = rows[lengths[rows] > at]
        yield rows, at
