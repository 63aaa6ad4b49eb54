"""Contention-aware placement search (CAPS): the tree of `models.placement.kernels.tree` on a problem and its thresholds."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np

from models.placement.cost import worker_limits
from models.placement.kernels.problem import ADDITIVE, MEMORY, NET, ROWS, Floats, Ints
from models.placement.kernels.tree import EXHAUSTED, FULL, NODES, PAUSED, Tree, advance, start
from models.placement.problem import Problem
from models.placement.time_limit import TimeLimit

STEPS_BETWEEN_LOOKS: Final = 1_000_000
"""Tries between two readings of the clock, 20-50 ms."""
NO_THRESHOLDS: Final[Floats] = np.ones(3)
"""Costs are at most 1, so these thresholds exclude nothing."""


class Feasibility(StrEnum):
    """What a search found out about the existence of a plan within the limits."""

    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    """Proved: there is none."""
    UNKNOWN = "unknown"
    """Neither found nor excluded within the time."""


@dataclass(frozen=True)
class FirstPlan:
    """Result of the search for a first plan."""

    verdict: Feasibility
    counts: Ints | None
    """(W, n), if feasible."""


def search_first(problem: Problem, limits: Floats, time: TimeLimit, most_steps: int | None = None) -> FirstPlan:
    """The first plan that the tree search meets, or a proof that there is none.

    Args:
        limits: (3,) largest load of a worker, as a share of its capacity.
        most_steps: most tries (a try is a number of tasks of one operator on one worker).
    """
    operators = exploration_order(problem, limits)
    workers = np.argsort(problem.worker_type, kind="stable")
    tree = tree_of(problem, limits, operators, workers)
    walk, found = start(tree), np.zeros((1, len(workers), len(operators)), dtype=np.int64)
    reason, left = PAUSED, most_steps
    while reason == PAUSED and left != 0:
        steps = STEPS_BETWEEN_LOOKS if left is None else min(STEPS_BETWEEN_LOOKS, left)
        left = None if left is None else left - steps
        reason, _ = advance(tree, walk, found, steps)
        time.nodes += int(walk.position[NODES])
        walk.position[NODES] = 0
        if time.spent:
            break
    if reason == FULL:
        counts = np.zeros_like(found[0])
        counts[workers[:, None], operators] = found[0]
        return FirstPlan(Feasibility.FEASIBLE, counts)
    return FirstPlan(Feasibility.INFEASIBLE if reason == EXHAUSTED else Feasibility.UNKNOWN, None)


def exploration_order(problem: Problem, limits: Floats) -> Ints:
    """Operators by falling load of a task, in the dimension where it weighs most against its limit."""
    loads, bounds = problem.loads.copy(), np.append(limits, problem.memory_limit_mb.min())
    loads[:MEMORY] /= problem.capacity[:MEMORY].min(axis=1)[:, None]
    counted = np.isfinite(bounds)[:, None] & (loads > 0)
    with np.errstate(divide="ignore"):  # against a limit of 0 a load weighs infinitely
        weights = np.divide(loads, bounds[:, None], out=np.zeros_like(loads), where=counted)
    return np.argsort(-weights.max(axis=0), kind="stable")


def tree_of(problem: Problem, limits: Floats, operators: Ints, workers: Ints) -> Tree:
    """The tree of plans within the limits (3,), with its operators and workers in these orders."""
    compiled = problem.compiled(operators)
    tasks, loads = compiled.tasks, compiled.loads
    slots, worker_type = problem.slots[workers], problem.worker_type[workers]
    most = np.ascontiguousarray(worker_limits(problem, limits)[:, workers])
    limited = np.asarray(np.isfinite(most).any(axis=1))
    return Tree(
        problem=compiled,
        most=most,
        limited=limited & np.isin(np.arange(ROWS), ADDITIVE),
        net_limited=bool(limited[NET]),
        slots=slots,
        same_type=np.append(False, worker_type[1:] == worker_type[:-1]),
        heaviest=_heaviest(tasks, loads, int(slots.max())),
        remaining=np.array([(loads[:, k:] * tasks[k:]).sum(axis=1) for k in range(len(tasks) + 1)]),
    )


def _heaviest(tasks: Ints, loads: Floats, most_slots: int) -> Floats:
    """(n + 1, 4, S + 1): load of the f heaviest tasks of layer k and later."""
    n = len(tasks)
    heaviest = np.zeros((n + 1, ROWS, most_slots + 1))
    for k in range(n):
        for d in ADDITIVE:
            falling = np.sort(np.repeat(loads[d, k:], tasks[k:]))[::-1][:most_slots]
            heaviest[k, d, 1 : len(falling) + 1] = np.cumsum(falling)
            heaviest[k, d, len(falling) + 1 :] = falling.sum()
    return heaviest
