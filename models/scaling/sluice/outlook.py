"""What a deployment would cost over the time to come: tasks that are paid for, and records that are late.

A fluid model: between two steps the lag grows by what arrives and shrinks by what is read.

    lag(t + dt) = max(0, lag(t) + (r(t) - C(t)) dt)         C(t) = 0 while the job is down
    wait(t)     = time until the job is up again + lag(t) / C

    cost = sum_t n(t) dt + price x need x sum_t [wait(t) > late] (1 + wait(t) / patience) r(t) dt / r_mean

n(t) tasks run, `need` is the tasks that the mean rate needs. Lag that is left at the end costs the time that it takes
to read it. The rate is uncertain: costs are those of its low, mean and high path, weighted 0.3, 0.4 and 0.3 (Swanson's
rule for the 10 %, 50 % and 90 % quantiles).
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from models.scaling.sluice.forecast import Forecast
from models.scaling.sluice.settings import SluiceSettings

Array = NDArray[np.float64]

STEP_S: Final = 10.0
WEIGHTS: Final = np.array([0.3, 0.4, 0.3])
LEAST_SPARE: Final = 0.05
"""Share of the capacity that is taken to be spare when lag at the end of the horizon is priced."""


@dataclass(frozen=True)
class Options:
    """Deployments that are compared; arrays of shape (options,)."""

    capacity: Array
    """Records/s at the sources together."""
    tasks: Array
    delay_s: Array
    """When the rescale begins."""
    downtime_s: Array
    """0 for the deployment that runs."""


@dataclass(frozen=True)
class Situation:
    """What all options start from."""

    capacity: float
    tasks: float
    lag: float
    """Records that wait in the log."""
    mean_rate: float
    """Over the known past, records/s."""
    need: float
    """Tasks that the mean rate needs."""


@dataclass(frozen=True)
class Costs:
    """Of each option, shape (options,)."""

    total: Array
    """Task-seconds."""
    late_s: Array
    """Expected seconds of traffic at the mean rate that are late."""


def costs(options: Options, situation: Situation, forecast: Forecast, settings: SluiceSettings) -> Costs:
    """Expected costs of each option over the horizon."""
    paths = _paths(forecast, settings)
    number = len(options.capacity)
    lag = np.full((number, len(WEIGHTS)), situation.lag, dtype=np.float64)
    begin, end = options.delay_s, options.delay_s + options.downtime_s
    late, penalty = np.zeros_like(lag), np.zeros_like(lag)
    for k in range(paths.shape[1]):
        start, stop = k * STEP_S, (k + 1) * STEP_S
        before = np.clip(begin - start, 0.0, STEP_S)
        after = np.clip(stop - end, 0.0, STEP_S)
        read = situation.capacity * before + options.capacity * after
        arrived = paths[:, k] * STEP_S
        lag = np.maximum(lag + arrived - read[:, None], 0.0)
        serving = np.where(stop <= begin, situation.capacity, options.capacity)
        down = np.where(stop > begin, np.maximum(end - stop, 0.0), 0.0)
        wait = down[:, None] + lag / serving[:, None]
        is_late = arrived * (wait > settings.late_s)
        late += is_late
        penalty += is_late * (1 + wait / settings.patience_s)
    spare = np.maximum(options.capacity[:, None] - paths[:, -1], LEAST_SPARE * options.capacity[:, None])
    penalty += np.maximum(paths[:, -1], LEAST_SPARE * situation.mean_rate) * lag / spare
    horizon = paths.shape[1] * STEP_S
    held = np.minimum(begin, horizon) * situation.tasks + np.maximum(horizon - begin, 0.0) * options.tasks
    price = settings.late_price * situation.need / situation.mean_rate
    return Costs(held + price * (penalty @ WEIGHTS), (late @ WEIGHTS) / situation.mean_rate)


def _paths(forecast: Forecast, settings: SluiceSettings) -> Array:
    """Low, mean and high rate at each step of the fluid model, shape (3, steps)."""
    steps = round(settings.horizon_s / STEP_S)
    at = np.minimum((np.arange(steps) * STEP_S // settings.forecast_step_s).astype(np.int64), len(forecast.mean) - 1)
    return np.stack([forecast.low, forecast.mean, forecast.high])[:, at]
