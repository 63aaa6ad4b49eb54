"""The downtime of a rescale, learned by the state that it moves.

    downtime = a + b x state + what cold code loses

Bayesian linear regression of the measured downtimes, with the assumed one as the prior of a and a wide prior of b; what cold
code loses is a running mean of the capacity that was missing after a restart, in seconds of the full capacity.
"""

from typing import Final

import numpy as np

PRIOR_SHARE: Final = 1.0
"""Standard deviation of a, as a share of the assumed downtime."""
PRIOR_PER_MB: Final = 0.02
"""Standard deviation of b, seconds per MiB: 50 MiB/s."""
NOISE_S: Final = 1.0
KEPT: Final = 0.6
"""Weight of the past in the running mean."""


class Downtime:
    """Collects rescales."""

    def __init__(self, assumed_s: float, learns: bool = True) -> None:
        """Args:
        assumed_s: before the first rescale, seconds.
        learns: whether it changes with what is measured.
        """
        self._learns = learns
        prior = np.array([(PRIOR_SHARE * max(assumed_s, 0.1)) ** -2, PRIOR_PER_MB**-2])
        self._precision = np.diag(prior)
        self._weighted = prior * np.array([assumed_s, 0.0])
        self._fitted = (assumed_s, 0.0)
        """a and b."""
        self._lost_s: float | None = None

    def observe(self, downtime_s: float, state_mb: float) -> None:
        """Record a rescale: how long the job read nothing, and the state that it moved."""
        if self._learns:
            row = np.array([1.0, state_mb])
            self._precision = self._precision + np.outer(row, row) / NOISE_S**2
            self._weighted = self._weighted + row * downtime_s / NOISE_S**2
            a, b = np.linalg.solve(self._precision, self._weighted)
            self._fitted = (float(a), float(b))

    def observe_lost(self, seconds: float) -> None:
        """Record the seconds of full capacity that were missing after a restart."""
        if self._learns:
            self._lost_s = seconds if self._lost_s is None else KEPT * self._lost_s + (1 - KEPT) * seconds

    def of(self, state_mb: float) -> float:
        """Expected downtime with this state, cold code included, seconds."""
        a, b = self._fitted
        return max(a + max(b, 0.0) * state_mb, 0.0) + (self._lost_s or 0.0)
