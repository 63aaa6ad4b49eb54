"""A short forecast of the rate, as paths that it may take.

Three forecasts compete: the last rate; a damped trend (ETS of type AAN, from statsforecast), fitted to the last hour; and,
once the rate has repeated itself, the same time of the last period, shifted to the present level. All of them forecast once
a step, whether or not somebody asks, and the one with the smallest mean absolute error over the last hour is used. Its
uncertainty is what it was wrong by: a path is the forecast plus or minus one of its past error vectors, all steps together,
as in conformal prediction by residuals. So errors of several steps stay correlated, and of their distribution nothing is
assumed but its symmetry: a rate that has only fallen so far leaves errors below 0 alone, and may rise as fast. Errors count
in records/s, whatever the rate: one that has fallen to almost nothing may leap as far as before. Above the highest rate of the
history they count for less.

Steps are means over `step_s`. The forecast is made from any moment: the history consists of the means that ended one, two,
... steps before it.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from models.scaling.sluice.season import find_period

Array = NDArray[np.float64]

FITTED_STEPS: Final = 60
"""History of the trend."""
LEAST_FITTED: Final = 12
JUDGED: Final = 60
"""Last forecasts by which the three are compared."""
KEPT_ERRORS: Final = 120
REFITTED: Final = 5
"""Steps for which the parameters of the trend stay, while its level and slope follow the rate."""
KEPT_STEPS: Final = 4 * 1440
"""History of the season: four days of minutes."""
PERIOD_EVERY: Final = 60
"""Steps between two searches for a period."""
LEAST_ERRORS: Final = 8
ABOVE_HIGHEST: Final = 0.5
"""Share that is kept of what an error adds above the highest rate of the history and of the forecast."""
ASSUMED_ERROR: Final = 0.1
"""Standard deviation of the first step, as a share of the rate, while there are fewer errors; it grows with the square root
of the step."""


@dataclass
class _Candidate:
    """A way to forecast, its open forecasts and its past errors."""

    forecast: Callable[[Array], Array | None]
    """From rates of whole steps to those of the next ones; None where it has too little history."""
    open: deque[tuple[float, Array]] = field(default_factory=deque)
    """When each was made, and its rates."""
    errors: deque[Array] = field(default_factory=lambda: deque(maxlen=KEPT_ERRORS))
    """Each of shape (steps,), records/s."""
    sizes: deque[float] = field(default_factory=lambda: deque(maxlen=JUDGED))


class RateForecast:
    """Collects the rate and forecasts it."""

    def __init__(
        self, step_s: float, sample_s: float, steps: int, paths: int, trend: bool = True, season: bool = True
    ) -> None:
        """Args:
        step_s: over which rates are averaged, seconds; a multiple of `sample_s`.
        sample_s: time between two rates, seconds.
        steps: of a forecast.
        paths: of a forecast.
        trend, season: whether these are candidates.
        """
        self._every = max(1, round(step_s / sample_s))
        self._steps, self._paths = steps, paths
        self._kept = KEPT_STEPS * self._every
        self._samples: Array = np.zeros(2 * self._kept)
        self._end = self._count = 0
        self._period: int | None = None
        self._fitted: tuple[Any, float, int] | None = None
        """The trend's model, the first rate that it was fitted to, and when."""
        ways: list[Callable[[Array], Array | None]] = [self._last]
        ways += [self._trend] if trend else []
        ways += [self._season] if season else []
        self._candidates = [_Candidate(way) for way in ways]

    @property
    def period_steps(self) -> int | None:
        """The period of the rate, steps; None if none was found."""
        return self._period

    def observe(self, rate: float) -> None:
        """Record the mean rate of the last step, records/s; to be called each `sample_s`."""
        if self._end == len(self._samples):
            self._samples[: self._kept - 1] = self._samples[self._end - self._kept + 1 :]
            self._end = self._kept - 1
        self._samples[self._end] = rate
        self._end += 1
        self._count += 1
        for candidate in self._candidates:
            self._close(candidate)
        if self._count % self._every == 0:
            self._open()
        if self._count % (PERIOD_EVERY * self._every) == 0:
            self._period = find_period(self._history())

    def _open(self) -> None:
        """Let every candidate forecast, to be compared with what comes."""
        history = self._history()
        for candidate in self._candidates:
            rates = candidate.forecast(history)
            if rates is not None:
                candidate.open.append((self._count, rates))

    def _close(self, candidate: _Candidate) -> None:
        """Compare the forecasts whose last step has passed with what came."""
        while candidate.open and candidate.open[0][0] + self._steps * self._every <= self._count:
            made, rates = candidate.open.popleft()
            back = self._count - made
            ends = [int(back - (i + 1) * self._every) for i in range(self._steps)]
            came = self._samples[self._end - 1 - np.array(ends)]
            candidate.errors.append(came - rates)
            candidate.sizes.append(float(np.mean(np.abs(came - rates))))

    def _history(self) -> Array:
        """Rates of whole steps up to now, the latest last."""
        return self._samples[max(self._end - self._kept, 0) : self._end][:: -self._every][::-1]

    def forecast(self, now: float | None = None, spread: bool = True) -> Array:
        """Paths that the rate may take, shape (paths, steps), records/s, never below 0; requires an observation.

        Args:
            now: the present rate, where it is known better than by the mean of the last step.
            spread: whether paths differ by past errors.
        """
        history = self._history()
        best, rates = self._best(history)
        if now is not None:
            rates = rates * max(now / max(float(rates[0]), 1e-9), 1.0)
        if not spread:
            return np.tile(np.maximum(rates, 0.0), (self._paths, 1))
        if len(best.errors) < LEAST_ERRORS:
            return np.asarray(np.maximum(rates + self._assumed_errors(), 0.0))
        paths, highest = rates + self._past_errors(best), max(float(np.max(history)), float(np.max(rates)))
        paths -= (1.0 - ABOVE_HIGHEST) * np.maximum(paths - highest, 0.0)
        return np.asarray(np.maximum(paths, 0.0))

    def _best(self, history: Array) -> tuple[_Candidate, Array]:
        found: list[tuple[float, int, _Candidate, Array]] = []
        for candidate in self._candidates:
            rates = candidate.forecast(history)
            if rates is None:
                continue
            wrong = float(np.mean(candidate.sizes)) if len(candidate.sizes) >= LEAST_ERRORS else np.inf
            found.append((wrong, len(found), candidate, rates))
        _, _, best, rates = min(found, key=lambda one: one[:2])
        return best, rates

    def _assumed_errors(self) -> Array:
        """Error vectors while too few are known, shape (paths, steps), records/s."""
        grows = ASSUMED_ERROR * np.sqrt(np.arange(1, self._steps + 1))
        return np.asarray(np.outer(_normal_quantiles(self._paths), grows) * max(self._samples[self._end - 1], 1.0))

    def _past_errors(self, candidate: _Candidate) -> Array:
        """Error vectors, evenly from the lowest to the highest, shape (paths, steps), records/s."""
        errors = np.array(candidate.errors)
        errors = np.concatenate([errors, -errors])
        order = np.argsort(np.max(np.cumsum(errors, axis=1), axis=1))
        at = np.round((np.arange(self._paths) + 0.5) / self._paths * (len(errors) - 1)).astype(np.int64)
        at[-1] = len(errors) - 1
        return np.asarray(errors[order[at]])

    def _last(self, history: Array) -> Array:
        return np.asarray(np.full(self._steps, history[-1]), dtype=np.float64)

    def _trend(self, history: Array) -> Array | None:
        recent = history[-FITTED_STEPS:]
        if len(recent) < LEAST_FITTED or np.ptp(recent) <= 1e-9 * recent[-1]:
            return None
        return np.asarray(np.maximum(self._ets(recent), 0.0))

    def _ets(self, recent: Array) -> Array:
        """The damped trend. Its parameters are fitted every REFITTED steps, which takes longer than to apply them."""
        if self._fitted is None or self._count >= self._fitted[2] + REFITTED * self._every:
            self._fitted = (_ets().fit(y=recent), float(recent[0]), self._count)
        model, first, _ = self._fitted
        # The fitted initial level is that of another first rate; additive models move with the rates.
        moved = float(recent[0]) - first
        return np.asarray(model.forward(y=recent - moved, h=self._steps)["mean"]) + moved

    def _season(self, history: Array) -> Array | None:
        period = self._period
        if period is None or len(history) < period + LEAST_FITTED:
            return None
        then = np.resize(history[len(history) - period : len(history) - period + self._steps], self._steps)
        recent, before = history[-3:], history[len(history) - period - 3 : len(history) - period]
        level = float(np.mean(recent) / max(float(np.mean(before)), 1e-9))
        return np.asarray(then * min(max(level, 0.5), 2.0))


def _normal_quantiles(count: int) -> Array:
    from scipy.stats import norm

    return np.asarray(norm.ppf((np.arange(count) + 0.5) / count))


def _ets() -> Any:
    """Imported late: it compiles, which would delay commands that only name the policy."""
    from statsforecast.models import AutoETS

    return AutoETS(model="AAN", damped=True)
