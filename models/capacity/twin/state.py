"""What an operator's windows and state cost, from samples of its tasks.

Notation:

    u, x, y   CPU seconds of a task in an interval, records in, records out
    a, b      cost of a record in, and of a record that a window fires
    f         share of the cost that is paid when windows fire
    h, C      share of state reads that the cache answers, and bytes of the cache
    L         live records of a task

    u = a x + b y,     f = b y / (a x + b y) over all intervals                                   (1)
    h = min(1, C / (k B)),     B = C / (k h) where h < 1                                          (2)

with B the bytes that are read again, and k the cache that one of them needs. Where all reads are answered, (2) says
only that the state fits, and it does so with more tasks, too, since each has less.
"""

from typing import Final

import numpy as np
from scipy.optimize import nnls

ALL_HITS: Final = 0.995
"""Hit rate from which on the state of a task fits its cache."""
LEAST_VARIATION: Final = 0.02
"""Least standard deviation of y / x, relative to its mean, that separates a from b."""
UNSEEN_FIRE_SHARE: Final = 0.25
"""f where they cannot be separated, as when windows fire in every interval: known ones are between 0 and a half."""


def fire_share(cpu_s: np.ndarray, records_in: np.ndarray, records_out: np.ndarray) -> float:
    """f of (1), by least squares with a, b >= 0; UNSEEN_FIRE_SHARE where records in and out come in one proportion throughout.

    Args:
        cpu_s, records_in, records_out: of tasks in intervals, float64[samples].
    """
    some = (records_in > 0) & (cpu_s > 0)
    if some.sum() < 3:
        return UNSEEN_FIRE_SHARE
    u, x, y = cpu_s[some], records_in[some], records_out[some]
    ratio = y / x
    if ratio.mean() <= 0:
        return 0.0
    if ratio.std() < LEAST_VARIATION * ratio.mean():
        return UNSEEN_FIRE_SHARE
    scale = np.array([x.mean(), y.mean()])
    (a, b), _ = nnls(np.stack([x, y], axis=1) / scale, u / u.mean())
    return float(b / (a + b)) if a + b > 0 else 0.0


def state_bytes(hit_rate: float, cache_bytes: float, cache_per_live_byte: float) -> float:
    """B of (2), bytes that a task reads again; 0 where they fit its cache."""
    return 0.0 if hit_rate >= ALL_HITS or hit_rate <= 0 else cache_bytes / (cache_per_live_byte * hit_rate)
