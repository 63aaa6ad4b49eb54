"""A short forecast of the rate, with its interval.

Exponential smoothing (ETS) with or without a damped trend, whichever has the lower corrected Akaike criterion, fitted
at each forecast to the rates of the last hour; the random walk while the history is short. All come from
statsforecast. A random walk has no trend to follow; a daily pattern has.
"""

from collections import deque
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LEAST_HISTORY: Final = 12
"""Steps from which a trend is fitted; with fewer, the rate is assumed to stay as it is."""
SHIFT_WIDTHS: Final = 3.0
"""Deviation from the forecast, in half widths of its interval, from which a rate counts as unexpected."""
LEAST_SHIFT: Final = 0.1
"""Share of the expected rate below which a deviation is ignored, however narrow the interval."""


@dataclass(frozen=True)
class Forecast:
    """Rates of the steps to come, records/s; arrays of shape (steps,), never below 0."""

    mean: Array
    low: Array
    high: Array


class RateForecast:
    """Collects the rate and forecasts it."""

    def __init__(self, step_s: float, memory_s: float, probability: float) -> None:
        """Args:
        step_s: time over which rates are averaged, seconds.
        memory_s: how far back the forecast looks.
        probability: of the interval.
        """
        self._step_s, self._probability = step_s, probability
        self._steps: deque[float] = deque(maxlen=max(2, round(memory_s / step_s)))
        self._past: deque[float] = deque(maxlen=self._steps.maxlen)
        self._seconds = 0.0
        self._records = 0.0
        self._expected: tuple[float, float] | None = None

    @property
    def mean(self) -> float:
        """Mean rate over the remembered history, records/s."""
        seconds = len(self._past) * self._step_s + self._seconds
        return (sum(self._past) * self._step_s + self._records) / seconds if seconds > 0 else 0.0

    def observe(self, rate: float, seconds: float) -> None:
        """Record that `rate` records/s arrived for `seconds`."""
        while seconds > 0:
            part = min(seconds, self._step_s - self._seconds)
            self._records += rate * part
            self._seconds += part
            seconds -= part
            if self._seconds >= self._step_s * (1 - 1e-9):
                self._end_step(self._records / self._seconds)

    def _end_step(self, rate: float) -> None:
        if self._has_shifted(rate):
            self._steps.clear()
        self._steps.append(rate)
        self._past.append(rate)
        self._seconds = self._records = 0.0
        self._expected = None

    def _has_shifted(self, rate: float) -> bool:
        """Whether the rate differs so much from the forecast that the history is no guide any more."""
        if self._expected is None:
            return False
        mean, half_width = self._expected
        return abs(rate - mean) > max(SHIFT_WIDTHS * half_width, LEAST_SHIFT * mean)

    def forecast(self, steps: int) -> Forecast:
        """The rate over the next `steps` steps.

        A history of one or two steps is continued as a constant.
        """
        history = np.array(self._steps)
        if self._seconds >= self._step_s / 2 or not len(history):
            now = self._records / max(self._seconds, 1e-9)
            history = np.append([] if self._has_shifted(now) else history, now)
        if len(history) < 3 or np.ptp(history) == 0:
            last = np.full(steps, history[-1])
            found = Forecast(last, last, last)
        else:
            found = self._fitted(history, steps)
        if self._expected is None:
            # For the current or next step, which is compared with it once it has ended.
            self._expected = float(found.mean[0]), float(found.high[0] - found.low[0]) / 2
        return found

    def _fitted(self, history: Array, steps: int) -> Forecast:
        # Imported here: the import takes seconds, and other policies do not need it.
        from statsforecast.models import AutoETS, Naive

        level = round(100 * self._probability)
        # In units of the largest rate: the optimiser stops early on large numbers.
        unit = float(np.max(history))
        models: list[Any] = [Naive()]
        if len(history) >= LEAST_HISTORY:
            models = [AutoETS(season_length=1, model="ANN"), AutoETS(season_length=1, model="AAN", damped=True)]
        fitted = [model.fit(y=history / unit) for model in models]
        best = fitted[0] if len(fitted) == 1 else min(fitted, key=lambda model: float(model.model_["aicc"]))
        found = best.predict(h=steps, level=[level])
        mean, low, high = (np.maximum(unit * found[k], 0.0) for k in ("mean", f"lo-{level}", f"hi-{level}"))
        return Forecast(mean, low, high)
