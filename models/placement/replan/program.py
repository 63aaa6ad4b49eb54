"""The fewest moves by a mixed-integer program over patterns: rows of tasks that a worker can hold within the limits.

With y_gk the workers of group g (same type, same tasks running) that hold pattern k, and m_gk the moves of that:

    minimise sum_gk m_gk y_gk    subject to    sum_k y_gk = size of g    and    sum_gk y_gk x_ki = p_i

The network load is not linear in the tasks of a worker, but it is a number for each pattern.
"""

from dataclasses import replace
from itertools import product
from typing import Final

import numpy as np

from models.placement.cost import TOLERANCE, load_limits, worker_loads
from models.placement.kernels.problem import Floats, Ints
from models.placement.problem import Problem
from models.placement.time_limit import TimeLimit

MOST_PATTERNS: Final = 25_000
"""Patterns for which the program is set up, all groups together."""
MOST_NEARBY: Final = 60_000
"""The same for the program over patterns near the running placement."""
RADIUS: Final = 2
"""Tasks that such a pattern may lose, and gain."""
MOST_PRESOLVED: Final = 5_000
"""Patterns up to which the program is presolved; beyond, HiGHS may presolve for minutes, whatever its time limit."""
NODES: Final = 2000
"""Nodes of its branch and bound, at most."""


def solve(problem: Problem, running: Ints, allowed: Floats, known: Ints, time: TimeLimit) -> tuple[Ints | None, int]:
    """The plan (W, n) with the fewest moves that the program found, and the moves that it proved necessary.

    If there are too many patterns, those near the running placement and those of the known plan are used, and nothing is
    proved.

    Args:
        running: (W, n) tasks that run now.
        allowed: (3,) largest costs.
        known: (W, n) a plan within them.

    Returns:
        None and 0 where nothing was found or proved within the time.
    """
    kinds = np.column_stack([problem.worker_type, running])
    _, first, group = np.unique(kinds, axis=0, return_index=True, return_inverse=True)
    limits = load_limits(problem, allowed)
    patterns = _all_patterns(problem, first, limits)
    complete = patterns is not None
    if patterns is None:
        patterns = [_nearby(problem, int(w), limits, running[w], known) for w in first]
        if sum(map(len, patterns)) > MOST_NEARBY:
            return None, 0
    owner = np.repeat(np.arange(len(first)), [len(rows) for rows in patterns])
    rows = np.concatenate(patterns)
    times, bound = _solve(problem, rows, owner, np.bincount(group.ravel()), running[first], time)
    bound = bound if complete else 0
    if times is None:
        return None, bound
    counts = np.zeros_like(running)
    for g in range(len(first)):
        counts[group.ravel() == g] = np.repeat(rows[owner == g], times[owner == g], axis=0)
    return counts, bound


def _all_patterns(problem: Problem, workers: Ints, limits: Floats) -> list[Ints] | None:
    """Every pattern of each of these workers; None where there are too many."""
    patterns: list[Ints] = []
    for w in workers:
        rows = _patterns(problem, int(w), limits, MOST_PATTERNS - sum(map(len, patterns)))
        if rows is None:
            return None
        patterns.append(rows)
    return patterns


def _nearby(problem: Problem, w: int, limits: Floats, running: Ints, known: Ints) -> Ints:
    """Patterns of worker w that differ from its running tasks by few tasks, and the rows of a known plan."""
    n = len(problem.operators)
    changes = np.unique(
        [np.bincount(np.array(c, dtype=np.int64), minlength=n + 1)[:n] for c in product(range(n + 1), repeat=RADIUS)],
        axis=0,
    )
    less = np.unique(np.maximum(running - changes, 0), axis=0)
    rows = np.unique(np.concatenate([(less[:, None] + changes).reshape(-1, n), known]), axis=0)
    loads = worker_loads(replace(problem, capacity=problem.capacity[:, w : w + 1]), rows[:, None, :])[..., 0]
    fits = (rows <= problem.parallelism).all(axis=1) & (rows.sum(axis=1) <= problem.slots[w])
    fits &= (loads <= limits * (1 + TOLERANCE)).all(axis=1)
    return np.asarray(rows[fits & (rows @ problem.memory_mb <= problem.memory_limit_mb[w] * (1 + TOLERANCE))])


def _solve(
    problem: Problem, rows: Ints, owner: Ints, members: Ints, running: Ints, time: TimeLimit
) -> tuple[Ints | None, int]:
    """How often each pattern is used, (K,), and the bound.

    Args:
        rows: (K, n) patterns.
        owner: (K,) group of each.
        members: (G,) workers of each group.
        running: (G, n) tasks that run on each of them.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp  # slow to import
    from scipy.sparse import csr_array

    added = np.maximum(rows - running[owner], 0).sum(axis=1)
    belongs = np.arange(len(members))[:, None] == owner
    matrix = csr_array(np.vstack([belongs, rows.T]).astype(float))
    wanted = np.concatenate([members, problem.parallelism]).astype(float)
    options: dict[str, float] = {"node_limit": NODES, "mip_rel_gap": 0.0, "presolve": len(rows) <= MOST_PRESOLVED}
    if time.seconds is not None and time.time_limit_s is not None:
        options["time_limit"] = max(0.1, time.time_limit_s - time.seconds)
    answer = milp(
        added.astype(float),
        integrality=np.ones(len(rows)),
        bounds=Bounds(0, members[owner].astype(float)),
        constraints=LinearConstraint(matrix, wanted, wanted),
        options=options,
    )
    proved = getattr(answer, "mip_dual_bound", None)
    bound = int(np.ceil(proved - 1e-6)) if proved is not None and np.isfinite(proved) else 0
    return None if answer.x is None else np.rint(answer.x).astype(np.int64), bound


def _patterns(problem: Problem, w: int, limits: Floats, most: int) -> Ints | None:
    """Every row (n,) that worker w can hold within slots, memory and limits; None where there are more than `most`."""
    alone = replace(problem, capacity=problem.capacity[:, w : w + 1])
    ceiling = limits * (1 + TOLERANCE)
    rows = np.zeros((1, len(problem.operators)), dtype=np.int64)
    for i in range(len(problem.operators)):
        numbers = np.arange(min(problem.parallelism[i], problem.slots[w]) + 1)
        rows = np.repeat(rows, len(numbers), axis=0)
        rows[:, i] = np.tile(numbers, len(rows) // len(numbers))
        loads = worker_loads(alone, rows[:, None, :])[:, :2, 0]
        fits = (rows.sum(axis=1) <= problem.slots[w]) & (loads <= ceiling[:2]).all(axis=1)
        rows = rows[fits & (rows @ problem.memory_mb <= problem.memory_limit_mb[w] * (1 + TOLERANCE))]
        if len(rows) > 20 * max(most, 1):
            return None
    rows = rows[worker_loads(alone, rows[:, None, :])[:, 2, 0] <= ceiling[2]]
    return rows if len(rows) <= most else None
