"""A first plan within limits for instances of any size: longest processing time first, then tabu steps.

The excess of a worker is how far its loads lie above its limits, summed over cpu, io, net and memory, each in units of
its cost (memory: as a share of the limit). A plan is within all limits when the excess of every worker is 0. A step
takes the worker with the largest excess and tries, for each operator on it, to move one task to a free slot elsewhere
or to swap it for a task of another operator elsewhere; the exchange that lowers the total most (or raises it least) is
made, and for a while the tasks may not return. It proves nothing: if it finds no plan, one may still exist.
"""

import numpy as np

from models.placement.cost import SMALLEST, worker_limits
from models.placement.kernels.problem import MEMORY, Floats, Ints
from models.placement.kernels.repair import Repairing, longest_first, refresh, repair
from models.placement.problem import Problem


class Repair:
    """A plan that is repaired towards limits, which may be tightened meanwhile."""

    def __init__(self, problem: Problem, limits: Floats, seed: int, counts: Ints | None = None) -> None:
        """Start from the plan `counts` (W, n); the tasks that it does not place go longest processing time first.

        Args:
            limits: (3,) largest load of a worker, as a share of its capacity; infinite where there is no limit.
        """
        workers, n = len(problem.workers), len(problem.operators)
        self._problem = problem
        self._compiled = problem.compiled()
        self._plan = Repairing(
            most=np.full((4, workers), np.inf),
            weight=_weights(problem),
            counts=np.zeros((workers, n), dtype=np.int64),
            free=problem.slots.copy(),
            load=np.zeros((4, workers)),
            excess=np.zeros(workers),
            banned_until=np.zeros((workers, n), dtype=np.int64),
            steps=np.zeros(1, dtype=np.int64),
            random=np.array([1 + seed % (2**31 - 3)], dtype=np.int64),
        )
        if counts is not None:
            self._plan.counts[:] = counts
            self._plan.free[:] -= counts.sum(axis=1)
        self.tighten(limits)
        if self._plan.counts.sum() < problem.tasks:
            longest_first(self._compiled, self._plan, self._longest_order())
            self.tighten(limits)

    @property
    def counts(self) -> Ints:
        """A copy of the current plan, (W, n)."""
        return self._plan.counts.copy()

    @property
    def excess(self) -> float:
        """How far the plan exceeds the limits, summed over the workers; 0 within."""
        return float(self._plan.excess.sum())

    @property
    def steps(self) -> int:
        """Steps taken so far."""
        return int(self._plan.steps[0])

    def tighten(self, limits: Floats) -> None:
        """Set new limits, (3,), for the current plan."""
        self._plan.most[:] = worker_limits(self._problem, limits)
        for w in range(len(self._problem.workers)):
            refresh(self._compiled, self._plan, w)

    def run(self, steps: int) -> bool:
        """Take at most `steps` steps; whether the plan is within the limits."""
        return bool(repair(self._compiled, self._plan, steps))

    def _longest_order(self) -> Ints:
        """Operators by falling load of a task, in the dimension where it weighs most against the smallest limit."""
        limit = self._plan.most.min(axis=1)[:, None]
        counted = np.isfinite(limit) & (limit > 0)
        loads = self._compiled.loads
        share = np.divide(loads, np.where(counted, limit, 1.0), out=np.zeros_like(loads), where=counted)
        return np.argsort(-share.max(axis=0), kind="stable")


def _weights(problem: Problem) -> Floats:
    """(4, W): excess per unit of load."""
    span = np.where(problem.most > problem.least, problem.most - problem.least, 1.0)
    weights = np.ones((4, len(problem.workers)))
    capacity = np.where(np.isfinite(problem.capacity), problem.capacity, 1.0)[:MEMORY]
    weights[:MEMORY] = 1 / np.maximum(span[:, None] * capacity, SMALLEST)
    limited = np.isfinite(problem.memory_limit_mb)
    weights[MEMORY] = np.where(limited, 1 / np.where(limited, problem.memory_limit_mb, 1.0), 1.0)
    return weights
