"""The configuration LP: the smallest t at which the patterns of the workers could average out to all tasks.

With x_k the patterns, K(t) those that keep the limits at t, and W_j workers of type j, a plan exists at t only if

    sum_k y_k x_k = p,   sum_{k of type j} y_k = W_j,   y >= 0,   k in K(t)                                (primal)

has a solution. Where it has none, there are prices c at which all tasks together cost more than the workers could hold,

    c p > sum_j W_j max_{k in K(t), of type j} c x_k,                                                      (proof)

which is checked for every pattern, whatever the solver's tolerances. K changes only at the t of a pattern, so the
smallest t is found by bisection over these: exactly. The same prices prove every t up to the first pattern that would
make up the difference, so a step of the bisection often goes further than half way.

The primal is solved over a pool of patterns, which grows by those with the highest prices in the last solution.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from models.placement.exact.patterns import MARGIN, Patterns
from models.placement.kernels.patterns import best_of_blocks, covered_from
from models.placement.kernels.problem import Floats, Ints
from models.placement.time_limit import TimeLimit

MET: Final = 1e-8
"""A share of missing tasks in the primal up to this counts as 0."""
BLOCKS: Final = 32
"""Patterns that join the pool in a round, at most."""
MOST_ROUNDS: Final = 200
MORE_PATTERNS: Final = 200
"""Patterns beside the pool that a random solution may use."""
LEAST_SHARE: Final = 1e-12
"""Fractions of a worker below this count as 0."""


@dataclass(frozen=True)
class Mixture:
    """A solution of the primal: patterns, and how many workers (fractions too) hold each."""

    rows: Ints
    """(K,)"""
    workers: Floats
    """(K,)"""


@dataclass(frozen=True)
class Proof:
    """Prices that the first patterns cannot meet."""

    rows: int
    """The number of patterns for which this is proved, at least as many as requested."""
    price: Floats
    """(n,): c, of a task of each operator."""


@dataclass(frozen=True)
class Certificate:
    """Result of the configuration LP."""

    bound: float | None
    """Proved: no plan keeps the limits below this t; None if the stored patterns make up no plan."""
    exact: bool
    """The primal has a solution at the bound, so the LP proves no more."""
    mixture: Mixture | None
    """The solution of the primal at the smallest t that one was found for."""

    @property
    def impossible(self) -> bool:
        """Proved: there is no plan within the limits of all patterns."""
        return self.exact and self.mixture is None


class ConfigurationLp:
    """The LP over the patterns of one problem; keeps its pool from one t to the next."""

    def __init__(self, patterns: Patterns) -> None:
        self.patterns = patterns
        self._kinds = len(patterns.workers)
        self._asked = np.concatenate([patterns.parallelism, patterns.workers]).astype(np.float64)
        first = [np.flatnonzero(patterns.kind == j)[:1] for j in range(self._kinds)]
        self._pool: Ints = np.unique(np.concatenate(first)).astype(np.int64)

    def smallest(self, time: TimeLimit) -> Certificate:
        """The smallest t at which the primal has a solution."""
        reach = self.patterns.reach
        low, high, mixture = 0, len(reach), None  # proved for the first `low` rows; solved with the first `high`
        rows, price = high, np.zeros(len(self.patterns.parallelism))
        while low < high and (mixture is None or reach[low] < reach[high - 1]) and not time.spent:
            answer = self.solve(rows, time)
            if isinstance(answer, Mixture):
                mixture, high = answer, int(answer.rows.max()) + 1
            elif answer is not None:
                low, price = answer.rows, answer.price
            else:
                break
            rows = self._next(low, high)
        if low < high:
            bound = self._checked(price, float(reach[low]), time)
            return Certificate(bound, mixture is not None and bound == reach[high - 1], mixture)
        return Certificate(None, mixture is None and self._impossible(price, time), mixture)

    def at_all(self, time: TimeLimit) -> Certificate:
        """Whether the primal has a solution at the largest t, without a bound below that."""
        answer = self.solve(len(self.patterns), time)
        if isinstance(answer, Mixture):
            return Certificate(0.0, False, answer)
        return Certificate(None, answer is not None and self._impossible(answer.price, time), None)

    def _impossible(self, price: Floats, time: TimeLimit) -> bool:
        """Whether these prices, which no stored pattern meets, are met by no pattern at all."""
        return self._checked(price, self.patterns.top, time) >= self.patterns.top

    def _checked(self, price: Floats, t: float, time: TimeLimit) -> float:
        """The t that these prices prove, up to the one that they prove for the patterns stored."""
        return t if self.patterns.complete else self.patterns.check(price, t, time)

    def solve(self, rows: int, time: TimeLimit) -> "Mixture | Proof | None":
        """Solve the primal over the first `rows` patterns.

        Returns:
            a solution, or a proof that there is none; neither where the solver's tolerances or the time allow no
            answer.
        """
        patterns = self.patterns.counts[:rows]
        kind, workers = self.patterns.kind[:rows], self.patterns.workers.astype(np.float64)
        parallelism = self.patterns.parallelism
        for _ in range(MOST_ROUNDS):
            pool = self._pool[self._pool < rows]
            missing, shares, prices = cheapest_shortfall(self._columns(pool), self._asked)
            if missing <= MET:
                used = shares > LEAST_SHARE
                return Mixture(pool[used], shares[used])
            price, offset = prices[: len(parallelism)], prices[len(parallelism) :]
            asked = float(price @ parallelism)
            margin = MARGIN * float(np.abs(price) @ parallelism)
            until = covered_from(self.patterns.counts, self.patterns.kind, price, workers, asked - margin)
            if until > rows:
                return Proof(until - 1, price)
            index, value = best_of_blocks(patterns, kind, price, offset, min(BLOCKS, rows))
            dearer = np.setdiff1d(index[value > MARGIN], pool)
            if not len(dearer) or time.spent:
                return None
            self._pool = np.union1d(self._pool, dearer)
        return None

    def another(self, t: float, seed: int) -> Mixture | None:
        """Another solution of the primal at t, over the pool and some more patterns; a random one."""
        rows = int(np.searchsorted(self.patterns.reach, t, side="right"))
        random = np.random.default_rng(seed)
        pool = np.union1d(self._pool[self._pool < rows], random.integers(0, rows, MORE_PATTERNS))
        from scipy.optimize import linprog  # slow to import

        solved = linprog(
            random.random(len(pool)), A_eq=self._columns(pool), b_eq=np.ones(len(self._asked)), method="highs-ds"
        )
        if solved.x is None:
            return None
        used = solved.x > LEAST_SHARE
        return Mixture(pool[used], solved.x[used])

    def _columns(self, pool: Ints) -> Floats:
        """(n + T, K): what one worker with each pattern gives, as a share of what is asked."""
        patterns = self.patterns
        columns = np.zeros((len(self._asked), len(pool)))
        columns[: -self._kinds] = patterns.counts[pool].T
        columns[len(patterns.parallelism) + patterns.kind[pool], np.arange(len(pool))] = 1.0
        return np.asarray(columns / self._asked[:, None])

    def _next(self, low: int, high: int) -> int:
        """Rows to try next: about half of those in question, all with the same t together."""
        reach = self.patterns.reach
        middle = int(np.searchsorted(reach, reach[min((low + high) // 2, high - 1)], side="right"))
        return middle if middle < high else int(np.searchsorted(reach, reach[high - 1], side="left"))


def cheapest_shortfall(columns: Floats, asked: Floats) -> tuple[float, Floats, Floats]:
    """Minimise shortage and excess relative to the demand (m,), by assigning workers to columns (m, K) in the same units.

    Returns:
        the minimum, the workers on each column, and the prices (m,) of one unit of demand.
    """
    rows, patterns = columns.shape
    cost = np.concatenate([np.zeros(patterns), np.ones(2 * rows)])
    slack = np.hstack([columns, np.eye(rows), -np.eye(rows)])
    from scipy.optimize import linprog  # slow to import

    solved = linprog(cost, A_eq=slack, b_eq=np.ones(rows), method="highs-ds")
    return float(solved.fun), solved.x[:patterns], solved.eqlin.marginals / asked
