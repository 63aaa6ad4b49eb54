"""The job's capacity, learned while it runs.

Notation, for operator i:

    u_i     useful seconds of all its tasks, summed over the past with exponential forgetting
    S_i     records that the sources read meanwhile, all sources together, summed alike
    a_i     u_i / S_i: useful task-seconds that a source record costs at operator i
    p_i     its tasks
    e_i     attainable share: what skew, bursts and contention leave of the even capacity

    even tasks      p_i, or G / ceil(G / p_i) with G key groups: the busiest task has ceil(G / p_i) of them
    even capacity   even tasks_i / a_i                                    (DS2 Eq. 7 and 8, inverted)
    capacity        min_i e_i x even capacity_i, records/s at the sources together

a_i is DS2's demand over true rate, with selectivity and rates averaged over the same time: a window that fires in a
burst counts with its average cost, however short the interval in which it fires.

e_i is learned (`attainable`): that of the busiest operator from the rate read while records waited, unless the mean of that
rate reaches back to when none did; from a higher rate than expected; and, with less weight, from the rate at which its
busiest task would be busy all the time, where that is less than expected. Busyness gives an upper bound only: it
leaves out the waits between operators that come before full load.

Records that wait inside the job, q_i of them before operator i and o_i its true rate, count as source records, too: they take
q_i / (e_i o_i) to work off, in which the job takes that times its capacity. They count where a task of i is busy nearly all
the time: elsewhere they are on their way, and do not wait. What the sources read into buffers that fill was not taken by the
job, and does not count as attained.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from models.errors import InvalidInput
from models.scaling.rates import OperatorMetrics, Rates
from models.scaling.sluice.learned.attainable import LEAST_SHARE, AttainableShares
from models.scaling.sluice.settings import SluiceSettings

Array = NDArray[np.float64]

SATURATED_LAG_S: Final = 1.0
"""Lag, in seconds of reading, at both ends of an interval, from which the job reads as fast as it can."""
RATES_WINDOW_S: Final = 60.0
"""Time that Flink's rates are means over: an earlier one may have had less to read."""
METRICS_MEMORY_S: Final = 300.0
"""Time constant of forgetting past work; longer than windows that fire in bursts."""
CAPACITY_MEMORY_S: Final = 7200.0
"""Time constant of forgetting the attained share of the even capacity."""
ATTAINABLE_SHARE: Final = 0.95
"""Share of the even capacity that skew and bursts leave, until it is measured or modelled."""
SEEN_WEIGHT: Final = 4.0
"""Weight of a rate that was read while records waited: noise of 5 %."""
CLEARLY_LESS: Final = 0.97
LEAST_BUSY: Final = 0.5
"""Busyness of the busiest task from which it says something of the capacity."""
FULLY_BUSY: Final = 0.9
"""Busyness of the busiest task from which records wait before it."""
TIME_NOISE: Final = 0.02
"""Standard deviation of a task's measured times: the largest of n is too large by sqrt(2 ln n) times that."""


@dataclass(frozen=True)
class Demand:
    """The operators, in topological order; arrays of shape (operators,)."""

    names: tuple[str, ...]
    tasks: Array
    """p_i now."""
    task_seconds: Array
    """a_i: useful task-seconds per source record."""
    most_tasks: Array
    key_groups: Array
    """G; infinite where the input has none."""

    def even_capacities(self, tasks: Array) -> Array:
        """Source records/s that each operator could take if all keys were even, for `tasks` of shape (..., operators)."""
        groups = np.where(np.isinf(self.key_groups), tasks, self.key_groups)
        even = groups / np.ceil(groups / tasks * (1 - 1e-9))
        return np.asarray(even / np.maximum(self.task_seconds, 1e-15))

    def tasks_for(self, rate: Array, share: Array) -> Array:
        """Fewest tasks with which `share` (e_i) of each operator's even capacity reaches `rate`, (n,) -> (n, operators)."""
        exact = np.maximum(np.outer(rate, self.task_seconds / share) * (1 - 1e-9), 1e-12)
        groups = np.where(np.isinf(self.key_groups), 1.0, self.key_groups)
        groups_a_task = np.maximum(np.floor(groups / exact), 1.0)
        found = np.where(np.isinf(self.key_groups), np.ceil(exact), np.ceil(groups / groups_a_task))
        return np.asarray(np.clip(found, 1.0, self.most_tasks))


