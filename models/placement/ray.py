"""A line of thresholds, alpha(t) = base + t slope, along which the smallest t is searched.

With slope (1, 0, 0) and base (0, 1, 1) the smallest t that a plan meets is the minimum of C_cpu alone (CAPSys section
5.2, phase 1); with base 0 and slope alpha* it is the common relaxation (phase 2).
"""

from dataclasses import dataclass

import numpy as np

from models.placement.cost import SAME, TOLERANCE, load_limits
from models.placement.kernels.problem import Floats
from models.placement.problem import Problem


@dataclass(frozen=True)
class Ray:
    """Thresholds alpha(t) = base + t slope; both (3,)."""

    base: Floats
    slope: Floats

    def reach(self, cost: Floats) -> float:
        """The smallest t >= 0 whose thresholds a plan of this cost meets in the dimensions that t moves."""
        moving = self.slope > 0
        return float(((cost - self.base)[moving] / self.slope[moving]).max(initial=0.0))

    def reach_of_loads(self, problem: Problem, loads: Floats) -> Floats:
        """(K,): the same for workers with these loads (K, 3), as shares of their capacity."""
        span = problem.most - problem.least
        moving = (self.slope > 0) & (span > SAME * problem.most)
        above = loads - problem.least - self.base * span
        t = np.where(above > SAME * problem.most, above / np.where(moving, self.slope * span, 1.0), 0.0)
        return np.asarray(t[:, moving].max(axis=1, initial=0.0))

    def limits(self, problem: Problem, t: float) -> Floats:
        """(3,): largest loads for a plan that is better than t by more than the tolerance."""
        return self._limits(problem, t, 1 - 3 * TOLERANCE, 0.0)

    def limits_at(self, problem: Problem, t: float) -> Floats:
        """(3,): largest loads for a plan that is as good as t."""
        return self._limits(problem, t, 1 - TOLERANCE, SAME)

    def _limits(self, problem: Problem, t: float, share: float, spare: float) -> Floats:
        alpha = self.base + t * self.slope
        span = problem.most - problem.least
        moved = (problem.least + alpha * span) * share + spare * problem.most
        moving = (self.slope > 0) & (span > SAME * problem.most)
        return np.where(moving, moved, load_limits(problem, np.where(self.slope > 0, 1.0, self.base)))
