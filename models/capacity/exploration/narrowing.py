"""How much a measurement is expected to narrow the interval of the slots for a rate (preposterior analysis: Raiffa and
Schlaifer 1961).

Notation, for draw j of J, of all laws together, and a ladder of slots n_1 < ... < n_L:

    k(j)    law of the draw
    v_j     weight of the draw: that of its law over the number of its draws
    S_jl    probability that n_l slots sustain the rate by draw j, with the noise of an MST
    F(n_l)  sum_j v_j S_jl: probability that n_l slots are enough                                 (1)
    W       log of the interval's ends over each other: F^-1(0.975) / F^-1(0.025)                 (2)
    y       log of the MST that a candidate budget may show
    p_j(y)  its density by draw j; p_k(y) the mean over the draws of law k

The draws disagree about the slots that are needed, and about y: measuring y tells which of them to believe. After y the
laws have the weights of stacking with one more observation (`growth.stacking` Eq. 3), and each draw its share of them:

    v_j(y)  = w_k(y) p_j(y) / sum_{i of law k} p_i(y),    k = k(j)                                (3)
    E[W|b]  = mean over Q outcomes y of W with v(y) in (1), y at the middles of Q equal parts of the probability that the
              draws give it                                                                       (4)

Nothing is fitted for (4), so that a candidate costs about a millisecond. It leaves out that older observations, too, would
be explained somewhat differently after a fit.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from models.capacity.growth.capacity_model import PROBABILITY
from models.capacity.growth.dataset import Array
from models.capacity.growth.posterior import student_log_density, student_probability
from models.capacity.observation import Budget
from models.capacity.selection import Stack
from models.capacity.sizing import MOST_TASK_SLOTS

OUTCOMES: Final = 12
"""Q."""
_LADDER: Final = 1.04
_GRID: Final = 160
"""Points at which the distribution of y is known."""


@dataclass(frozen=True, eq=False)
class Narrowing:
    """What measurements would do for one question."""

    stack: Stack
    memory_mb: float
    """Of a TaskManager, that the slots are asked for with."""
    rate: float
    """That must be sustained, records/s, with any headroom."""
    fewest_slots: int

    @cached_property
    def log_width(self) -> float:
        """W, from what is known now."""
        return float(self._widths(self._weights[None, :])[0])

    def expected(self, budget: Budget, repeats: int = 1) -> float:
        """E[W|b], Eq. 4.

        Args:
            repeats: measurements of this budget, whose mean is y.
        """
        expected_y, noise = self._log_mst([budget])[:, 0], self._noise / math.sqrt(repeats)
        y = self._outcomes(expected_y, noise)
        density = np.exp(student_log_density((y[:, None] - expected_y) / noise)) / noise  # (Q, J)
        by_law = density @ self._membership  # (Q, laws), sums over the draws of each
        laws = self.stack.moments.after(by_law / self._membership.sum(axis=0))
        weights = density * ((laws / np.maximum(by_law, 1e-300)) @ self._membership.T)  # Eq. 3
        return float(self._widths(weights).mean())

    @cached_property
    def _noise(self) -> Array:
        """sigma_j, (J,)."""
        return np.concatenate([np.array(curves.noise) for curves in self.stack.curves.values()])

    @cached_property
    def _membership(self) -> Array:
        """1 where a draw is one of a law, (J, laws)."""
        draws = [len(curves.noise) for curves in self.stack.curves.values()]
        return np.repeat(np.eye(len(draws)), draws, axis=0)

    @cached_property
    def _weights(self) -> Array:
        """v, (J,)."""
        return np.asarray(self._membership @ (self.stack.moments.mean / self._membership.sum(axis=0)))

    @cached_property
    def _log_slots(self) -> Array:
        """log n_l, (L,)."""
        steps = math.ceil(math.log(max(MOST_TASK_SLOTS / self.fewest_slots, _LADDER)) / math.log(_LADDER))
        return np.asarray(math.log(self.fewest_slots) + math.log(_LADDER) * np.arange(steps + 1))

    @cached_property
    def _enough(self) -> Array:
        """S, (J, L)."""
        slots = np.exp(self._log_slots)
        log_mst = np.concatenate([c.log_mst(self.memory_mb, slots) for c in self.stack.curves.values()])
        return student_probability((log_mst - math.log(self.rate)) / self._noise[:, None])

    def _log_mst(self, budgets: Sequence[Budget]) -> Array:
        """Mean of y by each draw, (J, budgets)."""
        memory = np.array([b.memory_mb for b in budgets])
        slots = np.array([b.task_slots for b in budgets], dtype=np.float64)
        return np.concatenate([curves.log_mst(memory, slots) for curves in self.stack.curves.values()])

    def _outcomes(self, expected_y: Array, noise: Array) -> Array:
        """y at the middles of Q equal parts of its probability, (Q,)."""
        spread = 6 * noise.max()
        grid = np.linspace(expected_y.min() - spread, expected_y.max() + spread, _GRID)
        reached = self._weights @ student_probability((grid - expected_y[:, None]) / noise[:, None])
        return np.interp((np.arange(OUTCOMES) + 0.5) / OUTCOMES, reached, grid)

    def _widths(self, weights: Array) -> Array:
        """W for each row of weights, Eq. 1 and 2; (rows,). Ends beyond the ladder count as its ends."""
        tail = (1 - PROBABILITY) / 2
        enough = weights @ self._enough
        ends = [[np.interp(p, row, self._log_slots) for p in (tail, 1 - tail)] for row in enough]
        return np.array([high - low for low, high in ends])
