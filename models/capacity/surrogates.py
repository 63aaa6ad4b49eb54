"""Surrogates: regressions from a budget (memory, task slots) to its MST (StreamBed section 6, Eq. 5-8).

Notation:

    M      memory of one TaskManager, MiB
    Pi     task slots of all operators but the sources
    phi    transformation of both: x (linear), log(1 + x) (log), sqrt(x) (sqrt)
    n      observations
    X      [phi(M), phi(Pi)], (n, 2); y the measured MSTs, (n,), records/s

    MST = a phi(M) + b phi(Pi) + c                                                        (Eq. 6, 7, 8)

The least squares are solved on centred columns of unit length, so that memory in MiB and the slots do not spoil each
other's digits, and with minimum norm: what the observations do not show gets the coefficient 0 (memory, where all
of them have the same). Errors are root mean squared errors (RMSE), records/s.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Protocol, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from models.errors import InvalidInput
from models.plan import Interval
from models.schema import Format

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

Array = NDArray[np.float64]
SurrogateName = Literal["linear", "log", "sqrt"]
SURROGATES: Final[tuple[SurrogateName, ...]] = get_args(SurrogateName)

_PHI: Final[dict[str, Callable[[Array], Array]]] = {"linear": np.positive, "log": np.log1p, "sqrt": np.sqrt}
LEAST_SPAN: Final = 2.0
"""Most over fewest task slots that the lower half of the observations must have to extrapolate from."""
_RANK_TOLERANCE: Final = 1e-10
"""A direction of the scaled columns counts as unseen below this share of the largest singular value."""


class MeasuredBudget(Protocol):
    """What a data set is made of; an `Observation` is one."""

    @property
    def memory_mb(self) -> float: ...
    @property
    def task_slots(self) -> int: ...
    @property
    def mst(self) -> float: ...


@dataclass(frozen=True, eq=False)
class Dataset:
    """The observations D, in the order of measurement; arrays of shape (n,) that cannot be written to."""

    memory_mb: Array
    task_slots: Array
    mst: Array

    def __post_init__(self) -> None:
        for name in ("memory_mb", "task_slots", "mst"):
            values = np.array(getattr(self, name), dtype=np.float64)
            if values.ndim != 1 or len(values) != len(self.mst) or len(values) == 0:
                raise InvalidInput("memory_mb, task_slots and mst must be lists of the same length, at least 1")
            if not np.all(np.isfinite(values) & (values > 0)):
                raise InvalidInput(f"{name} must be finite and above 0, but got {values.tolist()}")
            values.setflags(write=False)
            object.__setattr__(self, name, values)

    @classmethod
    def of(cls, observations: Iterable[MeasuredBudget]) -> Self:
        """Collect the budgets and MSTs of observations."""
        rows = [(o.memory_mb, o.task_slots, o.mst) for o in observations]
        if not rows:
            raise InvalidInput("a data set needs at least one observation, but there is none")
        memory_mb, task_slots, mst = np.array(rows, dtype=np.float64).T
        return cls(memory_mb, task_slots, mst)

    def __len__(self) -> int:
        return len(self.mst)

    def rows(self, index: ArrayLike) -> Self:
        """The observations at `index` (positions, or a mask)."""
        at = np.asarray(index)
        return type(self)(self.memory_mb[at], self.task_slots[at], self.mst[at])


class Surrogate(Format):
    """A fitted model; the coefficients belong to the transformed features (StreamBed Eq. 6-8)."""

    name: SurrogateName
    memory: float = Field(allow_inf_nan=False, description="a: slope of the transformed TaskManager memory (MiB).")
    slots: float = Field(allow_inf_nan=False, description="b: slope of the transformed number of task slots.")
    intercept: float = Field(allow_inf_nan=False, description="c, records/s.")

    def predict(self, memory_mb: ArrayLike, task_slots: ArrayLike) -> Array:
        """MST, records/s, with the shape of the (broadcast) arguments; below 0 far outside of what was measured."""
        memory, slots = features(self.name, memory_mb, task_slots)
        return np.asarray(self.memory * memory + self.slots * slots + self.intercept)


def features(name: str, memory_mb: ArrayLike, task_slots: ArrayLike) -> tuple[Array, Array]:
    """phi(M) and phi(Pi)."""
    if name not in _PHI:
        raise InvalidInput(f"a surrogate must be one of {', '.join(SURROGATES)}, but got {name!r}")
    phi = _PHI[name]
    return phi(np.asarray(memory_mb, dtype=np.float64)), phi(np.asarray(task_slots, dtype=np.float64))


@dataclass(frozen=True)
class _LeastSquares:
    """Minimum-norm least squares on centred, scaled columns, with what its prediction band needs."""

    surrogate: Surrogate
    mean: Array
    """Of the columns of X, (2,)."""
    covariance: Array
    """(Z' Z)^+ in the units of X, (2, 2), with Z the centred X."""
    residual_variance: float | None
    """s^2 = RSS / (n - p), p the coefficients that were determined; None where n = p."""
    degrees_of_freedom: int


def _least_squares(name: str, data: Dataset) -> _LeastSquares:
    x = np.column_stack(features(name, data.memory_mb, data.task_slots))
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
    surrogate = Surrogate.model_validate(
        {"name": name, "memory": slope[0], "slots": slope[1], "intercept": y_mean - float(mean @ slope)}
    )
    residuals = data.mst - y_mean - centred @ slope
    freedom = len(data) - 1 - int(seen.sum())
    variance = float(residuals @ residuals) / freedom if freedom > 0 else None
    return _LeastSquares(surrogate, mean, (v @ v.T) / np.outer(length, length), variance, freedom)


def fit(name: str, data: Dataset) -> Surrogate:
    """Least squares of the named surrogate on all observations.

    Raises:
        InvalidInput: the name is unknown.
    """
    return _least_squares(name, data).surrogate


def loocv_predictions(name: str, data: Dataset) -> Array:
    """For each observation, the prediction of the model trained on all others; (n,), records/s.

    Raises:
        InvalidInput: fewer than two observations.
    """
    n = len(data)
    if n < 2:
        raise InvalidInput(f"leave-one-out cross-validation needs at least 2 observations, but got {n}")
    return np.array(
        [fit(name, data.rows(np.arange(n) != i)).predict(data.memory_mb[i], data.task_slots[i]) for i in range(n)]
    )


def loocv_rmse(name: str, data: Dataset) -> float:
    """RMSE of leave-one-out cross-validation, records/s (StreamBed section 6, Eq. 9)."""
    return _rmse(loocv_predictions(name, data), data.mst)


def extrapolation_split(data: Dataset) -> tuple[Dataset, Dataset] | None:
    """The lower half by task slots to train with, and the upper half to test with (StreamBed section 6).

    Equal slots are ordered by memory, then by the order of measurement; of an odd number the middle one trains. None
    where the lower half has fewer than 3 observations or a single number of slots: it could not learn their effect.
    """
    order = np.lexsort((data.memory_mb, data.task_slots))
    half = (len(data) + 1) // 2
    lower, upper = order[:half], order[half:]
    if half < 3 or np.ptp(data.task_slots[lower]) == 0:
        return None
    return data.rows(lower), data.rows(upper)


def extrapolation_tells(data: Dataset) -> bool:
    """Whether the extrapolation split can separate the models: its lower half spans enough task slots.

    Enough is a factor of 2, or the square root of the factor that all observations span, if that is less. Within a
    smaller range every curve is a straight line, and what noise makes of its slope decides.
    """
    split = extrapolation_split(data)
    return split is not None and _span(split[0]) >= min(LEAST_SPAN, math.sqrt(_span(data)))


def _span(data: Dataset) -> float:
    """Most over fewest task slots."""
    return float(data.task_slots.max() / data.task_slots.min())


def extrapolation_rmse(name: str, data: Dataset) -> float | None:
    """RMSE in the upper half of a model trained with the lower half, records/s; None where there is no such split."""
    split = extrapolation_split(data)
    if split is None:
        return None
    lower, upper = split
    return _rmse(fit(name, lower).predict(upper.memory_mb, upper.task_slots), upper.mst)


def prediction_band(
    name: str, data: Dataset, memory_mb: float, task_slots: ArrayLike, probability: float = 0.95
) -> tuple[Array, Array, Array]:
    """Prediction and the limits that one further measurement will lie in; three arrays shaped as `task_slots`.

    With x0 the centred features of the point: y0 +- t_(n-p) s sqrt(1 + 1/n + x0' (Z' Z)^+ x0), where s^2 is the
    regression's own residual variance. Holds if the model is true and errors are normal and alike; in a direction that
    was never varied (memory, where all observations have the same) it adds no uncertainty, because none is known.

    Raises:
        InvalidInput: no more observations than coefficients, so that the errors cannot be estimated.
    """
    if not 0 < probability < 1:
        raise InvalidInput(f"a probability must lie between 0 and 1, but got {probability}")
    result = _least_squares(name, data)
    if result.residual_variance is None:
        raise InvalidInput(
            f"an interval needs more observations than coefficients, but there are {len(data)} for "
            f"{len(data) - result.degrees_of_freedom}; measure at least one more budget"
        )
    memory, slots = features(name, memory_mb, task_slots)
    x0 = np.stack(np.broadcast_arrays(memory, slots), axis=-1) - result.mean
    leverage = 1 / len(data) + np.einsum("...i,ij,...j->...", x0, result.covariance, x0)
    from scipy.special import stdtrit  # Takes longer to import than most answers to compute.

    t = float(stdtrit(result.degrees_of_freedom, (1 + probability) / 2))
    width = t * np.sqrt(result.residual_variance * (1 + leverage))
    value = result.surrogate.predict(memory_mb, task_slots)
    return value, value - width, value + width


def prediction_interval(
    name: str, data: Dataset, memory_mb: float, task_slots: float, probability: float = 0.95
) -> Interval:
    """The MST of a budget with its prediction interval, records/s, cut off at 0; see `prediction_band`."""
    value, low, high = (max(0.0, float(v)) for v in prediction_band(name, data, memory_mb, task_slots, probability))
    return Interval(value=value, low=low, high=high, probability=probability)


def to_estimator(surrogate: Surrogate) -> "Pipeline":
    """The surrogate as a fitted scikit-learn pipeline over the columns memory_mb and task_slots.

    It is made of scikit-learn's and numpy's own parts only, so skops loads it without further trusted types.
    """
    # Imported here because scikit-learn takes a second to import, and sizing does without it.
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import FunctionTransformer

    columns = np.array(["memory_mb", "task_slots"], dtype=object)
    transform = FunctionTransformer(_PHI[surrogate.name], validate=True, feature_names_out="one-to-one")
    transform.n_features_in_, transform.feature_names_in_ = 2, columns
    regression = LinearRegression()
    regression.coef_ = np.array([surrogate.memory, surrogate.slots])
    regression.intercept_, regression.n_features_in_ = surrogate.intercept, 2
    return Pipeline([("transform", transform), ("regression", regression)])


def _rmse(predicted: Array, measured: Array) -> float:
    return float(np.sqrt(np.mean((predicted - measured) ** 2)))
