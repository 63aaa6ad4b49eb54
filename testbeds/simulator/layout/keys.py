"""The shares of an operator's tasks that follow from Flink's key groups, for keys of which only their number is known."""

import numpy as np

from models.job import Keys
from models.keys.groups import task_counts

MOST_KEYS_THROWN = 1_000_000
"""More distinct keys than this fill their groups evenly: the least full of 128 groups deviates by less than 4 %."""


def shares(keys: Keys | None, parallelism: int, total: int, seed: int) -> np.ndarray:
    """Share of the evenly spread records that each task receives, shape (parallelism,), sum 1.

    Permanent keys are assigned to groups once, seeded by the operator's name: that is a property of the job's data, and the
    same in each run. Keys that are replaced over time fill all groups evenly.
    """
    if keys is None or keys.lifetime_records is not None or keys.distinct > MOST_KEYS_THROWN:
        in_groups = np.ones(total, np.int64)
    else:
        groups = np.random.default_rng(seed).integers(0, total, keys.distinct)
        in_groups = np.bincount(groups, minlength=total)
    counts = task_counts(in_groups, parallelism)
    return np.asarray(counts / counts.sum(), dtype=np.float64)
