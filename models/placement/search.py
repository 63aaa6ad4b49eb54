"""Contention-aware placement search (CAPS): the tree of `models.placement.tree` on a problem and its thresholds."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np

from models.placement.budget import Budget
from models.placement.cost import TOLERANCE, load_limits
from models.placement.problem import Floats, Ints, Problem
from models.placement.tree import EXHAUSTED, NODES, PAUSED, PLANS, Tree, Walk, advance, start

STEPS_BETWEEN_LOOKS: Final = 1_000_000
"""Tries between two looks at the clock, 20-50 ms."""
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
    """One walk through the tree of plans whose loads stay within `limits`.

    Args:
        limits: (3,) largest load of a worker, as a share of its capacity; see `load_limits`.
        reorder: explore operators by falling load (CAPSys section 4.4.2); otherwise in the order given.
    """

    def __init__(self, problem: Problem, limits: Floats, *, reorder: bool = True) -> None:
        self._problem = problem
        self._operators = _exploration_order(problem, limits) if reorder else np.arange(len(problem.operators))
        self._workers = np.argsort(problem.worker_type, kind="stable")
        self._tree = _tree(problem, limits, self._operators, self._workers)
        self._walk: Walk = start(self._tree)

    @property
    def nodes(self) -> int:
        """Nodes visited: a number of tasks of one operator put on one worker, within all limits."""
        return int(self._walk.position[NODES])

    @property
    def plans(self) -> int:
        """Distinct plans met so far."""
        return int(self._walk.position[PLANS])

    def count(self, budget: Budget) -> bool:
        """Walk on without keeping plans; whether the tree was walked to its end within the budget."""
        nothing = np.zeros((0, *self._walk.counts.shape), dtype=np.int64)
        return self._advance(nothing, budget, None)[0] == EXHAUSTED

    def next_plans(self, most: int, budget: Budget, most_steps: int | None = None) -> tuple[Ints, bool]:
        """The next plans (at most `most`, an array (B, W, n)), and whether the tree was walked to its end.

        Args:
            most_steps: give up after so many tries (a number of tasks of one operator on one worker).
        """
        buffer = np.zeros((most, *self._walk.counts.shape), dtype=np.int64)
        reason, kept = self._advance(buffer, budget, most_steps)
        plans = np.zeros((kept, *self._walk.counts.shape), dtype=np.int64)
        plans[:, self._workers[:, None], self._operators[None, :]] = buffer[:kept]
        return plans, reason == EXHAUSTED

    def _advance(self, buffer: Ints, budget: Budget, most_steps: int | None) -> tuple[int, int]:
        kept, steps_left = 0, most_steps
        while True:
            steps = STEPS_BETWEEN_LOOKS if steps_left is None else min(STEPS_BETWEEN_LOOKS, steps_left)
            nodes_before = self.nodes
            reason, more = advance(self._tree, self._walk, buffer[kept:] if len(buffer) else buffer, steps)
            budget.nodes += self.nodes - nodes_before
            kept += more
            if steps_left is not None:
                steps_left -= steps
            if reason != PAUSED or budget.spent or steps_left == 0:
                return reason, kept


def count_within(problem: Problem, thresholds: Floats, budget: Budget, *, reorder: bool = True) -> tuple[int, bool]:
    """Distinct plans within the thresholds, and whether all were counted before the budget was spent."""
    search = Search(problem, load_limits(problem, thresholds), reorder=reorder)
    complete = search.count(budget)
    return search.plans, complete


def enumerate_plans(problem: Problem, thresholds: Floats = NO_THRESHOLDS) -> Iterator[Ints]:
    """Every distinct plan within the thresholds, in arrays (B, W, n) of at most 4,096 plans."""
    search = Search(problem, load_limits(problem, thresholds))
    complete = False
    while not complete:
        plans, complete = search.next_plans(BUFFER, Budget())
        if len(plans):
            yield plans


def search_first(problem: Problem, limits: Floats, budget: Budget, most_steps: int | None = None) -> Found:
    """The first plan that the tree search meets, or a proof that there is none.

    Args:
        limits: (3,) largest load of a worker, as a share of its capacity.
        most_steps: give up after so many tries.
    """
    plans, complete = Search(problem, limits).next_plans(1, budget, most_steps)
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
