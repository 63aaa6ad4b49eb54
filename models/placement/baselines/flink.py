"""Placement without CAPS: Flink's policies (CAPSys section 2.2) and a random plan. They consider slots and memory, but
no loads; tasks are placed in random order."""

import random
from collections.abc import Callable, Sequence

import numpy as np

from models.errors import Infeasible
from models.placement.kernels.problem import Ints
from models.placement.problem import MEMORY_TOLERANCE, Problem

Choice = Callable[[Ints, Ints, random.Random], int]
"""One of the workers that are open (k,), given the slots taken on each worker (W,)."""


def fill(problem: Problem, seed: int, jobs: Sequence[Sequence[str]] = ()) -> Ints:
    """Flink's default policy, (W, n): fill the slots of one worker after the other.

    Args:
        jobs: operators of each job, in the order in which the jobs are submitted; all at once where it is empty.
    """
    return _place(problem, seed, jobs, lambda open_, taken, rng: int(open_[0]))


def spread(problem: Problem, seed: int, jobs: Sequence[Sequence[str]] = ()) -> Ints:
    """Flink's `cluster.evenly-spread-out-slots`, (W, n): each task goes to the worker with the fewest slots taken,
    as a share of its slots. `jobs` as for `fill`."""
    return _place(
        problem, seed, jobs, lambda open_, taken, rng: int(open_[np.argmin(taken[open_] / problem.slots[open_])])
    )


def scatter(problem: Problem, seed: int) -> Ints:
    """A random plan, (W, n): the tasks are dealt to slots so that every assignment of tasks to slots is as likely as
    any other (where no memory limits it)."""

    def any_free_slot(open_: Ints, taken: Ints, rng: random.Random) -> int:
        return int(rng.choices(open_.tolist(), weights=(problem.slots[open_] - taken[open_]).tolist())[0])

    return _place(problem, seed, (), any_free_slot)


def _place(problem: Problem, seed: int, jobs: Sequence[Sequence[str]], choose: Choice) -> Ints:
    rng = random.Random(seed)
    counts = np.zeros((len(problem.workers), len(problem.operators)), dtype=np.int64)
    taken = np.zeros(len(problem.workers), dtype=np.int64)
    memory_left = problem.memory_limit_mb * (1 + MEMORY_TOLERANCE)
    for job in jobs or (problem.operators,):
        for i in _shuffled(problem, job, rng):
            open_ = np.flatnonzero((taken < problem.slots) & (memory_left >= problem.memory_mb[i]))
            if not len(open_):
                raise Infeasible(
                    f"placing tasks in random order (seed {seed}), no worker with a free slot has the memory left for a "
                    f"task of {problem.operators[i]!r}; use the policy 'caps', another seed, or larger workers"
                )
            w = choose(open_, taken, rng)
            counts[w, i] += 1
            taken[w] += 1
            memory_left[w] -= problem.memory_mb[i]
    return counts


def _shuffled(problem: Problem, job: Sequence[str], rng: random.Random) -> list[int]:
    """The tasks of a job, by the numbers of their operators, in random order."""
    own = np.array([problem.operators.index(name) for name in job], dtype=np.int64)
    tasks: list[int] = np.repeat(own, problem.parallelism[own]).tolist()
    rng.shuffle(tasks)
    return tasks
