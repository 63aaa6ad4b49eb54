"""A law's possible curves: equally likely draws from its posterior, which predict the MST at any budget.

Notation, for draw j:

    G(n)      log g(n) of the draw's shape; n2 the most slots that were measured
    kappa     drift: growth beyond n2 is the law's, with its logarithm multiplied by kappa; Student-t around 1
    T_nu      distribution function of the noise

    log MST_j(M, n) = alpha_j + a_j log(M / M_ref) + G_j(min(n, n2)) + kappa_j (G_j(n) - G_j(min(n, n2)))        (1)
    P(MST >= R)     = mean_j T_nu((log MST_j - log R) / sigma_j)                                                 (2)

The drift is what a law that holds inside the measured range may be off by outside, for each e-fold of growth. Since
kappa > 0, no curve falls, so (2) does not fall with n either.

Draws are strata of equal probability of the nodes of the posterior and the drift: in groups by what they predict for
ten times the measured slots, and in each group by what they predict for n2. So few draws are enough, and there is
nothing random about them.
"""

from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, Final, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field, model_validator

from models.capacity.growth.dataset import Array
from models.capacity.growth.posterior import Posterior, student_log_density, student_probability
from models.capacity.growth.shapes import Extent, LawName, log_growth
from models.schema import Format, Positive, PositiveInt

DRAWS: Final = 160
LAW_DRIFT: Final = 0.14
"""Scale of kappa of a growth law."""
_DRIFTS: Final = np.linspace(-3.5, 3.5, 15)
FAR: Final = 10.0
"""Multiple of n2 at which draws are ordered."""
_GROUPS: Final = 20
_DIGITS: Final = 6


