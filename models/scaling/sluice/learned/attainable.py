"""The share of its even capacity that each operator attains, learned from attained rates.

Skew, bursts, contention and waits between operators leave less of an operator's even capacity than useful times promise, and
not the same of each. Notation, for operator i: x_i its even capacity, records/s; y_i what it takes; m the share expected
beforehand: the champion's if there is one, else a constant.

    log (y_i / x_i) = log m + alpha_i + noise          alpha_i ~ N(0, 0.15^2), noise 0.1

Old observations are forgotten exponentially, towards the prior. What was learned at one capacity is less certain at another:
by `GROWTH` for each factor e between them.
"""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LEAST_SHARE: Final = 0.05
DRIFT: Final = 0.03
"""Standard deviation by which the capacity of a deployment changes from one time to the next."""
GROWTH: Final = 0.05
_PRIOR: Final = 1 / 0.15**2
_PRECISION: Final = 1 / 0.1**2


class AttainableShares:
    """The shares y_i / x_i of a job's operators."""

    def __init__(self, memory_s: float) -> None:
        """Args:
        memory_s: time constant of forgetting observations, seconds.
        """
        self._memory_s = memory_s
        self._precision: dict[str, float] = {}
        self._weighted: dict[str, float] = {}
        self._at: dict[str, float] = {}

    def pass_time(self, seconds: float) -> None:
        """Forget as much as `seconds` make."""
        keep = math.exp(-seconds / self._memory_s)
        for name in self._precision:
            self._precision[name] = keep * self._precision[name] + (1 - keep) * _PRIOR
            self._weighted[name] *= keep

    def observe(self, name: str, even: float, reached: float, expected: float, weight: float = 1.0) -> None:
        """Record that an operator of even capacity `even` takes `reached` records/s.

        Args:
            expected: m.
            weight: divides the variance of the noise.
        """
        before = self._precision.get(name, _PRIOR)
        self._precision[name] = before + weight * _PRECISION
        added = weight * _PRECISION * math.log(reached / even / expected)
        self._weighted[name] = self._weighted.get(name, 0.0) + added
        self._at[name] = even

    def shares(self, names: Sequence[str], expected: Array) -> Array:
        """Shares of operators where `expected` is m, shape (n,) -> (n, operators); never above 1."""
        alphas = (self._weighted.get(name, 0.0) / self._precision.get(name, _PRIOR) for name in names)
        return np.asarray(np.clip(np.outer(expected, [math.exp(alpha) for alpha in alphas]), LEAST_SHARE, 1.0))

    def deviation(self, name: str, even: Array) -> Array:
        """Standard deviation of the logarithm of the share at even capacities, shape (n,)."""
        distance = np.abs(np.log(even / self._at[name])) if name in self._at else np.zeros(len(even))
        return np.asarray(np.sqrt(1 / self._precision.get(name, _PRIOR) + DRIFT**2 + (GROWTH * distance) ** 2))
