"""The configuration LP where patterns are too many to list: only those that matter are generated.

The LP of `models.placement.exact.certificate` at given limits, with a pool that grows by the patterns of the highest prices
in its last solution, found by branch and bound (column generation). At any prices c

    c p > sum_j W_j max_{x within the limits, of type j} c x

proves that no plan keeps the limits, and an upper bound of all prices serves as well as the highest one. Without listed
costs of patterns to bisect over, the smallest t is found up to `PRECISION`.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from models.placement.cost import TOLERANCE, worker_loads
from models.placement.exact.certificate import MET, cheapest_shortfall
from models.placement.exact.patterns import MARGIN, Patterns, reordered, worker_spaces
from models.placement.kernels.patterns import WorkerSpace
from models.placement.kernels.pricing import climb, dearest
from models.placement.kernels.problem import MEMORY, NET, Floats, Ints
from models.placement.problem import Problem
from models.placement.ray import Ray
from models.placement.search.repair import Repair
from models.placement.search.tree import Feasibility
from models.placement.time_limit import TimeLimit

PRECISION: Final = 0.001
"""Allowed gap between the proved bound and the LP's t, as a share of the best plan's t."""
MOST_ROUNDS: Final = 150
"""Solutions of the LP, for all t together."""
PATTERNS_AT_ONCE: Final = 8
"""Most patterns that join the pool for one type of worker."""
REPAIRS: Final = 8
"""Plans repaired towards the limits, whose patterns join the pool."""
REPAIR_STEPS: Final = 100
CLIMBS: Final = 20
"""Patterns of the pool whose price is raised by exchanges before branch and bound."""
SOON: Final = 50_000
"""Nodes of one branch and bound, some 50 ns each, after which any pattern above the requested price is accepted."""
MOST_TRIES: Final = 300_000
"""Nodes after which it gives up."""


@dataclass(frozen=True)
class Generated:
    """Result of the LP."""

    bound: float
    """Proved: no plan reaches a smaller t."""
    reached: float
    """The smallest t that the LP was solved for, or that of the plan it started from."""
    patterns: Patterns
    """Patterns generated."""


class GeneratedLp:
    """The LP of one problem; keeps its pool from one t to the next."""

    def __init__(self, problem: Problem, plan: Ints) -> None:
        """Start from the patterns of a plan (W, n)."""
        self._problem = problem
        self._first = np.unique(problem.worker_type, return_index=True)[1]
        self._workers = np.bincount(problem.worker_type)
        self._asked = np.concatenate([problem.parallelism, self._workers]).astype(np.float64)
        self._counts = np.zeros((0, len(problem.operators)), dtype=np.int64)
        self._kind = np.zeros(0, dtype=np.int64)
        self._plan = plan
        self._add(plan, problem.worker_type)
        self._rounds = 0

    def smallest(self, ray: Ray, t: float, bound: float, time: TimeLimit) -> Generated:
        """The smallest t of a ray at which a mixture of patterns makes up all tasks.

        Args:
            t: that a plan is known to reach.
            bound: proved already.
        """
        reached = doubted = t
        while doubted - bound > PRECISION * t and self._rounds < MOST_ROUNDS and not time.spent:
            target = (bound + doubted) / 2
            verdict = self.at(ray.limits(self._problem, target), time)
            if verdict is Feasibility.INFEASIBLE:
                bound = target
            else:
                doubted = target
                reached = target if verdict is Feasibility.FEASIBLE else reached
        return Generated(bound, reached, self._patterns(ray))

    def at(self, limits: Floats, time: TimeLimit) -> Feasibility:
        """Whether a mixture keeps the limits (3,); infeasible is proved."""
        for seed in range(REPAIRS):
            repair = Repair(self._problem, limits, seed, self._plan)
            repair.run(REPAIR_STEPS)
            self._add(repair.counts, self._problem.worker_type)
        spaces, parallelism = worker_spaces(self._problem, limits, self._first), self._problem.parallelism
        while self._rounds < MOST_ROUNDS and not time.spent:
            self._rounds += 1
            within = np.flatnonzero((self._loads <= limits * (1 + TOLERANCE)).all(axis=1))
            missing, _, prices = cheapest_shortfall(self._columns(within), self._asked)
            if missing <= MET:
                return Feasibility.FEASIBLE
            price, offset = prices[: len(parallelism)], prices[len(parallelism) :]
            held, better = 0.0, False
            for j, room in enumerate(spaces):
                pool = within[self._kind[within] == j]
                most, new = self._dearer(j, room, pool, price, MARGIN - offset[j])
                held += float(self._workers[j]) * most
                better |= new
            if float(price @ parallelism) - held > MARGIN * float(np.abs(price) @ parallelism):
                return Feasibility.INFEASIBLE
            if not better:
                return Feasibility.UNKNOWN
        return Feasibility.UNKNOWN

    def _dearer(self, kind: int, room: WorkerSpace, pool: Ints, price: Floats, least: float) -> tuple[float, bool]:
        """Add patterns of a type of worker with prices above `least`, by exchanges from the pool or by branch and bound.

        Returns:
            a price that no pattern exceeds, infinite where climbing was enough, and whether any pattern is new.
        """
        climbed = self._climbed(room, pool, price, least)
        if len(climbed) and self._add(climbed, np.full(len(climbed), kind)):
            return np.inf, True
        # Edges are known soon in the order given; without them, what costs most decides first.
        order = np.argsort(-price, kind="stable") if np.isinf(room.most[NET]) else np.arange(len(price))
        ordered, weights = reordered(room, order), _weights(room)[:, order]
        found = np.zeros((PATTERNS_AT_ONCE, len(price)), dtype=np.int64)
        ranks = _by_density(weights, price[order])
        number, most = dearest(ordered, price[order], weights.copy(), ranks, least, found, SOON, MOST_TRIES)
        new = found[: min(number, PATTERNS_AT_ONCE)][:, np.argsort(order)]
        return most, self._add(new, np.full(len(new), kind))

    def _climbed(self, room: WorkerSpace, pool: Ints, price: Floats, least: float) -> Ints:
        """(K, n): patterns with prices above `least`, by exchanges from the best of the pool."""
        dearest_first = pool[np.argsort(-(self._counts[pool] @ price), kind="stable")[:CLIMBS]]
        rows = self._counts[dearest_first]
        prices = np.array([climb(room, price, row) for row in rows])
        return np.unique(rows[prices > least], axis=0) if len(rows) else rows

    def _add(self, counts: Ints, kind: Ints) -> bool:
        """Add patterns (K, n) of types (K,) to the pool; whether any is new."""
        before = len(self._kind)
        both = np.column_stack([np.concatenate([self._kind, kind]), np.vstack([self._counts, counts])])
        first = np.sort(np.unique(both, axis=0, return_index=True)[1])
        self._kind, self._counts = both[first, 0], both[first, 1:]
        loads = worker_loads(self._problem, self._counts[:, None, :])
        self._loads = loads[np.arange(len(first)), :, self._first[self._kind]]
        return len(first) > before

    def _columns(self, pool: Ints) -> Floats:
        """(n + T, K): what one worker with each pattern gives, as a share of what is asked."""
        of_kind = self._kind[pool] == np.arange(len(self._workers))[:, None]
        return np.asarray(np.vstack([self._counts[pool].T, of_kind]) / self._asked[:, None])

    def _patterns(self, ray: Ray) -> Patterns:
        """The pool, by rising t."""
        reach = ray.reach_of_loads(self._problem, self._loads)
        rising = np.argsort(reach, kind="stable")
        return Patterns(
            counts=self._counts[rising].astype(np.int16),
            kind=self._kind[rising],
            reach=reach[rising],
            workers=self._workers,
            parallelism=self._problem.parallelism,
            complete=False,
            top=float(reach.max()),
            spaces=(),
        )


def _weights(room: WorkerSpace) -> Floats:
    """(5, n): cpu and io of a task, what it sends over the network at least, its memory, and the slot that it takes."""
    p = room.problem
    sent = np.zeros(len(p.tasks))
    here = np.minimum(room.highest, room.slots)[p.downstream] / p.tasks[p.downstream]
    np.add.at(sent, p.upstream, p.edge_load * np.where(p.forward, 0.0, 1 - here))
    return np.vstack([p.loads[:NET], sent, p.loads[MEMORY], np.ones(len(sent))])


def _by_density(weights: Floats, price: Floats) -> Ints:
    """(5, n): operators by falling price for each unit of weight, those without weight first."""
    with np.errstate(divide="ignore", invalid="ignore"):
        density = np.where(weights > 0, price / weights, np.inf)
    return np.argsort(-density, axis=1, kind="stable")
