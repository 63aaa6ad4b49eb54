"""What observations say about a growth law: the posterior of its shape, level, memory effect and noise, on a grid.

Notation, for observation i of N and a law with growth g:

    z_i     log of the measured MST
    m_i     log(M_i / M_ref), M_ref the geometric middle of the measured memory
    alpha   log of the MST at n1 and M_ref; flat beforehand, or normal where a law knows it (the twin does)
    a       effect of memory: MST ~ M^a; normal beforehand, standard deviation MEMORY_EFFECT
    sigma   scale of the noise of an MST; log-normal beforehand around TYPICAL_NOISE
    nu      degrees of freedom of the noise

    z_i = alpha + log g(n_i) + a m_i + sigma e_i,    e_i ~ Student-t(nu)                          (1)
    p(z_i | others) = 1 / E[1 / p(z_i | parameters)]                                              (2)

With nu = 4 a run that is six times too slow costs its law some 10 nats once, rather than moving it. (2) is exact on a
grid: leaving an observation out divides each node's weight by that observation's density. The grid is adaptive and
deterministic: shapes that explain the observations far worse than the best are dropped; alpha is centred on the median
of the residuals, a on a robust estimate.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from models.capacity.growth.dataset import Array, Dataset

NU: Final = 4.0
TYPICAL_NOISE: Final = 0.06
"""MSTs of the same budget differ by 5 to 8 % in published measurements and on the simulator."""
_NOISE_SPREAD: Final = 0.7
NOISE_SCALES: Final = np.geomspace(0.02, 0.5, 8)
"""sigma. A search for an MST leaves a bracket of some per cent, so none is known more exactly than 2 %."""
MEMORY_EFFECT: Final = 0.2
"""Eight times the memory changes the MST by up to about half."""
_LEVELS: Final = np.linspace(-4.0, 4.0, 9)
"""alpha, in standard errors around its centre."""
_EFFECTS: Final = np.linspace(-2.4, 2.4, 5)
_WORTH_KEEPING: Final = 12.0
"""Nats below the best shape up to which a shape is looked at."""
_NEGLIGIBLE: Final = 1e-5
"""Share of the largest weight below which a node is dropped from the posterior."""


@dataclass(frozen=True)
class Posterior:
    """Weighted nodes; arrays of shape (nodes,) but for `shape`, (nodes,) of row numbers of the law's grid."""

    weight: Array
    """Sums to 1."""
    shape: "np.ndarray"
    level: Array
    memory_effect: Array
    noise: Array
    log_density: Array
    """log p(z_i | others), (N,), Eq. 2."""
    left_out: Array
    """Predicted mean of z_i from all others, (N,)."""


def reference_memory_mb(data: Dataset) -> float:
    """M_ref."""
    return float(np.sqrt(data.memory_mb.min() * data.memory_mb.max()))


