"""The share of the even capacity that skew, bursts and contention leave, learned from attained rates.

Notation: x even capacity of a deployment, records/s; y its real capacity; m(x) the share y / x expected beforehand: the
champion's if there is one, else a constant.

    log (y / x) = log m(x) + alpha + beta (log x - log x_0) + noise             -1 <= beta <= 0

Linear regression with a normal prior (alpha ~ N(0, 0.15^2), beta ~ N(0, 0.3^2), noise 0.1); old observations are
forgotten exponentially, towards the prior. x_0 is the first x observed. beta = 0 is linear scaling; with beta = -1 more
tasks add no capacity, for example if all records of a window have one key.
"""

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LEAST_SHARE: Final = 0.05
DRIFT: Final = 0.03
"""Standard deviation by which the capacity of a deployment changes from one time to the next."""
_PRIOR: Final = np.diag([1 / 0.15**2, 1 / 0.3**2])
_NOISE_VARIANCE: Final = 0.1**2


class AttainableShare:
    """The share y / x as a function of x."""

    def __init__(self, memory_s: float) -> None:
        """Args:
        memory_s: time constant of forgetting observations, seconds.
        """
        self._memory_s = memory_s
        self._precision = _PRIOR.copy()
        self._weighted = np.zeros(2)
        self._first: float | None = None

    def observe(self, even: float, reached: float, expected: float, seconds: float, weight: float = 1.0) -> None:
        """Record that a deployment of even capacity `even` takes `reached` records/s.

        Args:
            expected: m(x).
            seconds: since the last observation.
            weight: of this one; it divides the variance of the noise.
        """
        if self._first is None:
            self._first = math.log(even)
        row = np.array([1.0, math.log(even) - self._first])
        keep, precision = math.exp(-seconds / self._memory_s), weight / _NOISE_VARIANCE
        self._precision = keep * self._precision + (1 - keep) * _PRIOR + np.outer(row, row) * precision
        self._weighted = keep * self._weighted + row * math.log(reached / even / expected) * precision

    def __call__(self, even: Array, expected: Array) -> Array:
        """Share at each even capacity, shape (n,); never above 1, and such that more capacity never takes less."""
        if self._first is None:
            return np.minimum(expected, 1.0)
        alpha, beta = np.linalg.solve(self._precision, self._weighted)
        if not -1 <= beta <= 0:
            beta = min(max(beta, -1.0), 0.0)
            alpha = (self._weighted[0] - self._precision[0, 1] * beta) / self._precision[0, 0]
        share = expected * np.exp(alpha + beta * (np.log(even) - self._first))
        return np.asarray(np.clip(share, LEAST_SHARE, 1.0))

    def deviation(self, even: Array) -> Array:
        """Standard deviation of the logarithm of the share at each even capacity, shape (n,)."""
        first = math.log(even[0]) if self._first is None else self._first
        rows = np.column_stack([np.ones(len(even)), np.log(even) - first])
        variance = np.einsum("ni,ij,nj->n", rows, np.linalg.inv(self._precision), rows)
        return np.asarray(np.sqrt(variance + DRIFT**2))
