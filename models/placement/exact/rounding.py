"""From a solution of the configuration LP towards a plan: whole copies of its patterns."""

from typing import Final

import numpy as np

from models.placement.exact.certificate import Mixture
from models.placement.exact.patterns import Patterns
from models.placement.kernels.problem import Ints
from models.placement.problem import Problem

WHOLE: Final = 1e-6
"""A number of copies this close below a whole one is whole."""


def rounded(problem: Problem, patterns: Patterns, mixture: Mixture) -> Ints:
    """A partial plan (W, n): floor(y_k) copies of each pattern k, then one more of those that fit the tasks left.

    The largest fractions come first. What remains are the tasks of at most n workers, for a repair to place.
    """
    copies = np.floor(mixture.workers + WHOLE).astype(np.int64)
    counts = patterns.counts[mixture.rows].astype(np.int64)
    kind = patterns.kind[mixture.rows]
    left = problem.parallelism - copies @ counts
    free = patterns.workers - np.bincount(kind, weights=copies, minlength=len(patterns.workers)).astype(np.int64)
    for k in np.argsort(copies - mixture.workers, kind="stable"):
        if free[kind[k]] > 0 and (counts[k] <= left).all():
            copies[k] += 1
            left -= counts[k]
            free[kind[k]] -= 1
    return spread(problem, np.repeat(counts, copies, axis=0), np.repeat(kind, copies))


def spread(problem: Problem, counts: Ints, kind: Ints) -> Ints:
    """(W, n): patterns (K, n) on workers of their types, the rest of which stay empty."""
    plan = np.zeros((len(problem.workers), len(problem.operators)), dtype=np.int64)
    for j in np.unique(kind):
        mine = counts[kind == j]
        plan[np.flatnonzero(problem.worker_type == j)[: len(mine)]] = mine
    return plan
