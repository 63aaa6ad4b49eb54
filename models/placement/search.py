"""Contention-aware placement search (CAPS): the tree of `models.placement.tree` on a problem and its thresholds."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np

from models.errors import InvalidInput
from models.placement.budget import Budget
from models.placement.cost import TOLERANCE, load_limits
from models.placement.problem import Floats, Ints, Problem
from models.placement.shared_walk import SharedWalk
from models.placement.tree import Tree

BUFFER: Final = 4096
"""Plans handed over at once by `enumerate_plans`."""
NO_THRESHOLDS: Final[Floats] = np.ones(3)
"""Costs are at most 1, so these thresholds exclude nothing."""


class Verdict(StrEnum):
    """What a search can say about the existence of a plan."""

    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    """Proved: there is none."""
    UNKNOWN = "unknown"
    """Neither found nor excluded within the budget."""


@dataclass(frozen=True)
class Found:
    """What a search for a first plan came to."""

    verdict: Verdict
    counts: Ints | None
    """(W, n), if feasible."""


class Search:
    """A search through the tree of plans whose loads stay within `limits`.

    Args:
        limits: (3,) largest load of a worker, as a share of its capacity; see `load_limits`.
        reorder: explore operators by falling load (CAPSys section 4.4.2); otherwise in the order given.
        threads: that share the work. A search to the end meets the same nodes and plans with any number of them.
    """

    def __init__(self, problem: Problem, limits: Floats, *, reorder: bool = True, threads: int = 1) -> None:
        if threads < 1:
            raise InvalidInput(f"a search needs at least one thread, but got {threads}")
        self._threads = threads
        self._operators = _exploration_order(problem, limits) if reorder else np.arange(len(problem.operators))
        self._workers = np.argsort(problem.worker_type, kind="stable")
        self.tree = _tree(problem, limits, self._operators, self._workers)
        self._walk = SharedWalk(self.tree)

    @property
    def nodes(self) -> int:
        """Nodes visited: a number of tasks of one operator put on one worker, within all limits."""
        return self._walk.nodes

    @property
    def plans(self) -> int:
        """Distinct plans met so far."""
        return self._walk.plans

    def count(self, budget: Budget) -> bool:
        """Walk on without keeping plans; whether the tree was walked to its end within the budget."""
        self._walk.walk(0, budget, threads=self._threads)
        return self._walk.ended

    def next_plans(self, most: int, budget: Budget, most_steps: int | None = None) -> tuple[Ints, bool]:
        """The next plans (at most `most` of each thread, (B, W, n)), and whether the tree was walked to its end.

        Args:
            most_steps: give up after so many tries (a number of tasks of one operator on one worker).
        """
        found = self._walk.walk(most, budget, most_steps, self._threads)
        plans = np.zeros_like(found)
        plans[:, self._workers[:, None], self._operators[None, :]] = found
        return plans, self._walk.ended


def count_within(
    problem: Problem, thresholds: Floats, budget: Budget, *, reorder: bool = True, threads: int = 1
) -> tuple[int, bool]:
    """Distinct plans within the thresholds, and whether all were counted before the budget was spent."""
    search = Search(problem, load_limits(problem, thresholds), reorder=reorder, threads=threads)
    complete = search.count(budget)
    return search.plans, complete


def enumerate_plans(problem: Problem, thresholds: Floats = NO_THRESHOLDS, *, threads: int = 1) -> Iterator[Ints]:
    """Every distinct plan within the thresholds, in arrays (B, W, n) of at most 4,096 plans of each thread."""
    search = Search(problem, load_limits(problem, thresholds), threads=threads)
    complete = False
    while not complete:
        plans, complete = search.next_plans(BUFFER, Budget())
        if len(plans):
            yield plans


def search_first(
    problem: Problem, limits: Floats, budget: Budget, most_steps: int | None = None, *, threads: int = 1
) -> Found:
    """The first plan that the tree search meets, or a proof that there is none.

    Args:
        limits: (3,) largest load of a worker, as a share of its capacity.
        most_steps: give up after so many tries.
        threads: the first of them that meets a plan stops the others.
    """
    plans, complete = Search(problem, limits, threads=threads).next_plans(1, budget, most_steps)
    if len(plans):
        return Found(Verdict.FEASIBLE, plans[0])
    return Found(Verdict.INFEASIBLE if complete else Verdict.UNKNOWN, None)


def _exploration_order(problem: Problem, limits: Floats) -> Ints:
    """Operators by falling load of a task, in the dimension where it weighs most against its limit."""
    loads = np.vstack([problem.loads / problem.capacity.min(axis=1)[:, None], problem.memory_mb])
    bounds = np.append(limits, problem.memory_limit_mb.min())
    counted = np.isfinite(bounds)[:, None] & (loads > 0)
    with np.errstate(divide="ignore"):  # against a limit of 0 a load weighs infinitely
        weights = np.divide(loads, bounds[:, None], out=np.zeros_like(loads), where=counted)
    return np.argsort(-weights.max(axis=0), kind="stable")


def _tree(problem: Problem, limits: Floats, operators: Ints, workers: Ints) -> Tree:
    tasks = problem.parallelism[operators]
    loads = np.vstack([problem.loads[:2], problem.memory_mb])[:, operators]
    slots = problem.slots[workers]
    worker_type = problem.worker_type[workers]
    net_limits = _with_tolerance(limits[2], problem.capacity[2, workers])
    position = np.argsort(operators)
    edges = problem.edges
    limits_of_workers = np.stack(
        [
            _with_tolerance(limits[0], problem.capacity[0, workers]),
            _with_tolerance(limits[1], problem.capacity[1, workers]),
            problem.memory_limit_mb[workers] * (1 + TOLERANCE),
        ]
    )
    return Tree(
        tasks=tasks,
        loads=np.ascontiguousarray(loads),
        limits=limits_of_workers,
        limited=np.asarray(np.isfinite(limits_of_workers).any(axis=1)),
        net_limits=net_limits,
        net_limited=bool(np.isfinite(net_limits).any()),
        slots=slots,
        same_type=np.append(False, worker_type[1:] == worker_type[:-1]),
        heaviest=_heaviest(tasks, loads, int(slots.max())),
        remaining=np.array([(loads[:, k:] * tasks[k:]).sum(axis=1) for k in range(len(tasks) + 1)]),
        upstream=position[edges.upstream],
        downstream=position[edges.downstream],
        edge_load=edges.load,
        forward=edges.forward,
    )


def _with_tolerance(limit: float, capacity: Floats) -> Floats:
    """(W,): the limit in units of load; infinite where the limit or the worker's capacity is."""
    bounded = np.isfinite(capacity) & np.isfinite(limit)
    return np.where(bounded, limit * (1 + TOLERANCE) * np.where(bounded, capacity, 1.0), np.inf)


def _heaviest(tasks: Ints, loads: Floats, most_slots: int) -> Floats:
    """(n + 1, 3, S + 1): load of the f heaviest tasks of layer k and later."""
    n = len(tasks)
    heaviest = np.zeros((n + 1, 3, most_slots + 1))
    for k in range(n):
        for d in range(3):
            falling = np.sort(np.repeat(loads[d, k:], tasks[k:]))[::-1][:most_slots]
            heaviest[k, d, 1 : len(falling) + 1] = np.cumsum(falling)
            heaviest[k, d, len(falling) + 1 :] = falling.sum()
    return heaviest
