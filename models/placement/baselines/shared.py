"""Flink's policies for shared slots. They look at no loads; slots are requested in random order.

`default` and `evenly` place Flink's default slots, where slot i holds subtask i of each vertex of its group. `tasks` is
FLIP-370 (`taskmanager.load-balance.mode: TASKS`): narrow vertices are dealt over the slots of their group in turn, and the
slots with the most tasks go first, each to the TaskManager that holds the fewest tasks so far.
"""

import random

import numpy as np

from models.errors import Infeasible
from models.placement.baselines.flink import fill, spread
from models.placement.kernels.problem import Ints
from models.placement.problem import MEMORY_TOLERANCE, Problem
from models.placement.shared.mixes import Mix


def filled(problem: Problem, mix: Mix, seed: int) -> Ints:
    """Flink's default, (W, B): the slots of one worker after the other."""
    return fill(problem, seed)


def spread_out(problem: Problem, mix: Mix, seed: int) -> Ints:
    """`cluster.evenly-spread-out-slots`, (W, B): each slot on the worker with the smallest share of its slots taken."""
    return spread(problem, seed)


def by_tasks(problem: Problem, mix: Mix, seed: int) -> Ints:
    """`taskmanager.load-balance.mode: TASKS`, (W, B)."""
    rng = random.Random(seed)
    order = [b for b, bundle in enumerate(mix) for _ in range(bundle.slots)]
    rng.shuffle(order)
    counts = np.zeros((len(problem.workers), len(mix)), dtype=np.int64)
    tasks, taken = np.zeros(len(problem.workers)), np.zeros(len(problem.workers), dtype=np.int64)
    memory_left = problem.memory_limit_mb * (1 + MEMORY_TOLERANCE)
    for b in sorted(order, key=lambda b: -len(mix[b].vertices)):
        open_ = np.flatnonzero((taken < problem.slots) & (memory_left >= problem.memory_mb[b]))
        if not len(open_):
            raise Infeasible(
                f"placing slots by their number of tasks, no worker has a free slot with the memory for {mix[b].vertices}; "
                "use the policy 'caps', or larger workers"
            )
        w = int(open_[np.argmin(tasks[open_])])
        counts[w, b] += 1
        taken[w] += 1
        tasks[w] += len(mix[b].vertices)
        memory_left[w] -= problem.memory_mb[b]
    return counts
