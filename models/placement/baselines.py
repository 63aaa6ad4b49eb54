"""What Flink does without CAPS (CAPSys section 2.2): tasks in random order, whatever they ask of their worker."""

import random

import numpy as np

from models.errors import Infeasible
from models.placement.problem import Ints, Problem


def fill(problem: Problem, seed: int) -> Ints:
    """Flink's default policy, (W, n): fill the slots of one worker after the other."""
    return _place(problem, seed, evenly=False)


def spread(problem: Problem, seed: int) -> Ints:
    """Flink's `cluster.evenly-spread-out-slots`, (W, n): each task goes to the worker with the fewest slots taken,
    as a share of its slots."""
    return _place(problem, seed, evenly=True)


def _place(problem: Problem, seed: int, *, evenly: bool) -> Ints:
    tasks = np.repeat(np.arange(len(problem.operators)), problem.parallelism).tolist()
    random.Random(seed).shuffle(tasks)
    counts = np.zeros((len(problem.workers), len(problem.operators)), dtype=np.int64)
    taken = np.zeros(len(problem.workers), dtype=np.int64)
    memory_left = problem.memory_limit_mb.copy()
    for i in tasks:
        open_ = np.flatnonzero((taken < problem.slots) & (memory_left >= problem.memory_mb[i]))
        if not len(open_):
            raise Infeasible(
                f"placing tasks in random order (seed {seed}), no worker with a free slot has the memory left for a "
                f"task of {problem.operators[i]!r}; use the policy 'caps', another seed, or larger workers"
            )
        w = open_[np.argmin(taken[open_] / problem.slots[open_])] if evenly else open_[0]
        counts[w, i] += 1
        taken[w] += 1
        memory_left[w] -= problem.memory_mb[i]
    return counts