class DrawnCurves(Format):
    """Draws of any candidate that was fitted by `posterior`; all lists have the same length."""

    fewest_slots: PositiveInt = Field(description="n1.")
    most_slots: PositiveInt = Field(description="n2.")
    memory_mb: Positive = Field(description="M_ref, MiB.")
    level: tuple[float, ...] = Field(description="alpha: log of the MST at n1 and M_ref.")
    memory_effect: tuple[float, ...] = Field(description="a.")
    noise: tuple[Positive, ...] = Field(description="sigma.")
    drift: tuple[Positive, ...] = Field(description="kappa.")
    shape: tuple[tuple[float, ...], ...] = Field(description="Parameters of g: those of the law.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        lengths = {len(v) for v in (self.level, self.memory_effect, self.noise, self.drift, self.shape)}
        if len(lengths) != 1 or 0 in lengths:
            raise ValueError(f"all lists of draws must have the same length, at least 1, but got {sorted(lengths)}")
        return self

    @cached_property
    def _arrays(self) -> tuple[Array, Array, Array, Array, Array]:
        lists = (self.level, self.memory_effect, self.noise, self.drift, self.shape)
        level, effect, noise, drift, shape = (np.array(v, dtype=np.float64) for v in lists)
        return level, effect, noise, drift, shape

    @property
    def extent(self) -> Extent:
        return Extent(self.fewest_slots, self.most_slots)

    @abstractmethod
    def growth(self, shape: Array, memory_mb: ArrayLike, task_slots: Array) -> Array:
        """G(n) of each draw, without drift, (draws, points)."""

    def log_mst(self, memory_mb: ArrayLike, task_slots: Array) -> Array:
        """Eq. 1 for every draw, (draws, points); the memory is one, or one of each point."""
        level, effect, _, drift, shape = self._arrays
        memory = np.log(np.asarray(memory_mb, dtype=np.float64) / self.memory_mb)
        inside = self.growth(shape, memory_mb, np.minimum(task_slots, float(self.most_slots)))
        beyond = self.growth(shape, memory_mb, task_slots) - inside
        return np.asarray(level[:, None] + effect[:, None] * memory + inside + drift[:, None] * beyond)

    def median(self, memory_mb: float, task_slots: int) -> float:
        """Median MST of the draws, records/s."""
        return float(np.exp(np.median(self.log_mst(memory_mb, np.array([task_slots], dtype=np.float64)))))

    def mean_log_mst(self, memory_mb: ArrayLike, task_slots: Array) -> Array:
        """Mean of Eq. 1 over the draws, (points,)."""
        return np.asarray(self.log_mst(memory_mb, task_slots).mean(axis=0))

    def sustained(self, memory_mb: float, task_slots: Array) -> Callable[[Array], Array]:
        """P(MST >= R) as a function of R, which broadcasts with the slots, (points,); Eq. 2."""
        log_mst, noise = self.log_mst(memory_mb, task_slots), self._arrays[2][:, None]
        return lambda rate: np.asarray(student_probability((log_mst - np.log(rate)) / noise).mean(axis=0))

    def each_sustains(self, memory_mb: float, task_slots: int, rate: float) -> Array:
        """P(MST_j >= R) of each draw, (draws,)."""
        log_mst = self.log_mst(memory_mb, np.array([task_slots], dtype=np.float64))[:, 0]
        return np.asarray(student_probability((log_mst - np.log(rate)) / self._arrays[2]))

    def chosen(self, at: "np.ndarray") -> Self:
        """The draws with these indices, which may repeat."""
        lists = ("level", "memory_effect", "noise", "drift", "shape")
        drawn = {name: [getattr(self, name)[i] for i in at] for name in lists}
        return type(self).model_validate({**self.model_dump(), **drawn})

    def most(self, memory_mb: float, task_slots: Array) -> float:
        """An MST that is next to impossible to exceed, records/s."""
        return float(np.exp((self.log_mst(memory_mb, task_slots) + 30 * self._arrays[2][:, None]).max()))


class LawCurves(DrawnCurves):
    """The draws of a growth law."""

    kind: Literal["law"] = "law"
    law: LawName

    def growth(self, shape: Array, memory_mb: ArrayLike, task_slots: Array) -> Array:
        return log_growth(self.law, shape, task_slots, self.extent)


def draw(law: LawName, shapes: Array, found: Posterior, extent: Extent, memory_mb: float) -> LawCurves:
    """Draws from a law's posterior.

    Args:
        shapes: the law's grid, (shapes, parameters).
        memory_mb: M_ref.
    """
    near_and_far = log_growth(law, shapes, np.array([extent.most, FAR * extent.most], dtype=np.float64), extent)
    return LawCurves(law=law, **drawn_fields(shapes, found, extent, memory_mb, near_and_far, LAW_DRIFT))


def drawn_fields(
    shapes: Array, found: Posterior, extent: Extent, memory_mb: float, near_and_far: Array, drift: float
) -> dict[str, Any]:
    """The fields of `DrawnCurves`.

    Args:
        near_and_far: G(n2) and G(10 n2) of every shape of the grid, (shapes, 2).
        drift: scale of kappa.
    """
    at, kappa = stratified(found, near_and_far, drift)
    return {
        "fewest_slots": extent.fewest,
        "most_slots": extent.most,
        "memory_mb": memory_mb,
        "level": _rounded(found.level[at]),
        "memory_effect": _rounded(found.memory_effect[at]),
        "noise": _rounded(found.noise[at]),
        "drift": _rounded(kappa),
        "shape": tuple(_rounded(row) for row in shapes[found.shape[at]]),
    }


def stratified(found: Posterior, near_and_far: Array, drift: float) -> tuple["np.ndarray", Array]:
    """Nodes of the posterior, and a drift for each: DRAWS of them, equally likely.

    Args:
        near_and_far: G(n2) and G(10 n2) of every shape of the grid, (shapes, 2).
        drift: scale of kappa.
    """
    share = np.exp(student_log_density(_DRIFTS))
    weight = found.weight[:, None] * share / share.sum()
    near, far = near_and_far[found.shape].T
    kappa = 1 + drift * _DRIFTS
    beyond = ((found.level + near)[:, None] + kappa * (far - near)[:, None]).ravel()
    flat = weight.ravel()
    by_far = np.argsort(beyond)
    group = np.empty(len(flat), dtype=np.int8)  # numpy sorts few small integers in linear time
    group[by_far] = np.minimum(_GROUPS * np.cumsum(flat[by_far]), _GROUPS - 1)
    # Inside the measured range drift does not count, so that nodes need be sorted without it.
    by_near = np.argsort(found.level + near, kind="stable")
    order = (by_near[:, None] * len(kappa) + np.arange(len(kappa))).ravel()
    order = order[np.argsort(group[order], kind="stable")]
    reached = np.cumsum(flat[order])
    chosen = order[np.searchsorted(reached, (np.arange(DRAWS) + 0.5) / DRAWS * reached[-1])]
    nodes, drifts = np.unravel_index(chosen, weight.shape)
    return nodes, kappa[drifts]


def _rounded(values: Array) -> tuple[float, ...]:
    """Fewer digits in files; far more than a curve is known with."""
    return tuple(float(f"{v:.{_DIGITS}g}") for v in values)
