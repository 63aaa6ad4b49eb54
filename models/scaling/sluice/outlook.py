"""The expected cost of a deployment over the horizon: running tasks, and late records.

A fluid model: between two steps the lag grows by what arrives and shrinks by what is read.

    lag(t + dt) = max(0, lag(t) + (r(t) - C(t)) dt)         C(t) = 0 while the job is down
    wait(t)     = time until the job is up again + lag(t) / C

    cost = sum_t n(t) dt + price x need x sum_t [wait(t) > late] (1 + wait(t) / patience) r(t) dt / r_mean

n(t) tasks run, `need` is the tasks that the mean rate needs. With a long patience the share of late records counts, as in
a service level, rather than how late they are. Lag at the end costs the time that it takes to read it. The rate is
uncertain: costs are those of its low, mean and high path, weighted 1/4, 1/2 and 1/4, as quartiles and median.

Later decisions are modelled, too: an overload that has lasted for `correction_s` is corrected by a rescale to `CORRECTED`
x the rate, with its own downtime, as far as the cluster allows. So an unlikely path costs its correction, not an overload
until the end of the horizon.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from models.compiled import compiled
from models.scaling.sluice.forecast import Forecast
from models.scaling.sluice.settings import SluiceSettings

Array = NDArray[np.float64]

STEP_S: Final = 10.0
WEIGHTS: Final = np.array([0.25, 0.5, 0.25])
LEAST_SPARE: Final = 0.05
"""Share of the capacity assumed to be spare when lag at the end of the horizon is priced."""
CORRECTED: Final = 1.3


@dataclass(frozen=True)
class Options:
    """Candidate deployments; arrays of shape (options,)."""

    capacity: Array
    """Records/s at the sources together."""
    tasks: Array
    delay_s: Array
    """When the rescale begins."""
    downtime_s: Array
    """0 for the current deployment."""


@dataclass(frozen=True)
class Situation:
    """The state that all options start from."""

    capacity: float
    tasks: float
    lag: float
    """Records that wait in the log."""
    mean_rate: float
    """Over the known past, records/s."""
    need: float
    """Tasks that the mean rate needs."""
    downtime_s: float
    """Of a rescale."""
    most_tasks: float
    """That the cluster takes."""
    late_price: float
    """Price of a second of late records at the mean rate, in task-seconds of the mean need."""


def costs(options: Options, situation: Situation, forecast: Forecast, settings: SluiceSettings) -> Array:
    """Expected costs of each option over the horizon, task-seconds, shape (options,)."""
    s = situation
    found = _walk(
        np.column_stack([options.capacity, options.tasks, options.delay_s, options.downtime_s]),
        _paths(forecast, settings),
        np.array([s.capacity, s.tasks, s.lag, s.mean_rate, s.downtime_s, s.most_tasks]),
        np.array([settings.late_s, settings.patience_s, settings.correction_s, STEP_S, LEAST_SPARE, CORRECTED]),
    )
    held, late = (found[:, :, i] @ WEIGHTS for i in range(2))
    return np.asarray(held + s.late_price * s.need / s.mean_rate * late)


def _paths(forecast: Forecast, settings: SluiceSettings) -> Array:
    """Low, mean and high rate at each step of the fluid model, shape (3, steps)."""
    steps = round(settings.horizon_s / STEP_S)
    at = np.minimum((np.arange(steps) * STEP_S // settings.forecast_step_s).astype(np.int64), len(forecast.mean) - 1)
    return np.stack([forecast.low, forecast.mean, forecast.high])[:, at]


@compiled
def _walk(options: Array, paths: Array, situation: Array, rules: Array) -> Array:
    """Task-seconds and weighted late records of each option on each path, shape (options, paths, 2)."""
    capacity_now, tasks_now, lag_now, mean_rate, restart_s, most_tasks = situation
    late_s, patience_s, correction_s, step_s, least_spare, corrected = rules
    found = np.zeros((len(options), len(paths), 2))
    for o in range(len(options)):
        capacity_then, tasks_then, delay_s, downtime_s = options[o]
        for p in range(len(paths)):
            capacity, tasks, lag = capacity_now, tasks_now, lag_now
            begun, down_s, overload_s, rate = False, 0.0, 0.0, 0.0
            for k in range(paths.shape[1]):
                rate = paths[p, k]
                if not begun and k * step_s >= delay_s:
                    begun, down_s, overload_s = True, downtime_s, 0.0
                    capacity, tasks = capacity_then, tasks_then
                elif overload_s >= correction_s:
                    wanted = max(corrected * rate, capacity)
                    more = min(wanted / capacity, max(most_tasks / tasks, 1.0))
                    down_s, overload_s = restart_s, 0.0
                    capacity, tasks = capacity * more, tasks * more
                up_s = step_s - min(down_s, step_s)
                down_s -= step_s - up_s
                lag = max(lag + rate * step_s - capacity * up_s, 0.0)
                wait = down_s + lag / capacity
                found[o, p, 0] += tasks * step_s
                if wait > late_s:
                    found[o, p, 1] += rate * step_s * (1 + wait / patience_s)
                overload_s = overload_s + step_s if rate > capacity and down_s == 0.0 else 0.0
            spare = max(capacity - rate, least_spare * capacity)
            found[o, p, 1] += max(rate, least_spare * mean_rate) * lag / spare
    return found
