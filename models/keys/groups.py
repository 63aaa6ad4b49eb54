"""Flink's key groups (KeyGroupRangeAssignment): from the hash code of a key to its group, and from a group to a task.

Notation: h the hash code of a key, a 32-bit integer; G key groups (Flink's maximum parallelism); p tasks.
    group of a key      murmur(h) mod G
    task of group g     floor(g p / G)
"""

from typing import Final

import numpy as np

from models.errors import InvalidInput
from models.keys.murmur import finished, mixed

DEFAULT_KEY_GROUPS: Final = 128
MOST_KEY_GROUPS: Final = 32768


def key_groups(parallelism: int) -> int:
    """Flink's default maximum parallelism of an operator with `parallelism` tasks."""
    wanted = parallelism + parallelism // 2
    return int(min(max(1 << (wanted - 1).bit_length(), DEFAULT_KEY_GROUPS), MOST_KEY_GROUPS))


def group_of(hashes: np.ndarray, total: int) -> np.ndarray:
    """Key group of each hash code, int64 of the shape of `hashes`.

    Args:
        hashes: uint32, the hash codes as Java's `hashCode` has them, without their sign.
        total: number of key groups (G).
    """
    spread = finished(mixed(np.zeros_like(hashes), hashes), 4).view(np.int32).astype(np.int64)
    # Java: the absolute value, and 0 for the one integer that has none.
    spread = np.where(spread == -(2**31), 0, np.abs(spread))
    return np.asarray(spread % total, dtype=np.int64)


def folded(counts: np.ndarray, total: int) -> np.ndarray:
    """Counts by key group among `total` groups, from those among more; shape (..., total).

    Args:
        counts: shape (..., G), where `total` divides G: then x mod total is (x mod G) mod total.
    """
    have = counts.shape[-1]
    if have % total:
        raise InvalidInput(f"the key groups counted must be a multiple of {total}, but there are {have}")
    return np.asarray(counts.reshape(*counts.shape[:-1], have // total, total).sum(axis=-2))


def task_counts(counts: np.ndarray, parallelism: int) -> np.ndarray:
    """Records of each task, shape (..., p), from those of each key group, shape (..., G).

    Raises:
        InvalidInput: there are fewer key groups than tasks.
    """
    total = counts.shape[-1]
    check_parallelism(parallelism, total)
    first = -(-np.arange(parallelism) * total // parallelism)  # the smallest g with floor(g p / G) = task
    return np.add.reduceat(counts, first, axis=-1)


def check_parallelism(parallelism: int, total: int) -> None:
    """Raise InvalidInput unless each of so many tasks gets a key group."""
    if not 1 <= parallelism <= total:
        raise InvalidInput(
            f"the parallelism must be between 1 and the {total} key groups (the maximum parallelism), but got "
            f"{parallelism}; tasks without a key group get no records"
        )