def posterior(
    data: Dataset, growth: Array, level: tuple[float, float] | None = None, log_prior: Array | None = None
) -> Posterior:
    """The posterior of a law.

    Args:
        growth: log g of each shape at each observation, (shapes, N).
        level: mean and standard deviation of alpha beforehand; flat if absent.
        log_prior: of each shape, (shapes,); all equally likely if absent.
    """
    z, m = np.log(data.mst), np.log(data.memory_mb / reference_memory_mb(data))
    prior = np.zeros(len(growth)) if log_prior is None else log_prior
    effects = _effects(z, m, growth)
    kept = _kept(z[None, :] - growth - effects[len(effects) // 2] * m, prior)
    rest = z - growth[kept][:, None, :] - effects[:, None] * m  # (shapes, effects, N)
    step = NOISE_SCALES[:, None] / np.sqrt(len(z)) * _LEVELS
    levels = np.median(rest, axis=-1)[:, :, None, None] + step  # (shapes, effects, noises, levels)
    deviations = (rest[:, :, None, None, :] - levels[..., None]) / NOISE_SCALES[:, None, None]
    density = student_log_density(deviations) - np.log(NOISE_SCALES)[:, None, None]
    log_weight = (
        density.sum(axis=-1)
        + prior[kept][:, None, None, None]
        + _normal(effects / MEMORY_EFFECT)[:, None, None]
        # log sigma is the step of the levels, which grows with it: the levels are flat beforehand.
        + (_normal(np.log(NOISE_SCALES / TYPICAL_NOISE) / _NOISE_SPREAD) + np.log(NOISE_SCALES))[:, None]
        + (0.0 if level is None else _normal((levels - level[0]) / level[1]))
    )
    return _normalised(log_weight, density, levels, kept, effects, z - rest)


def _normalised(
    log_weight: Array, density: Array, levels: Array, kept: "np.ndarray", effects: Array, explained: Array
) -> Posterior:
    """Weights and predictions of the grid's nodes; `explained` is log g + a m, (shapes, effects, N)."""
    top = log_weight.max()
    weight = np.exp(log_weight - top)
    # Leaving i out: weight / p(z_i). Its largest value is bounded, since the densities of heavy tails are.
    without = np.exp(-density + density.min(axis=(0, 1, 2, 3))) * weight[..., None]
    total = without.sum(axis=(0, 1, 2, 3))
    log_density = np.log(weight.sum()) - np.log(total) + density.min(axis=(0, 1, 2, 3))
    by_level = (without * levels[..., None]).sum(axis=(0, 1, 2, 3))
    by_growth = (without.sum(axis=(2, 3)) * explained).sum(axis=(0, 1))
    at = np.nonzero(weight > _NEGLIGIBLE)
    return Posterior(
        weight=weight[at] / weight[at].sum(),
        shape=kept[at[0]],
        level=levels[at],
        memory_effect=effects[at[1]],
        noise=NOISE_SCALES[at[2]],
        log_density=log_density,
        left_out=(by_level + by_growth) / total,
    )


def student_log_density(deviation: Array) -> Array:
    """log density of the Student-t distribution with NU degrees of freedom: log(3/8) - 5/2 log(1 + x^2 / 4) for 4."""
    return np.asarray(np.log(0.375) - (NU + 1) / 2 * np.log1p(deviation * deviation / NU))


def student_probability(deviation: Array) -> Array:
    """Distribution function of the same: 1/2 + 3/4 (u - u^3 / 3) with u = x / sqrt(4 + x^2) for 4."""
    u = deviation / np.sqrt(NU + deviation * deviation)
    return np.asarray(0.5 + 0.75 * (u - u * u * u / 3))


def _effects(z: Array, m: Array, growth: Array) -> Array:
    """Nodes of a: around the value that leaves the least absolute residuals with the shape that explains the most."""
    if np.ptp(m) == 0:
        return MEMORY_EFFECT * _EFFECTS
    rest = z - growth
    spread = np.abs(rest - np.median(rest, axis=1)[:, None]).mean(axis=1)
    best = rest[np.argmin(spread)]
    tried = np.linspace(-0.6, 0.6, 121)
    left = best - tried[:, None] * m
    left -= np.median(left, axis=1)[:, None]
    cost = np.abs(left).sum(axis=1) / TYPICAL_NOISE + (tried / MEMORY_EFFECT) ** 2 / 2
    centre = tried[np.argmin(cost)]
    scale = max(float(np.median(np.abs(left[np.argmin(cost)]))) * 1.5, NOISE_SCALES[0])
    error = 1 / np.sqrt(((m - m.mean()) ** 2).sum() / scale**2 + 1 / MEMORY_EFFECT**2)
    return np.asarray(centre + error * _EFFECTS)


def _kept(rest: Array, prior: Array) -> "np.ndarray":
    """Row numbers of the shapes that explain the observations not much worse than the best."""
    centred = rest - np.median(rest, axis=1)[:, None]
    density = student_log_density(centred[:, None, :] / NOISE_SCALES[:, None]) - np.log(NOISE_SCALES)[:, None]
    score = density.sum(axis=-1).max(axis=1) + prior
    return np.flatnonzero(score >= score.max() - _WORTH_KEEPING)


def _normal(deviation: Array) -> Array:
    """log density of the normal distribution, but for its constant."""
    return np.asarray(-0.5 * deviation * deviation)
