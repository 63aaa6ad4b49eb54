"""Sluice's own scaling policy: rescale when the savings outweigh the delay that the rescale causes.

At each interval the candidate deployments are compared with the current one over the next minutes, under a forecast of
the rate: the tasks that they run, and the records that they delay, those of the rescale's own downtime included
(`outlook`). The capacity of a deployment is learned from true rates and dataflow propagation as in DS2, averaged over
bursts and corrected by the champion's non-linear capacity and by the rates attained (`capacity`). A rescale is
recommended when it costs, begun now, less than staying and less than any rescale begun later.

As a result, scale-ups come early, while they delay few records, and go far enough to catch up with the lag that the
rescale itself leaves; scale-downs wait until the tasks saved outweigh that lag, which is sooner when the rate is low;
noise within the current capacity changes nothing.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from models.scaling.ds2.model import ds2
from models.scaling.policy import Decision, Facts, Recommendation, Rescaled
from models.scaling.rates import Rates
from models.scaling.sluice.capacity import Demand, Learned, lag_of, read_rate
from models.scaling.sluice.forecast import Forecast, RateForecast
from models.scaling.sluice.memory import Memory
from models.scaling.sluice.settings import SluiceSettings
from models.scaling.sluice.spending import Spending
from models.wording import amount

Array = NDArray[np.float64]

CANDIDATES: Final = 64
"""Number of capacities compared, evenly spaced on a logarithmic scale."""
MOST_OVER_NEED: Final = 3.0
"""Highest capacity considered, as a multiple of the highest expected rate."""
FULL_CLUSTER: Final = np.linspace(0.6, 1.0, 9)
"""Further candidates, as shares of the even capacity of the whole cluster."""
NEARLY_MOST: Final = 0.98
"""Deployments from this share of the whole cluster's capacity on count as equal to it."""
DELAYS_S: Final = (0.0, 120.0, 300.0, 600.0)
"""Delays after which a rescale may begin, seconds."""


@dataclass(frozen=True)
class _Choice:
    """Deployments by row, and their expected costs; the first row is the current one."""

    demand: Demand
    share: Array
    tasks: Array
    capacity: Array
    rows: Array
    """Row of `tasks` that each option of `cost` deploys."""
    delay_s: Array
    cost: Array
    """Task-seconds over the horizon; infinite where the option could not keep up."""


