"""MurmurHash3 (x86, 32 bits) on columns of 32-bit words: Flink's hash of key groups and of binary rows."""

from typing import Final

import numpy as np

_C1: Final = np.uint32(0xCC9E2D51)
_C2: Final = np.uint32(0x1B873593)


def mixed(state: np.ndarray, words: np.ndarray) -> np.ndarray:
    """The state after one more word; uint32, shapes alike."""
    state = state ^ (_rotated(words * _C1, 15) * _C2)
    return np.asarray(_rotated(state, 13) * np.uint32(5) + np.uint32(0xE6546B64), dtype=np.uint32)


def finished(state: np.ndarray, length: int | np.ndarray) -> np.ndarray:
    """The hash of what was mixed in; uint32.

    Args:
        length: bytes of all words.
    """
    state = state ^ np.asarray(length).astype(np.uint32)
    state = (state ^ (state >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    state = (state ^ (state >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return np.asarray(state ^ (state >> np.uint32(16)), dtype=np.uint32)


def _rotated(words: np.ndarray, bits: int) -> np.ndarray:
    return (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))
