"""From a solution of the configuration LP to a plan: whole copies of its patterns, and an integer program for the rest."""

from typing import Final

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from models.placement.certificate import Mixture
from models.placement.patterns import Patterns
from models.placement.problem import Ints, Problem

WHOLE: Final = 1e-6
"""A number of copies this close below a whole one is whole."""
MOST_COLUMNS: Final = 800
"""Patterns that the integer program chooses from; of more, some at even steps, and those of the LP's solution."""
MOST_NODES: Final = 1000
"""Nodes of its branch and bound."""


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


def whole(problem: Problem, patterns: Patterns, mixture: Mixture, t: float, seconds: float | None) -> Ints | None:
    """A plan (W, n) of patterns up to t, if the integer program finds one; finding none proves nothing.

    Args:
        seconds: stop after so many; None without limit.
    """
    rows = np.arange(np.searchsorted(patterns.reach, t, side="right"))
    if len(rows) > MOST_COLUMNS:
        steps = np.linspace(0, len(rows) - 1, MOST_COLUMNS).astype(np.int64)
        rows = np.union1d(steps, mixture.rows[mixture.rows < len(rows)])
    counts, kind = patterns.counts[rows].astype(np.int64), patterns.kind[rows]
    of_kind = kind == np.arange(len(patterns.workers))[:, None]
    asked = np.concatenate([patterns.parallelism, patterns.workers])
    options: dict[str, float] = {"node_limit": MOST_NODES}
    if seconds is not None:
        options["time_limit"] = max(seconds, 0.01)
    solved = milp(
        np.zeros(len(rows)),
        constraints=LinearConstraint(np.vstack([counts.T, of_kind]), asked, asked),
        bounds=Bounds(0, patterns.workers[kind]),
        integrality=np.ones(len(rows)),
        options=options,
    )
    if solved.x is None:
        return None
    copies = np.round(solved.x).astype(np.int64)
    met = (copies @ counts == problem.parallelism).all() and (of_kind @ copies == patterns.workers).all()
    return spread(problem, np.repeat(counts, copies, axis=0), np.repeat(kind, copies)) if met else None
