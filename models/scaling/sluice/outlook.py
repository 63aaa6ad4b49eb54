"""What a deployment leads to over the next minutes: tasks that run, and records that are late.

A fluid model: between two steps the lag grows by what arrives and shrinks by what is read.

    lag(t + dt) = max(0, lag(t) + (r(t) - C(t)) dt)         C(t) = 0 while the job is down

Records are read in the order of their arrival. Those that are read at t have waited since the cumulative arrivals were what
the cumulative reads are at t; what waits now is taken to have come at the present rate. Records whose wait is above the
objective when they are read are late. Of the lag at the end, those are late that the capacity then cannot read in time, and
those that come until it can: so the larger of two deployments that are both too small is the better one.
Tasks that run count over time, and those that the lag at the end will need. The rate is uncertain, and so is the capacity:
each option is followed along paths of the rate (`forecast`), each with another multiple of the capacity.

Later rescales are looked ahead: as soon as one may follow, an overload that is `seen_after_s` old is corrected to `CORRECTED`
x the rate and what the lag needs within `DRAIN_S`, and so is a lag that the present capacity does not read sooner. More than
`SPARE` x what the rest of the path needs at its highest is reduced to that, but not before a rescale that begins now could be
followed by another: otherwise a reduction would always be postponed. So an unlikely path costs its correction, not an overload
until the end; and a deployment is not counted as late for a later reduction that the policy would not make.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from models.compiled import compiled

Array = NDArray[np.float64]

STEP_S: Final = 10.0
CORRECTED: Final = 1.1
SPARE: Final = 1.3
LEAST_KEPT: Final = 0.1
"""Share of the capacity that a reduction keeps."""
DRAIN_S: Final = 60.0
LEAST_SPARE: Final = 0.05
"""Share of the capacity assumed to be spare when lag at the end is read."""


@dataclass(frozen=True)
class Options:
    """Candidate deployments; arrays of shape (options,)."""

    capacity: Array
    """Records/s at the sources together."""
    deviation: Array
    """Standard deviation of its logarithm."""
    tasks: Array
    downtime_s: Array
    """0 for the current deployment."""
    settled_s: Array
    """From when on the next rescale may follow."""


@dataclass(frozen=True)
class Situation:
    """What all options start from."""

    lag: float
    """Records that wait in the log."""
    rate: float
    """At which they came, records/s."""
    restart_s: float
    """Downtime of later rescales."""
    between_s: float
    """From the end of one to the next."""
    seen_after_s: float
    """Until the lag shows an overload, and a decision follows."""
    work: float
    """Task-seconds of a record: tasks that a later rescale adds per record/s."""
    least_tasks: float
    most_tasks: float
    """Of the job, and that the cluster takes."""
    most_capacity: float
    """Of any deployment, records/s; operators have limits of their own."""


def outlook(
    options: Options, situation: Situation, paths: Array, path_s: float, objective_s: float, corrects: bool = True
) -> tuple[Array, Array]:
    """Expected task-seconds and late records of each option, both of shape (options,).

    Args:
        paths: of the rate, records/s, shape (paths, steps of `path_s` seconds), from low to high.
        objective_s: longest wait of a record that is not late.
        corrects: whether later rescales are looked ahead.
    """
    s = situation
    held, late = _walk(
        np.column_stack([options.capacity, options.deviation, options.tasks, options.downtime_s, options.settled_s]),
        paths,
        _multiples(len(paths)),
        np.array(
            [
                s.lag,
                s.rate,
                s.restart_s,
                s.between_s,
                s.seen_after_s,
                s.work,
                s.least_tasks,
                s.most_tasks,
                s.most_capacity,
            ]
        ),
        np.array([path_s, objective_s, float(corrects)]),
    )
    return held, late


@lru_cache(maxsize=4)
def _multiples(count: int) -> Array:
    """Normal quantiles, dealt to the paths such that they do not depend on their order."""
    from scipy.stats import norm

    quantiles = norm.ppf((np.arange(count) + 0.5) / count)
    return np.asarray(quantiles[(np.arange(count) * _STRIDE) % count])


_STRIDE: Final = 13
"""Without a common factor with the number of paths."""


@compiled
def _walk(options: Array, paths: Array, multiples: Array, situation: Array, rules: Array) -> tuple[Array, Array]:
    """Mean task-seconds and late records of each option over all paths, each of shape (options,)."""
    lag_now, rate_now, restart_s, between_s, seen_after_s, work, least_tasks, most_tasks, most_capacity = situation
    path_s, objective_s, corrects = rules
    held, late = np.zeros(len(options)), np.zeros(len(options))
    steps = int(paths.shape[1] * path_s / STEP_S)
    delay = int(seen_after_s / STEP_S)
    came, highest = np.zeros(steps + 1), np.zeros(steps + 1)
    for p in range(len(paths)):
        for k in range(steps):
            came[k + 1] = came[k] + paths[p, int(k * STEP_S / path_s)] * STEP_S
        for k in range(steps - 1, -1, -1):
            highest[k] = max(highest[k + 1], paths[p, int(k * STEP_S / path_s)])
        for o in range(len(options)):
            capacity = options[o, 0] * np.exp(options[o, 1] * multiples[p])
            tasks, down_s, settled_s = options[o, 2], options[o, 3], options[o, 4]
            lag, rate, age, first = lag_now, paths[p, 0], lag_now / rate_now, 0
            for k in range(steps):
                rate = paths[p, int(k * STEP_S / path_s)]
                seen = paths[p, int(max(k - delay, 0) * STEP_S / path_s)]
                if corrects > 0 and k >= delay and k * STEP_S >= settled_s and down_s == 0.0:
                    needed = CORRECTED * seen + lag / DRAIN_S
                    wanted = capacity
                    if (lag > 0 and seen > capacity) or age > objective_s / 2:
                        larger = max(min(needed, most_capacity), capacity)
                        if _drains_sooner(lag, seen, capacity, larger, restart_s):
                            wanted = larger
                    elif k * STEP_S >= restart_s + between_s:
                        needed = CORRECTED * highest[k] + lag / DRAIN_S
                        if capacity > SPARE * needed:
                            wanted = max(needed, LEAST_KEPT * capacity)
                    change = min(max(work * (wanted - capacity), least_tasks - tasks), max(most_tasks - tasks, 0.0))
                    if change != 0.0:
                        capacity, tasks = capacity + change / work, tasks + change
                        down_s = restart_s
                        settled_s = k * STEP_S + restart_s + between_s
                up_s = STEP_S - min(down_s, STEP_S)
                down_s = max(down_s - STEP_S, 0.0)
                before = lag
                lag = max(lag + rate * STEP_S - capacity * up_s, 0.0)
                read = before + rate * STEP_S - lag
                next_read = came[k + 1] - lag
                while first < k and came[first + 1] <= next_read:
                    first += 1
                if next_read < 0:
                    arrived_s = next_read / rate_now
                else:
                    arrived_s = (first + (next_read - came[first]) / max(came[first + 1] - came[first], 1e-9)) * STEP_S
                after = (k + 1) * STEP_S - arrived_s if lag > 0 else 0.0
                # While the job is down nothing is read, so what is read has waited for all of that time.
                held[o] += tasks * STEP_S
                late[o] += read * _share_above(age + (STEP_S - up_s), after, objective_s)
                age = after if read > 0 else age + STEP_S
            held[o] += tasks * lag / capacity
            late[o] += lag * _share_above(age, lag / capacity, objective_s)
            excess = lag - objective_s * capacity
            if excess > 0:
                late[o] += rate * excess / max(capacity - rate, LEAST_SPARE * capacity)
    return held / len(paths), late / len(paths)


@compiled
def _drains_sooner(lag: float, rate: float, capacity: float, larger: float, restart_s: float) -> bool:
    """Whether the lag is read sooner after a rescale to a larger capacity than with the present one."""
    if capacity <= rate:
        return True
    return restart_s + (lag + rate * restart_s) / (larger - rate) < lag / (capacity - rate)


@compiled
def _share_above(first: float, last: float, limit: float) -> float:
    """Share of the way from `first` to `last` that lies above `limit`."""
    low, high = min(first, last), max(first, last)
    if low >= limit:
        return 1.0
    return 0.0 if high <= limit else (high - limit) / (high - low)
