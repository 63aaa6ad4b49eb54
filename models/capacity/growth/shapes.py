"""Growth laws: how the MST of a job may grow with its task slots, up to a constant factor.

Notation:

    n       task slots of all operators but the sources
    n1, n2  fewest and most slots that were measured
    g(n)    MST(n) / MST(n1), so g(n1) = 1
    b       growth at n1 for one more slot, over the MST there, 0 < b <= 1
    D(n)    (phi(n) - phi(n1)) / phi'(n1), with phi as in `regressions`
    s       work of all operators but the heaviest, over that of the heaviest
    t(n)    tasks that the heaviest operator gets of n slots
    v       how much the loads of its tasks vary, as a share of their mean
    m(t)    expected largest of t standard normal numbers (Blom's approximation)
    k, q    tasks from which on hot keys count, and the exponent of growth beyond

    linear   g = 1 + b D(n)                      c (n - n0), n0 = n1 - 1/b        (1)   StreamBed Eq. 6
    log      g = 1 + b D(n)                      c (log(1 + n) - l0)              (2)   StreamBed Eq. 7
    sqrt     g = 1 + b D(n)                      c (sqrt(n) - s0)                 (3)   StreamBed Eq. 8
    power    g = (1 + b (n - n1))^p              c (n - n0)^p, 0 < p <= 1         (4)
    even     g = t(n) / (1 + v m(t(n)))                                           (5)
             t = min(n - (n1 - 1), max(1, n / (1 + s)))
    skewed   g = h(t(n)) / h(t(n1)),  h(t) = t / (1 + t / k)^(1 - q)              (6)

`even` is what BIDS2 makes of slots where load is even: while the other operators have more tasks than they need, each
slot goes to the heaviest; from then on it gets its share of the work. The fullest of its tasks decides, so that the
first few tasks bring a little less than the first, and from then on growth is all but linear. `skewed` is what remains
of that where some keys are hot: a task takes at least the records of one key, so from k tasks on, more of them bring
less.

Physical bounds that every shape keeps: it does not fall, and it does not grow faster than the tasks of the operator
that slots are added to, n - (n1 - 1). Below n1 nothing can run, since each operator needs a slot; g is continued there
as n / n1.

A law is a grid of shapes, all equally likely beforehand, spread evenly in what measurements see: the logarithm of the
growth from n1 to n2. q and log k are spread evenly, too: nothing is known of hot keys that are colder than what was
measured shows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np

from models.capacity.growth.dataset import Array

LawName = Literal["linear", "log", "sqrt", "power", "even", "skewed"]
LAWS: Final[tuple[LawName, ...]] = get_args(LawName)

_FINE: Final = 60
"""Shapes of a law with one parameter."""
_EXPONENTS: Final = np.linspace(0.05, 1.0, 20)
_STARTS: Final = 10
_WORK_SHARES: Final = 7
_VARIATIONS: Final = np.array([0.0, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3])
_HOT_FROM: Final = np.geomspace(1.0, 1e5, 32)
"""From one key that has everything to keys that no cluster has tasks for."""
_BEYOND: Final = np.array([0.1, 0.3, 0.5, 0.7, 0.9])


@dataclass(frozen=True)
class Extent:
    """The task slots that were measured: n1 and n2."""

    fewest: int
    most: int


def log_growth(law: str, shape: Array, slots: Array, extent: Extent) -> Array:
    """log g.

    Args:
        shape: (shapes, parameters of the law).
        slots: n, (points,).

    Returns:
        (shapes, points).
    """
    first = float(extent.fewest)
    inside = np.maximum(slots, first)
    below = np.minimum(slots, first) / first
    return np.asarray(_FORMULAS[law](shape, inside, first) + np.log(below))


def shapes_of(law: str, extent: Extent) -> Array:
    """The grid of a law, (shapes, parameters)."""
    first, most = float(extent.fewest), float(extent.most)
    if law in _DISTANCES:
        span = _DISTANCES[law](np.array([most]), first)[0]
        return np.asarray(np.expm1(_middles(_FINE) * np.log1p(span)) / span)[:, None]
    if law == "power":
        starts = 1 / (1 + np.concatenate([[0.0], np.geomspace(0.3, 4 * most, _STARTS - 1)]))
        return _product(starts, _EXPONENTS)
    if law == "even":
        return _product(_work_shares(first, most, _FINE // 2), _VARIATIONS)
    return _product(_work_shares(first, most, _WORK_SHARES), _HOT_FROM, _BEYOND)


def _one_slope(distance: Callable[[Array, float], Array]) -> Callable[[Array, Array, float], Array]:
    return lambda shape, slots, first: np.log1p(shape[:, :1] * distance(slots, first))  # (1) to (3)


def _power(shape: Array, slots: Array, first: float) -> Array:
    return np.asarray(shape[:, 1:2] * np.log1p(shape[:, :1] * (slots - first)))  # (4)


def _log_tasks(work: Array, slots: Array, first: float) -> Array:
    """log t; (5)."""
    return np.asarray(np.log(np.minimum(slots - (first - 1), np.maximum(1.0, slots / (1 + work)))))


def _even(shape: Array, slots: Array, first: float) -> Array:
    from scipy.special import ndtri  # Takes longer to import than most answers to compute.

    log_tasks = _log_tasks(shape[:, :1], slots, first)
    tasks = np.exp(log_tasks)
    return np.asarray(log_tasks - np.log1p(shape[:, 1:2] * ndtri((tasks - 0.375) / (tasks + 0.25))))  # (5); t(n1) = 1


def _skewed(shape: Array, slots: Array, first: float) -> Array:
    work, hot_from, beyond = shape[:, :1], shape[:, 1:2], shape[:, 2:3]
    tasks = _log_tasks(work, slots, first)
    return np.asarray(tasks - (1 - beyond) * (np.log1p(np.exp(tasks) / hot_from) - np.log1p(1 / hot_from)))  # (6)


_DISTANCES: Final[dict[str, Callable[[Array, float], Array]]] = {
    "linear": lambda slots, first: slots - first,
    "log": lambda slots, first: (1 + first) * (np.log1p(slots) - np.log1p(first)),
    "sqrt": lambda slots, first: 2 * np.sqrt(first) * (np.sqrt(slots) - np.sqrt(first)),
}
_FORMULAS: Final[dict[str, Callable[[Array, Array, float], Array]]] = {
    **{law: _one_slope(distance) for law, distance in _DISTANCES.items()},
    "power": _power,
    "even": _even,
    "skewed": _skewed,
}


def _work_shares(first: float, most: float, count: int) -> Array:
    """s, such that the logarithm of t(n2) is spread evenly between its least and its most; 0 where there is one
    operator."""
    most_tasks, least_tasks = most - (first - 1), max(1.0, most / first)
    tasks = np.exp(np.log(most_tasks) + _middles(count) * np.log(least_tasks / most_tasks))
    return np.asarray(np.maximum(most / tasks - 1, 0.0))


def _middles(count: int) -> Array:
    """Middles of so many equal parts of 0 to 1."""
    return np.asarray((np.arange(count) + 0.5) / count)


def _product(*axes: Array) -> Array:
    """All combinations, (combinations, axes)."""
    return np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=-1)
