"""A short forecast of the rate, with its interval.

Exponential smoothing (ETS) with or without a damped trend, whichever has the lower corrected Akaike criterion, fitted
anew at each forecast to the rates of the last hour; the random walk while the history is short. All come from
statsforecast. A rate that wanders has no trend to be followed, one that goes up and down over the day has.
"""

from collections import deque
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LEAST_HISTORY: Final = 12
"""Steps from which a trend is fitted; before, tomorrow is like today."""


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
        self._seconds = 0.0
        self._records = 0.0

    def observe(self, rate: float, seconds: float) -> None:
        """Take note that `rate` records/s came for `seconds`."""
        while seconds > 0:
            part = min(seconds, self._step_s - self._seconds)
            self._records += rate * part
            self._seconds += part
            seconds -= part
            if self._seconds >= self._step_s * (1 - 1e-9):
                self._steps.append(self._records / self._seconds)
                self._seconds = self._records = 0.0

    @property
    def mean(self) -> float:
        """Mean rate of what is remembered, records/s."""
        seconds = len(self._steps) * self._step_s + self._seconds
        return (sum(self._steps) * self._step_s + self._records) / seconds if seconds > 0 else 0.0

    def forecast(self, steps: int) -> Forecast:
        """The rate over the next `steps` steps.

        A history of one step, or of none but what came since, is continued as it is.
        """
        history = np.array(self._steps)
        if self._seconds >= self._step_s / 2 or not len(history):
            history = np.append(history, self._records / max(self._seconds, 1e-9))
        if len(history) < 3 or np.ptp(history) == 0:
            last = np.full(steps, history[-1])
            return Forecast(last, last, last)
        return self._fitted(history, steps)

    def _fitted(self, history: Array, steps: int) -> Forecast:
        # Imported here: it takes seconds, and the other policies need none of it.
        from statsforecast.models import AutoETS, Naive

        level = round(100 * self._probability)
        # In units of the largest rate: the optimiser stops early on large numbers.
        unit = float(np.max(history))
        models = [Naive()]
        if len(history) >= LEAST_HISTORY:
            models = [AutoETS(season_length=1, model="ANN"), AutoETS(season_length=1, model="AAN", damped=True)]
        fitted = [model.fit(y=history / unit) for model in models]
        best = fitted[0] if len(fitted) == 1 else min(fitted, key=lambda model: float(model.model_["aicc"]))
        found = best.predict(h=steps, level=[level])
        mean, low, high = (np.maximum(unit * found[k], 0.0) for k in ("mean", f"lo-{level}", f"hi-{level}"))
        return Forecast(mean, low, high)
