"""Fitting what a simulator needs to what was measured: unit costs, cores, and what unit costs leave out.

| symbol | meaning | unit |
|---|---|---|
| c | CPU seconds of a record, float64[operators] | s |
| R | records/s into each operator's tasks on one worker, float64[windows, operators] | records/s |
| u | cores that the worker's tasks used together, float64[windows] | cores |

What a worker uses is what its tasks' records cost:

    u = R c                                                                           (1)

On a real cluster only u is measured; no metric says how much of it was each task's. Tasks that share a worker in all windows,
at rates in one proportion, cannot be separated by (1) alone, so a first guess of each c is added as a weak equation of
its own. Errors count relative to what they are errors of, and a worker counts the more, the nearer it was to being full:
one with little to do wakes up for fewer records at a time, so that each costs it more than it will at the capacity that is
asked for.

    minimise  sum over windows of (u / m)^2 ((R c - u) / u)^2  +  w^2 sum over operators of ((c - guess) / guess)^2
    subject to  c >= LEAST_COST guess, where m is the largest u                       (2)

The bound is for operators that hardly show beside another: without it what is left to them may be nothing at all.
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from scipy.optimize import lsq_linear

from models.errors import InvalidInput, SluiceError

GUESS_WEIGHT: Final = 0.1
"""w: a guess that is off by 100 % weighs as much as a window that is off by 10 %."""
LEAST_COST: Final = 0.1
"""Of the guess, which is off by less than that: an operator that was busy for a record used some CPU time for it."""
SHORT_OF_CORES: Final = 0.9
"""Tasks whose CPU time is a smaller share of their busy time wait for something, on a full worker for its cores."""
NO_WAITS: Final[Mapping[str, float]] = {}

LEAST_FACTOR: Final = 0.5
MOST_FACTOR: Final = 2.0
"""On unit costs that were measured: where it takes more than that, something else limits the job."""
_FACTOR_STEPS: Final = 8
_LAST_STEP: Final = 0.005
"""Logarithm of the step that is not worth taking."""


@dataclass(frozen=True)
class WorkerWindow:
    """What the tasks of one worker did in one stretch of time."""

    cores: float
    """CPU seconds of all of them per second."""
    busy: float
    """Busy seconds of all of them per second."""
    rates: Mapping[str, float]
    """Records/s into each operator's tasks; out of them at sources."""
    worker: str = ""
    stateless: "WorkerWindow | None" = None
    """The same of its tasks without state; None if all have some."""
    tasks: int = 0
    threads: Mapping[str, float] = field(default_factory=dict)
    """Busy seconds of each operator's tasks per second, but for the time in which they access state; without operators whose
    accesses are not timed."""

    def at_full_speed(self, cores: float, slowdown: float) -> "WorkerWindow":
        """The same with the records that its CPU time would have been enough for, had its cores not lost speed.

        Args:
            cores: of the worker; infinite where they are not shared.
            slowdown: share of their speed that is lost when all are busy.
        """
        if not 1 < cores < math.inf:
            return self
        speed = 1 - slowdown * min(max(self.cores - 1, 0.0) / (cores - 1), 1.0)
        return replace(self, rates={name: rate / speed for name, rate in self.rates.items()})


def fit_unit_costs(
    windows: Sequence[WorkerWindow], guess: Mapping[str, float], weight: float = GUESS_WEIGHT
) -> dict[str, float]:
    """CPU seconds per record of each operator, by least squares with a lower bound, (2).

    Args:
        windows: of workers, at or near saturation.
        guess: CPU seconds per record of every operator, above 0.

    Returns:
        At least LEAST_COST of each guess.

    Raises:
        InvalidInput: a guess is missing or not above 0.
        SluiceError: no worker used CPU time.
    """
    names = sorted({name for window in windows for name in window.rates} | set(guess))
    wrong = [name for name in names if not guess.get(name, 0.0) > 0]
    if wrong:
        raise InvalidInput(
            f"every operator needs a guess of its cost above 0 s, but {wrong[0]!r} has {guess.get(wrong[0])}"
        )
    used = [window for window in windows if window.cores > 0]
    if not used:
        raise SluiceError(
            "no worker used any CPU time while it was measured, so unit costs are not known; measure for longer"
        )
    scale = np.array([guess[name] for name in names])
    u = np.array([window.cores for window in used])
    rates = np.array([[window.rates.get(name, 0.0) for name in names] for window in used])
    # Unknowns are c / guess, so that all are about 1. u cancels: (u / m) (R c - u) / u = (R c - u) / m.
    left = np.vstack([rates * scale / u.max(), np.eye(len(names)) * weight])
    right = np.concatenate([u / u.max(), np.full(len(names), weight)])
    solution = lsq_linear(left, right, bounds=(LEAST_COST, np.inf), method="bvls").x
    return {name: float(c) for name, c in zip(names, solution * scale, strict=True)}