class LearnedCapacity:
    """Collects measurements; not `known` until records were read."""

    def __init__(self, settings: SluiceSettings) -> None:
        self._settings = settings
        self._useful_s: dict[str, float] = {}
        self._records: dict[str, float] = {}
        self._stale: set[str] = set()
        self._attainable = AttainableShares(CAPACITY_MEMORY_S)
        self._waiting = self._inside = 0.0
        self._waited_s = 0.0
        self._sources: frozenset[str] = frozenset()
        self._demand: Demand | None = None
        self._capacity_now: float | None = None
        """Computed once between two measurements, when it is asked for."""

    @property
    def known(self) -> bool:
        return self._demand is not None

    @property
    def demand(self) -> Demand:
        """Demand of the operators of the last interval; requires `known`."""
        assert self._demand is not None
        return self._demand

    @property
    def task_seconds(self) -> dict[str, float]:
        """a_i by operator."""
        return {name: self._useful_s[name] / records for name, records in self._records.items()}

    def forget(self, name: str) -> None:
        """Let the next warm interval replace an operator's history, since its tasks have changed."""
        self._stale.add(name)

    def observe(self, rates: Rates, seconds: float, warm: bool) -> None:
        """Add the measurements of an interval.

        Args:
            warm: the tasks have run long enough for their times to be representative.

        Raises:
            InvalidInput: an operator lacks busyness, or a source the rate that it read.
        """
        read = read_rate(rates)
        inside = self._inside_of(rates)
        waiting = lag_of(rates) + inside
        waits = min(waiting, self._waiting) > SATURATED_LAG_S * read
        taken = max(read - max(inside - self._inside, 0.0) / seconds, 0.0)
        self._waiting, self._inside = waiting, inside
        self._waited_s = self._waited_s + seconds if waits else 0.0
        self._sources = frozenset(rates.sources)
        self._capacity_now = None
        if taken > 0 and warm:
            self._add(rates, taken, seconds)
            self._demand = self._demand_of(rates)
            if self._settings.uses("learning"):
                self._learn_share(rates, taken, seconds)
        elif self.known:
            self._demand = self._demand_of(rates)

    def waiting(self, rates: Rates) -> float:
        """Records that wait before the sources and inside the job, source records."""
        return lag_of(rates) + self._inside_of(rates)

    def _inside_of(self, rates: Rates) -> float:
        waiting = {
            name: m.in_flight_records or 0.0
            for name, m in rates.operators.items()
            if (m.max_busyness or m.busyness or 0.0) >= FULLY_BUSY
        }
        if self._demand is None or not waiting:
            return 0.0
        shares = dict(zip(self._demand.names, self._shares(self._demand.tasks[None, :])[0].tolist(), strict=True))
        seconds = 0.0
        for name, records in waiting.items():
            seconds += records / (
                shares.get(name, ATTAINABLE_SHARE) * (rates.operators[name].true_processing_rate or math.inf)
            )
        return self.capacity_now * seconds

    def _add(self, rates: Rates, taken: float, seconds: float) -> None:
        keep = math.exp(-seconds / METRICS_MEMORY_S)
        for name, metrics in rates.operators.items():
            kept = 0.0 if name in self._stale else keep
            useful = _needed(name, "busyness", metrics.busyness) * metrics.parallelism * seconds
            self._useful_s[name] = kept * self._useful_s.get(name, 0.0) + useful
            self._records[name] = kept * self._records.get(name, 0.0) + taken * seconds
        self._stale.clear()

    def _demand_of(self, rates: Rates) -> Demand:
        names = tuple(name for name in rates.order if name in rates.operators and name in self._records)
        metrics = [rates.operators[name] for name in names]
        return Demand(
            names,
            np.array([m.parallelism for m in metrics], dtype=np.float64),
            np.array([self._useful_s[name] / self._records[name] for name in names]),
            np.array([m.at_most(self._settings.largest_parallelism) for m in metrics], dtype=np.float64),
            np.array([self._groups(m) for m in metrics], dtype=np.float64),
        )

    def _groups(self, metrics: OperatorMetrics) -> float:
        known = metrics.key_groups if self._settings.uses("key-groups") else None
        return math.inf if known is None else float(known)

    def of(self, tasks: Array) -> tuple[Array, Array]:
        """Capacity of `tasks`, shape (n, operators), and the standard deviation of its logarithm, both of shape (n,)."""
        even = self.demand.even_capacities(tasks)
        each = even * self._shares(tasks)
        tightest = np.argmin(each, axis=1)
        rows = np.arange(len(tasks))
        deviation = np.zeros(len(tasks))
        for i in np.unique(tightest):
            own = tightest == i
            deviation[own] = self._attainable.deviation(self.demand.names[i], even[own, i])
        return each[rows, tightest], deviation

    @property
    def capacity_now(self) -> float:
        """Capacity of the current tasks, records/s; requires `known`."""
        if self._capacity_now is None:
            self._capacity_now = float(self.of(self.demand.tasks[None, :])[0][0])
        return self._capacity_now

    def tasks_for(self, rate: Array) -> Array:
        """Fewest tasks whose capacity reaches `rate`, with the e_i of the current tasks, shape (n,) -> (n, operators)."""
        return self.demand.tasks_for(rate, self._shares(self.demand.tasks[None, :])[0])

    def _shares(self, tasks: Array) -> Array:
        """e_i at `tasks`, shape (n, operators)."""
        return self._attainable.shares(self.demand.names, self._expected(self.demand, tasks))

    def _expected(self, demand: Demand, tasks: Array) -> Array:
        """The champion's capacity over the even one; the setting without a champion."""
        champion = self._settings.capacity_model
        if champion is None:
            return np.full(len(tasks), ATTAINABLE_SHARE)
        scaled = np.array([name not in self._sources for name in demand.names])
        predicted = champion.model.predict(champion.memory_mb, tasks[:, scaled].sum(axis=1))
        return np.asarray(np.clip(predicted / np.min(demand.even_capacities(tasks), axis=1), LEAST_SHARE, 1.0))

    def _learn_share(self, rates: Rates, taken: float, seconds: float) -> None:
        demand = self.demand
        now = demand.tasks[None, :]
        even = demand.even_capacities(now)[0]
        each = even * self._shares(now)[0]
        expected = float(self._expected(demand, now)[0])
        busy = [_busiest(rates.operators[name]) for name in demand.names]
        tightest = int(np.argmax(busy))
        # The mean may reach back to when there was less to read, and then no task was busy for most of it.
        saturated = self._waited_s >= RATES_WINDOW_S or (self._waited_s > 0 and busy[tightest] >= LEAST_BUSY)
        self._attainable.pass_time(seconds)
        for i, name in enumerate(demand.names):
            if (i == tightest and saturated) or taken > each[i]:
                self._attainable.observe(name, float(even[i]), taken, expected, SEEN_WEIGHT)
            elif LEAST_BUSY <= busy[i] < 1 and taken / busy[i] < CLEARLY_LESS * each[i]:
                self._attainable.observe(name, float(even[i]), taken / busy[i], expected, _weight(busy[i]))