class Sluice:
    """Implements `models.scaling.policy.Policy`."""

    name = "sluice"

    def __init__(self, settings: SluiceSettings) -> None:
        self._settings = settings
        self._learned = Learned(settings)
        self._memory = Memory(settings)
        self._forecast = RateForecast(
            settings.forecast_step_s, settings.forecast_memory_s, settings.forecast_probability
        )
        self._spending = Spending(settings.task_budget, settings.budget_memory_s)
        self._downtime_s = settings.restart_s
        self._rescaled: Rescaled | None = None
        self._last_s: float | None = None

    @property
    def interval_s(self) -> float:
        return self._settings.interval_s

    def decide(self, rates: Rates) -> Decision:
        """Tasks for the sources' rates, and for catching up with their lag within the horizon, if there is any.

        True rates and selectivities are those of the window alone; the capacity is `attainable_share` of the even one.

        Raises:
            InvalidInput: as DS2.
        """
        lag = sum(m.lag_records or 0.0 for name, m in rates.operators.items() if name in rates.source_rates)
        total = sum(rates.source_rates.values())
        wanted = (total + lag / self._settings.horizon_s) / self._settings.attainable_share
        factor = wanted / total if total > 0 else 1.0
        raised = rates.model_copy(update={"source_rates": {k: factor * v for k, v in rates.source_rates.items()}})
        found = ds2(raised)
        largest = self._settings.largest_parallelism
        tasks = {name: rates.operators[name].at_most(min(p, largest)) for name, p in found.parallelism.items()}
        return Decision(
            parallelism=tasks,
            exact=found.exact,
            memory_mb=found.memory_mb | self._memory.wanted(rates, tasks),
            reasons=found.reasons,
        )

    def observe(self, facts: Facts) -> Recommendation:
        """The next step; see `models.scaling.policy.Policy.observe`."""
        self._take_in(facts)
        since = _running_s(facts)
        if since < self._settings.cooldown_s:
            wait = f"its rates are used from {self._settings.cooldown_s:.0f} s on"
            return Recommendation(None, f"The job has run for only {since:.0f} s: {wait}.")
        if not self._learned.known:
            return Recommendation(None, "Nothing has been read yet, so nothing is known of the capacity.")
        forecast = self._forecast.forecast(round(self._settings.horizon_s / self._settings.forecast_step_s))
        choice = self._compare(facts, forecast)
        return self._recommend(facts, forecast, choice)

    def _take_in(self, facts: Facts) -> None:
        if facts.last_rescale is not None and facts.last_rescale != self._rescaled:
            self._rescaled = facts.last_rescale
            self._downtime_s = max(facts.last_rescale.downtime_s, 0.0) + self._lost_s(facts)
        warm = _running_s(facts) - facts.interval_s >= self._settings.warm_up_s
        self._learned.observe(facts.rates, facts.interval_s, warm)
        self._memory.observe(facts.rates, self._learned.task_seconds if warm else {})
        # The policy is not called while the job is down: assume the present rate for that time.
        passed = facts.interval_s if self._last_s is None else facts.time_s - self._last_s
        self._last_s = facts.time_s
        rate = sum(facts.rates.source_rates.values())
        self._forecast.observe(rate, passed)
        if self._learned.known:
            demand = self._learned.demand
            even = float(np.sum(np.maximum(1.0, rate * demand.task_seconds)))
            self._spending.observe(float(np.sum(demand.tasks)), even, passed)

    def _lost_s(self, facts: Facts) -> float:
        """Seconds of work lost to cold code in the first interval after a restart, as far as records waited in it."""
        read = read_rate(facts.rates)
        if not self._learned.known or lag_of(facts.rates) <= read:
            return 0.0
        demand = self._learned.demand
        tasks = np.array([[facts.rates.operators[name].parallelism for name in demand.names]], dtype=np.float64)
        share = self._learned.share(demand, tasks, frozenset(facts.rates.sources))
        capacity = float((share * demand.even_capacity(tasks))[0])
        return facts.interval_s * max(1.0 - read / capacity, 0.0)

    def _compare(self, facts: Facts, forecast: Forecast) -> _Choice:
        # Compiles at import, which would delay commands that only name the policy.
        from models.scaling.sluice.outlook import Options, Situation, costs

        demand, lag = self._learned.demand, lag_of(facts.rates)
        sources = frozenset(facts.rates.sources)
        tasks = np.vstack([demand.tasks, self._candidates(facts, demand, forecast, lag)])
        share = self._learned.share(demand, tasks, sources)
        capacity = share * demand.even_capacity(tasks)
        numbers = tasks.sum(axis=1)
        mean_rate = max(self._forecast.mean, 1e-9)
        need = mean_rate * float(np.sum(demand.task_seconds)) / float(share[0])
        situation = Situation(
            capacity=float(capacity[0]),
            tasks=float(numbers[0]),
            lag=lag,
            mean_rate=mean_rate,
            need=need,
            downtime_s=self._downtime_s,
            most_tasks=float(facts.max_task_slots or np.inf),
            late_price=self._settings.late_price * self._spending.price_factor,
        )
        others = np.arange(1, len(tasks))
        rows = np.concatenate([[0], np.tile(others, len(DELAYS_S))])
        delay = np.concatenate([[0.0], np.repeat(DELAYS_S, len(others))])
        down = np.where(rows == 0, 0.0, self._downtime_s)
        found = costs(Options(capacity[rows], numbers[rows], delay, down), situation, forecast, self._settings)
        # Savings can compensate for waiting, but not for falling behind for good.
        enough = min(float(np.mean(forecast.mean)), NEARLY_MOST * float(np.max(capacity)))
        found[(rows > 0) & (capacity[rows] < enough)] = np.inf
        return _Choice(demand, share, tasks, capacity, rows, delay, found)

    def _candidates(self, facts: Facts, demand: Demand, forecast: Forecast, lag: float) -> Array:
        """Candidate deployments, shape (n, operators): different from the current one, and within the cluster."""
        caught_up_s = max(self._downtime_s, self._settings.interval_s)
        highest = max(float(np.max(forecast.high)), self._forecast.mean, 1e-9) + lag / caught_up_s
        rates = np.geomspace(highest / 50, MOST_OVER_NEED * highest, CANDIDATES)
        slots = facts.max_task_slots
        if slots is not None:
            # Capacity of the whole cluster under even load; rounding up needs some slack.
            rates = np.append(rates, slots / float(np.sum(demand.task_seconds)) * FULL_CLUSTER)
        tasks = demand.tasks_for(np.sort(rates))
        differs = np.any(tasks != demand.tasks, axis=1)
        differs[1:] &= np.any(tasks[1:] != tasks[:-1], axis=1)
        fits = tasks.sum(axis=1) <= (slots or np.inf)
        return np.asarray(tasks[differs & fits])

    def _recommend(self, facts: Facts, forecast: Forecast, choice: _Choice) -> Recommendation:
        best = int(np.argmin(choice.cost))
        stay, cost = float(choice.cost[0]), float(choice.cost[best])
        expected = _expected(forecast, self._settings.horizon_s)
        fits = f"the current tasks take {amount(choice.capacity[0])}"
        if best == 0 or cost > stay * (1 - self._settings.least_gain):
            return Recommendation(
                None, f"{expected} and {fits}: no rescale saves {self._settings.least_gain:.0%} of what staying costs."
            )
        gain = f"{(stay - cost) / 60:,.0f} task-minutes less than staying"
        if choice.delay_s[best] > 0:
            return Recommendation(
                None,
                f"{expected} and {fits}: a rescale in {choice.delay_s[best]:.0f} s is better than one now ({gain}).",
            )
        row = int(choice.rows[best])
        decision = self._decision(facts, choice, row)
        before, after = int(choice.tasks[0].sum()), int(choice.tasks[row].sum())
        held = self._downtime_s * float(forecast.mean[0])
        return Recommendation(
            decision,
            f"{expected} and {fits}: {after} tasks instead of {before} take {amount(choice.capacity[row])}, and cost {gain}, "
            f"including the {amount(held)} records delayed by {self._downtime_s:.0f} s of restart and warm-up.",
        )

    def _decision(self, facts: Facts, choice: _Choice, row: int) -> Decision:
        demand = choice.demand
        target = float(choice.capacity[row])
        exact = target * demand.task_seconds / float(choice.share[row])
        tasks = {name: int(n) for name, n in zip(demand.names, choice.tasks[row], strict=True)}
        known = {n: m.memory_mb for n, m in facts.rates.operators.items() if m.memory_mb is not None}
        memory = self._memory.wanted(facts.rates, tasks)
        self._memory.try_levels(facts.rates, memory, self._learned.task_seconds)
        for name, level in memory.items():
            if level > known[name]:
                tasks[name] = facts.rates.operators[name].parallelism
            if level > 0:
                self._learned.forget(name)
        reasons = {
            name: f"a source record costs {1e6 * a:.3g} us of its tasks, {e:.3g} busy ones at {amount(target)} records/s"
            for name, a, e in zip(demand.names, demand.task_seconds, exact, strict=True)
        }
        return Decision(
            parallelism=tasks,
            exact=dict(zip(demand.names, exact.tolist(), strict=True)),
            memory_mb=known | memory,
            reasons=reasons,
        )


def _running_s(facts: Facts) -> float:
    """Seconds since the last start of the job."""
    return facts.time_s - (0.0 if facts.last_rescale is None else facts.last_rescale.ended_s)


def _expected(forecast: Forecast, horizon_s: float) -> str:
    return (
        f"In {horizon_s / 60:.0f} min {amount(forecast.mean[-1])} records/s are expected "
        f"({amount(forecast.low[-1])} to {amount(forecast.high[-1])})"
    )
