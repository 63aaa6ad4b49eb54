"""StreamBed's regressions from a budget (memory, task slots) to its MST (section 6, Eq. 5-8).

Notation:

    M      memory of one TaskManager, MiB
    Pi     task slots of all operators but the sources
    phi    transformation of both: x (linear), log(1 + x) (log), sqrt(x) (sqrt)
    n      observations
    X      [phi(M), phi(Pi)], (n, 2); y the measured MSTs, (n,), records/s
    Z      X less its column means, (n, 2); z0 the same for a point that is predicted
    p      coefficients that the observations determine
    s^2    residual variance, RSS / (n - p)

    MST = a phi(M) + b phi(Pi) + c                                                        (Eq. 6, 7, 8)
    y0 +- t_(n-p) s sqrt(1 + 1/n + z0' (Z' Z)^+ z0)     where one further measurement will lie

The least squares are solved on centred columns of unit length, so that memory in MiB and the slots do not spoil each
other's digits, and with minimum norm: what the observations do not show gets the coefficient 0 (memory, where all
of them have the same). Errors are root mean squared errors (RMSE), records/s.

The band holds if the law is true and errors are normal and alike; in a direction that was never varied (memory, where all
observations have the same) it adds no uncertainty, because none is known.
"""

from collections.abc import Callable
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from models.capacity.growth.dataset import Array, Dataset
from models.errors import InvalidInput
from models.schema import Format, NonNegative, PositiveInt

RegressionName = Literal["linear", "log", "sqrt"]
REGRESSIONS: Final[tuple[RegressionName, ...]] = get_args(RegressionName)

_PHI: Final[dict[str, Callable[[Array], Array]]] = {"linear": np.positive, "log": np.log1p, "sqrt": np.sqrt}
_RANK_TOLERANCE: Final = 1e-10
"""A direction of the scaled columns counts as unseen below this share of the largest singular value."""

_NO_ERROR: Final = 1e-250
"""Records/s, in place of an error of 0."""


class Regression(Format):
    """A fitted regression, with what its prediction band needs. Coefficients belong to the transformed features."""

    kind: Literal["regression"] = "regression"
    law: RegressionName
    memory: float = Field(allow_inf_nan=False, description="a: slope of the transformed TaskManager memory (MiB).")
    slots: float = Field(allow_inf_nan=False, description="b: slope of the transformed number of task slots.")
    intercept: float = Field(allow_inf_nan=False, description="c, records/s.")
    mean: tuple[float, float] = Field(description="Means of the columns of X.")
    covariance: tuple[tuple[float, float], tuple[float, float]] = Field(description="(Z' Z)^+.")
    residual_variance: NonNegative | None = Field(description="s^2; null where n = p.")
    degrees_of_freedom: int = Field(ge=0, description="n - p.")
    observations: PositiveInt = Field(description="n.")

    def predict(self, memory_mb: ArrayLike, task_slots: ArrayLike) -> Array:
        """MST, records/s, with the shape of the (broadcast) arguments; below 0 far outside of what was measured."""
        memory, slots = features(self.law, memory_mb, task_slots)
        return np.asarray(self.memory * memory + self.slots * slots + self.intercept)

    def error(self, memory_mb: ArrayLike, task_slots: ArrayLike) -> Array:
        """Standard error of one further measurement, records/s.

        Raises:
            InvalidInput: no more observations than coefficients, so that the errors cannot be estimated.
        """
        if self.residual_variance is None:
            raise InvalidInput(
                f"an interval needs more observations than coefficients, but there are {self.observations} for "
                f"{self.observations - self.degrees_of_freedom}; measure at least one more budget"
            )
        z0 = np.stack(np.broadcast_arrays(*features(self.law, memory_mb, task_slots)), axis=-1) - self.mean
        leverage = 1 / self.observations + np.einsum("...i,ij,...j->...", z0, np.array(self.covariance), z0)
        return np.asarray(np.sqrt(self.residual_variance * (1 + leverage)))

    def sustained(self, memory_mb: float, task_slots: Array) -> Callable[[Array], Array]:
        """P(MST >= R) as a function of R, which broadcasts with the slots, (points,)."""
        from scipy.special import stdtr  # Takes longer to import than most answers to compute.

        value, error = self.predict(memory_mb, task_slots), np.maximum(self.error(memory_mb, task_slots), _NO_ERROR)
        return lambda rate: np.asarray(stdtr(self.degrees_of_freedom, (value - rate) / error))

    def most(self, memory_mb: float, task_slots: Array) -> float:
        """An MST that is next to impossible to exceed, records/s."""
        value, error = self.predict(memory_mb, task_slots), self.error(memory_mb, task_slots)
        return float(np.max(np.maximum(value, 0.0) + 1e6 * error)) + 1.0


def features(law: str, memory_mb: ArrayLike, task_slots: ArrayLike) -> tuple[Array, Array]:
    """phi(M) and phi(Pi)."""
    if law not in _PHI:
        raise InvalidInput(f"a regression must be one of {', '.join(REGRESSIONS)}, but got {law!r}")
    phi = _PHI[law]
    return phi(np.asarray(memory_mb, dtype=np.float64)), phi(np.asarray(task_slots, dtype=np.float64))


def fit_regression(law: str, data: Dataset) -> Regression:
    """Least squares of the named law on all observations.

    Raises:
        InvalidInput: the name is unknown.
    """
    x = np.column_stack(features(law, data.memory_mb, data.task_slots))
    mean, y_mean = x.mean(axis=0), float(data.mst.mean())
    centred = x - mean
    length = np.linalg.norm(centred, axis=0)
    # A column that is constant but for rounding holds no information; a length of 1 leaves it as it is, at 0.
    constant = length <= _RANK_TOLERANCE * np.abs(mean) * np.sqrt(len(data))
    centred[:, constant], length[constant] = 0.0, 1.0
    u, singular, vt = np.linalg.svd(centred / length, full_matrices=False)
    seen = singular > _RANK_TOLERANCE * max(1.0, float(singular[0]))
    v = vt[seen].T / singular[seen]
    slope = (v @ (u[:, seen].T @ (data.mst - y_mean))) / length
    residuals = data.mst - y_mean - centred @ slope
    freedom = len(data) - 1 - int(seen.sum())
    return Regression.model_validate(
        {
            "law": law,
            "memory": slope[0],
            "slots": slope[1],
            "intercept": y_mean - float(mean @ slope),
            "mean": mean.tolist(),
            "covariance": ((v @ v.T) / np.outer(length, length)).tolist(),
            "residual_variance": float(residuals @ residuals) / freedom if freedom > 0 else None,
            "degrees_of_freedom": freedom,
            "observations": len(data),
        }
    )


def loocv_predictions(law: str, data: Dataset) -> Array:
    """For each observation, the prediction of the regression fitted to all others; (n,), records/s.

    Raises:
        InvalidInput: fewer than two observations.
    """
    n = len(data)
    if n < 2:
        raise InvalidInput(f"leave-one-out cross-validation needs at least 2 observations, but got {n}")
    others = [fit_regression(law, data.rows(np.arange(n) != i)) for i in range(n)]
    return np.array([float(o.predict(data.memory_mb[i], data.task_slots[i])) for i, o in enumerate(others)])


def loocv_rmse(law: str, data: Dataset) -> float:
    """RMSE of leave-one-out cross-validation, records/s (StreamBed section 6, Eq. 9)."""
    return rmse(loocv_predictions(law, data), data.mst)


def rmse(predicted: Array, measured: Array) -> float:
    """Root mean squared error, records/s."""
    return float(np.sqrt(np.mean((predicted - measured) ** 2)))