def _busiest(metrics: OperatorMetrics) -> float:
    """Share of time that the busiest task is busy, less what the largest of so many noisy values is too large by."""
    return (metrics.max_busyness or 0.0) / (1 + TIME_NOISE * math.sqrt(2 * math.log(metrics.parallelism)))


def _weight(busiest: float) -> float:
    """Of the capacity that a task's busyness shows: noise of 10 % at full load, more with what is extrapolated."""
    return float((0.1 / (0.1 + 0.5 * (1 - busiest))) ** 2)


def read_rate(rates: Rates) -> float:
    """Records/s that the sources read together."""
    return sum(_needed(name, "observed_input_rate", metrics.observed_input_rate) for name, metrics in _sources(rates))


def lag_of(rates: Rates) -> float:
    """Records that wait before the sources."""
    return sum(_needed(name, "lag_records", metrics.lag_records) for name, metrics in _sources(rates))


def _sources(rates: Rates) -> list[tuple[str, OperatorMetrics]]:
    for name in rates.sources:
        if name not in rates.operators:
            raise InvalidInput(f"policy 'sluice' needs the metrics of source {name!r}; add it to 'operators'")
    return [(name, rates.operators[name]) for name in rates.sources]


def _needed(name: str, metric: str, value: float | None) -> float:
    if value is None:
        raise InvalidInput(f"policy 'sluice' decides by {metric}, which operator {name!r} lacks; measure and add it")
    return value