def cores_for_tasks(
    saturated: Sequence[WorkerWindow],
    *,
    state_waits: bool = False,
    quota: float | None = None,
    external_wait_s: Mapping[str, float] = NO_WAITS,
) -> float | None:
    """Cores that a worker's tasks get of it when they could use more: the most that any used.

    Args:
        saturated: windows in which more was offered than the job takes.
        state_waits: whether busy tasks with state may be waiting for it, so that only those without show a lack of cores.
        quota: cores that a worker's process is held to. A burst may exceed it for a window.
        external_wait_s: time for which a record of an operator makes its task wait outside the job, which is no lack of cores.

    Returns:
        None where no worker was short of cores: then what limits the job is something else, and its cores are not known.
    """

    def short(window: WorkerWindow) -> bool:
        counted = (window.stateless if state_waits else None) or window
        waits = sum(rate * external_wait_s.get(name, 0.0) for name, rate in counted.rates.items())
        return 0 < counted.cores < SHORT_OF_CORES * counted.busy - waits

    found = max((w.cores for w in saturated if short(w)), default=None)
    return found if quota is None or found is None else min(found, quota)


def common_factor(predicted: Sequence[float], measured: Sequence[float]) -> float:
    """By which all unit costs must grow for predictions to be right in the geometric mean, MST being inverse to costs.

    Args:
        predicted: MST by the unit costs as they are, records/s.
        measured: MST of the same configurations, records/s.
    """
    return math.exp(statistics.fmean(math.log(p / m) for p, m in zip(predicted, measured, strict=True)))


def fit_factor(predicted: Callable[[float], Sequence[float]], measured: Sequence[float]) -> tuple[float, float]:
    """The factor on all unit costs by which predictions are right in the geometric mean, between LEAST_FACTOR and MOST_FACTOR.

    It takes some steps, since what else limits a job does not change with the cost of its records.

    Args:
        predicted: MST of each configuration with unit costs changed by a factor, records/s.
        measured: MST of the same configurations, records/s.

    Returns:
        The factor, and how far predictions then are off (`deviation`).
    """
    factor, found = 1.0, predicted(1.0)
    for _ in range(_FACTOR_STEPS):
        wanted = min(max(factor * common_factor(found, measured), LEAST_FACTOR), MOST_FACTOR)
        if abs(math.log(wanted / factor)) < _LAST_STEP:
            break
        factor, found = wanted, predicted(wanted)
    return factor, deviation(found, measured)


def deviation(predicted: Sequence[float], measured: Sequence[float]) -> float:
    """Root mean square of log (predicted / measured): log 2 where each prediction is twice, or half, what was measured.

    Args:
        predicted, measured: MST of the same configurations, records/s.
    """
    logs = [math.log(p / m) for p, m in zip(predicted, measured, strict=True)]
    return math.sqrt(statistics.fmean(log**2 for log in logs))


def relative_error(predicted: float, measured: float) -> float:
    """0.1 where the prediction is a tenth too high."""
    return predicted / measured - 1


def median_absolute(errors: Sequence[float]) -> float:
    """Median of their absolute values."""
    return statistics.median(abs(error) for error in errors)


def hot_share(shares: Sequence[float]) -> float:
    """Share of the records that carry one hot key, when all others are spread evenly over the n tasks.

    The fullest task has f = h + (1 - h) / n of them, so h = (f - 1/n) / (1 - 1/n).

    Args:
        shares: of the records that each task took; they sum to 1. One task alone shows nothing: 0.
    """
    n = len(shares)
    return 0.0 if n < 2 else max(0.0, (max(shares) - 1 / n) / (1 - 1 / n))
