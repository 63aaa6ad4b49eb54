"""How much each candidate counts: stacking of predictive densities (Yao, Vehtari, Simpson and Gelman 2018).

Notation:

    p_ik    density of observation i, predicted by candidate k fitted to all others; (n, candidates)
    w       weights of the candidates, on the simplex
    L(w)    prod_i sum_k w_k p_ik                                                                 (1)

Stacking takes the w that maximises L. With few observations that maximum jumps from one candidate to another with each
new one, so the mean of w is taken instead, with L as its likelihood and a Dirichlet prior: where the observations do
not separate two candidates, they share the weight. All concentrations of the prior sum to 1, so that it counts as much
as one observation.

    E[w] = sum_s L(w_s) w_s / sum_s L(w_s),     w_s points of the prior                           (2)

A further observation with the densities p_k multiplies L by sum_k w_k p_k, so that the weights after it follow from
second moments of those before:

    E[w_k | p] = sum_l E[w_k w_l] p_l / sum_l E[w_l] p_l                                          (3)
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from models.capacity.growth.dataset import Array

_POINTS: Final = 4096


@dataclass(frozen=True)
class StackingMoments:
    """What is known of the weights."""

    mean: Array
    """E[w], (candidates,)."""
    second: Array
    """E[w_k w_l], (candidates, candidates)."""
    left_out: Array
    """E[w] of the observations but i, (n, candidates)."""

    def after(self, density: Array) -> Array:
        """E[w] after one more observation, Eq. 3.

        Args:
            density: of that observation by each candidate, (outcomes, candidates), up to a factor of each outcome.

        Returns:
            (outcomes, candidates).
        """
        return np.asarray(density @ self.second / (density @ self.mean)[:, None])


def stacking_moments(log_density: Array, shares: Array | None = None) -> StackingMoments:
    """First (Eq. 2) and second moments of w.

    Args:
        log_density: log p_ik, (n, candidates).
        shares: of the weight beforehand, (candidates,), summing to 1; the same for all if absent.
    """
    candidates = log_density.shape[1]
    density = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    points = _prior_points(np.full(candidates, 1 / candidates) if shares is None else shares)
    each = np.log(points @ density.T)
    likelihood = each.sum(axis=1)
    share = _shares(likelihood)
    return StackingMoments(
        mean=np.asarray(share @ points),
        second=np.asarray((points * share[:, None]).T @ points),
        left_out=np.stack([_shares(likelihood - one) @ points for one in each.T]),
    )


def _shares(log_likelihood: Array) -> Array:
    """Of each point."""
    share = np.exp(log_likelihood - log_likelihood.max())
    return np.asarray(share / share.sum())


def _prior_points(concentrations: Array) -> Array:
    """Points of the Dirichlet distribution: normalised gamma quantiles of points that fill the unit cube evenly (the
    additive recurrence of Roberts 2018)."""
    from scipy.special import gammaincinv  # Takes longer to import than most answers to compute.

    candidates, root = len(concentrations), 2.0
    for _ in range(32):
        root = (1 + root) ** (1 / (candidates + 1))
    steps = root ** -np.arange(1.0, candidates + 1)
    cube = (0.5 + np.arange(1, _POINTS + 1)[:, None] * steps) % 1.0
    gammas = gammaincinv(concentrations, np.clip(cube, 1e-12, 1 - 1e-12)) + 1e-300
    return np.asarray(gammas / gammas.sum(axis=1, keepdims=True))
