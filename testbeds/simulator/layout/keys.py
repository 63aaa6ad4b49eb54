"""Which task a key goes to: Flink's key groups, and the shares that follow from them.

Notation: G key groups, p tasks. A key goes to group hash(key) mod G; group g goes to task floor(g p / G)
(Flink: KeyGroupRangeAssignment).
"""

import numpy as np

from models.job import Keys

MOST_KEYS_THROWN = 1_000_000
"""More distinct keys than this fill their groups evenly: the least full of 128 groups deviates by less than 4 %."""


def key_groups(parallelism: int) -> int:
    """Flink's default maximum parallelism of an operator with `parallelism` tasks."""
    wanted = parallelism + parallelism // 2
    return int(min(max(1 << (wanted - 1).bit_length(), 128), 32768))


def owner(groups: np.ndarray, parallelism: int, total: int) -> np.ndarray:
    """Task of each key group, shape of `groups`."""
    return (groups.astype(np.int64) * parallelism) // total


def shares(keys: Keys | None, parallelism: int, total: int, seed: int) -> np.ndarray:
    """Share of the evenly spread records that each task receives, shape (parallelism,), sum 1.

    Permanent keys are assigned to groups once, seeded by the operator's name: that is a property of the job's data, and the
    same in each run. Keys that are replaced over time fill all groups evenly.
    """
    if keys is None or keys.lifetime_records is not None or keys.distinct > MOST_KEYS_THROWN:
        groups = np.arange(total)
    else:
        groups = np.random.default_rng(seed).integers(0, total, keys.distinct)
    counts = np.bincount(owner(groups, parallelism, total), minlength=parallelism)
    return np.asarray(counts / counts.sum(), dtype=np.float64)
