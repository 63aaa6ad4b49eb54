"""Sluice's own scaling policy: the fewest tasks with which few enough records are late.

The user states an objective: the share of records that must not wait longer than some seconds. The rest is a budget of late
records (`lateness`), which sets what one of them is worth. At each interval every deployment that might serve is compared with
the current one over the next minutes (`outlook`): the tasks that it runs, and the records that are late, averaged over paths
that the rate may take (`forecast`) and over what its capacity may be (`capacity`), its own downtime and later corrections
included. The deployment with the fewest task-seconds is recommended, those that late records are worth added.

As a result, the first step goes to the right size; scale-downs come as soon as they are safe; a rescale whose own downtime
makes records late happens where it saves enough; and an overload is ended as soon as possible.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from models.scaling.ds2.model import ds2
from models.scaling.policy import Decision, Facts, Outlook, Recommendation, Rescaled
from models.scaling.rates import Rates
from models.scaling.sluice.capacity import ATTAINABLE_SHARE, Demand, Learned, read_rate
from models.scaling.sluice.downtime import Downtime
from models.scaling.sluice.forecast import RateForecast
from models.scaling.sluice.lateness import LatenessBudget
from models.scaling.sluice.memory import Memory
from models.scaling.sluice.pace import Pace
from models.scaling.sluice.settings import SluiceSettings
from models.wording import amount

Array = NDArray[np.float64]

CANDIDATES: Final = 32
"""Number of capacities compared, evenly spaced on a logarithmic scale."""
LEAST_OVER_RATE: Final = 0.7
MOST_OVER_RATE: Final = 1.6
"""Capacities considered, as multiples of the lowest and highest expected rate."""
PATHS: Final = 32
PATH_STEP_S: Final = 60.0
LEAST_HORIZON_S: Final = 300.0
HORIZON_RESCALES: Final = 2.0
"""The horizon, in shortest times between two rescales with their downtime."""
LEAST_GAIN: Final = 0.03
"""Share of the task-seconds that a rescale must save."""
COMMITTED_S: Final = 20.0
"""Least time, beside the downtime of a rescale, for which staying is compared as if it were a rescale: otherwise what can be
done later would always be postponed."""
FETCHED_AFTER_S: Final = 10.0
"""Age of the metrics that a decision rests on, seconds."""
BUDGET_MEMORY_S: Final = 3600.0
CALM_EVERY_S: Final = 30.0
"""Time between two comparisons while nothing waits."""
WAITING_S: Final = 0.5
"""Wait from which the growth of the lag shows the present rate."""
LOOK_AGAIN: Final = 0.25
"""Where records begin to wait, the next reading is waited for if it comes within this share of the time until a rescale could
be followed by another, since it shows the rate."""
WARM_UP_S: Final = 60.0
"""Time after a restart whose metrics are ignored if it was long, since new JVMs run cold code."""
LONG_RESTART_S: Final = 10.0


@dataclass(frozen=True)
class _Choice:
    """Deployments by row, and what they lead to; the first row is the current one."""

    demand: Demand
    tasks: Array
    capacity: Array
    held: Array
    """Task-seconds over the horizon."""
    late: Array
    """Expected late records."""
    cost: Array
    """Task-seconds, with the price of late records."""
    came: float
    """Expected records."""
    low: float
    high: float
    """Mean rates over the horizon of the lowest and the highest path."""

    def late_share(self, row: int) -> float:
        """Late records over those expected; at most 1, though the lag of an overload makes later ones late, too."""
        return min(float(self.late[row]) / max(self.came, 1e-9), 1.0)


class Sluice:
    """Implements `models.scaling.policy.Policy`."""

    name = "sluice"

    def __init__(self, settings: SluiceSettings) -> None:
        self._settings = s = settings
        self._learned = Learned(s)
        self._memory = Memory(s)
        self._horizon_s = max(LEAST_HORIZON_S, HORIZON_RESCALES * (s.least_between_s + s.restart_s))
        self._forecast = RateForecast(
            PATH_STEP_S,
            s.interval_s,
            round(self._horizon_s / PATH_STEP_S),
            PATHS,
            trend=self._with("trend"),
            season=self._with("season"),
        )
        self._budget = LatenessBudget(s.attainment, BUDGET_MEMORY_S)
        self._downtime = Downtime(s.restart_s, learns=self._with("downtime"))
        self._pace = Pace(s.least_between_s, learns=self._with("pace"))
        self._rescaled: Rescaled | None = None
        self._paced: Rescaled | None = None
        """The last rescale after which another might have followed."""
        self._last_s: float | None = None
        self._last_lag = 0.0
        self._began = False
        """Whether records wait that did not at the last call."""
        self._compared_s = -np.inf
        self.outlook: Outlook | None = None
        self._lost_s: float | None = None
        """Lost to cold code since the last restart; None once it is known."""

    def _with(self, element: str) -> bool:
        return element not in self._settings.without

    @property
    def interval_s(self) -> float:
        return self._settings.interval_s

    def decide(self, rates: Rates) -> Decision:
        """Tasks for the sources' rates, and for catching up with their lag within the horizon, if there is any.

        True rates and selectivities are those of the window alone; the capacity is `ATTAINABLE_SHARE` of the even one.

        Raises:
            InvalidInput: as DS2.
        """
        lag = sum(m.lag_records or 0.0 for name, m in rates.operators.items() if name in rates.source_rates)
        total = sum(rates.source_rates.values())
        wanted = (total + lag / self._horizon_s) / ATTAINABLE_SHARE
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
        lag = self._learned.waiting(facts.rates)
        present = self._take_in(facts, lag)
        since = _running_s(facts)
        if facts.last_rescale is not None and since < self._settings.least_between_s:
            return Recommendation(
                None, f"The job has run for {since:.0f} s since its last rescale, too short for another."
            )
        if facts.last_rescale is not None and facts.last_rescale != self._paced:
            self._paced = facts.last_rescale
            self._pace.observe(since)
        if not self._learned.known:
            return Recommendation(None, "Nothing has been read yet, so nothing is known of the capacity.")
        if self._began and self._with("lag") and self.interval_s <= LOOK_AGAIN * self._pace.between_s:
            return Recommendation(None, "Records have begun to wait; how fast they come shows at the next reading.")
        if present is None and facts.time_s - self._compared_s < CALM_EVERY_S:
            return Recommendation(None, f"Nothing waits, and deployments are compared every {CALM_EVERY_S:.0f} s.")
        self._compared_s = facts.time_s
        return self._recommend(facts, self._compare(facts, lag, present))

    def _take_in(self, facts: Facts, lag: float) -> float | None:
        """Learn from the facts; returns the present rate where records wait throughout, so that it is known."""
        cold = self._downtime.of(0.0) > LONG_RESTART_S
        warm = _running_s(facts) - facts.interval_s >= (WARM_UP_S if cold and facts.last_rescale is not None else 0.0)
        if facts.last_rescale is not None and facts.last_rescale != self._rescaled:
            self._rescaled = facts.last_rescale
            self._downtime.observe(max(facts.last_rescale.downtime_s, 0.0), facts.last_rescale.state_mb)
            self._lost_s = 0.0 if cold else None
        self._learned.observe(facts.rates, facts.interval_s, warm)
        self._count_lost(facts, lag, warm)
        self._memory.observe(facts.rates, self._learned.task_seconds if warm else {})
        # The policy is not called while the job is down: assume the present rate for that time.
        passed = facts.interval_s if self._last_s is None else facts.time_s - self._last_s
        mean = sum(facts.rates.source_rates.values())
        for _ in range(max(1, round(passed / self._settings.interval_s))):
            self._forecast.observe(mean)
        self._began = warm and self._last_s is not None and self._waits(lag) and not self._waits(self._last_lag)
        present = self._present_rate(lag, passed) if warm else None
        self._count_late(lag, max(mean, present or 0.0), passed)
        self._last_s, self._last_lag = facts.time_s, lag
        return present if self._with("lag") else None

    def _waits(self, lag: float) -> bool:
        """Whether that many records show that the job reads as fast as it can."""
        return self._learned.known and lag >= WAITING_S * self._learned.capacity_now

    def _present_rate(self, lag: float, passed: float) -> float | None:
        """The rate since the last call, from the growth of the lag while the job read as fast as it could."""
        if not self._waits(min(lag, self._last_lag)):
            return None
        return max(self._learned.capacity_now + (lag - self._last_lag) / passed, 0.0)

    def _count_late(self, lag: float, rate: float, passed: float) -> None:
        """Estimate the late records since the last call from how long those read at its ends had waited.

        What waits came at `rate`; a rate of 0 tells nothing of when.
        """
        if not self._learned.known or rate <= 0:
            return
        objective_s = self._settings.objective_s
        ends = (self._last_lag / rate, lag / rate)
        low, high = min(ends), max(ends)
        above = 1.0 if low > objective_s else max(high - objective_s, 0.0) / max(high - low, 1e-9)
        self._budget.observe(rate * passed, rate * passed * above, passed)

    def _count_lost(self, facts: Facts, lag: float, warm: bool) -> None:
        """Seconds of work lost to cold code since a restart: counted for as long as records wait, at most until it is warm."""
        if self._lost_s is None or not self._learned.known:
            return
        read = read_rate(facts.rates)
        waits = lag > read
        if waits and not warm:
            self._lost_s = _running_s(facts) * max(1.0 - read / self._learned.capacity_now, 0.0)
            return
        if self._lost_s > 0:
            self._downtime.observe_lost(self._lost_s)
        self._lost_s = None

    def _compare(self, facts: Facts, lag: float, present: float | None) -> _Choice:
        # Compiles at import, which would delay commands that only name the policy.
        from models.scaling.sluice.outlook import Options, Situation, outlook

        s, demand = self._settings, self._learned.demand
        paths = self._forecast.forecast(present, spread=self._with("errors"))
        state_mb = sum(m.state_mb or 0.0 for m in facts.rates.operators.values())
        restart_s = self._downtime.of(state_mb)
        tasks = np.vstack([demand.tasks, self._candidates(facts, demand, paths, lag)])
        capacity, deviation = self._learned.capacity(tasks)
        numbers = tasks.sum(axis=1)
        changed = np.arange(len(tasks)) > 0
        work = float(np.sum(demand.task_seconds)) / ATTAINABLE_SHARE
        held, late = outlook(
            Options(
                capacity,
                deviation if self._with("errors") else np.zeros(len(tasks)),
                numbers,
                np.where(changed, restart_s, 0.0),
                np.where(changed, restart_s + self._pace.between_s, restart_s + max(COMMITTED_S, s.interval_s)),
            ),
            Situation(
                lag=lag,
                rate=max(present or 0.0, sum(facts.rates.source_rates.values()), 1e-9),
                restart_s=restart_s,
                between_s=self._pace.between_s,
                seen_after_s=FETCHED_AFTER_S + s.interval_s,
                work=work,
                least_tasks=float(len(demand.names)),
                most_tasks=facts.max_task_slots or np.inf,
                most_capacity=float(np.max(capacity)),
            ),
            paths,
            PATH_STEP_S,
            s.objective_s,
            corrects=self._with("corrections"),
        )
        cost = held + self._budget.price * work * late
        means = np.mean(paths, axis=1)
        return _Choice(
            demand,
            tasks,
            capacity,
            held,
            late,
            cost,
            float(np.mean(paths)) * self._horizon_s,
            float(np.min(means)),
            float(np.max(means)),
        )

    def _candidates(self, facts: Facts, demand: Demand, paths: Array, lag: float) -> Array:
        """Candidate deployments, shape (n, operators): different from the current one, and within the cluster."""
        lowest = max(float(np.min(np.mean(paths, axis=1))), 1e-9)
        highest = max(float(np.max(paths)) + lag / PATH_STEP_S, lowest)
        rates = np.geomspace(LEAST_OVER_RATE * lowest, MOST_OVER_RATE * highest, CANDIDATES)
        slots = facts.max_task_slots
        if slots is not None:
            # Even load on the whole cluster; rounding up needs some slack.
            rates = np.append(rates, slots / float(np.sum(demand.task_seconds)) * np.linspace(0.6, 1.0, 9))
        tasks = self._learned.tasks_for(np.sort(rates))
        differs = np.any(tasks != demand.tasks, axis=1)
        differs[1:] &= np.any(tasks[1:] != tasks[:-1], axis=1)
        fits = tasks.sum(axis=1) <= (slots or np.inf)
        return np.asarray(tasks[differs & fits])

    def _recommend(self, facts: Facts, choice: _Choice) -> Recommendation:
        best = int(np.argmin(choice.cost))
        self.outlook = Outlook(
            horizon_s=self._horizon_s,
            low=choice.low,
            high=choice.high,
            capacity=float(choice.capacity[0]),
            late_share=self._budget.late_share,
            late_allowed=1 - self._settings.attainment,
        )
        now = f"{int(choice.tasks[0].sum())} tasks take {amount(choice.capacity[0])}"
        expected = (
            f"In the next {self._horizon_s / 60:.0f} min {amount(choice.low)} to {amount(choice.high)} records/s are expected; "
            f"{now}, with {choice.late_share(0):.1%} late"
        )
        if best == 0 or choice.cost[best] > choice.cost[0] - LEAST_GAIN * choice.held[0]:
            return Recommendation(None, f"{expected}, and no other number is better.")
        return Recommendation(
            self._decision(facts, choice, best),
            f"{expected}. {int(choice.tasks[best].sum())} tasks take {amount(choice.capacity[best])}, with "
            f"{choice.late_share(best):.1%} late and {_compared(choice.held[0], choice.held[best])}; "
            f"{self._budget.late_share:.1%} were late so far, {1 - self._settings.attainment:.1%} may be.",
        )

    def _decision(self, facts: Facts, choice: _Choice, row: int) -> Decision:
        demand = choice.demand
        target = float(choice.capacity[row])
        exact = target * demand.task_seconds
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
            name: f"a source record costs {1e6 * a:.3g} us of its tasks, {e:.3g} busy tasks at {amount(target)} records/s"
            for name, a, e in zip(demand.names, demand.task_seconds, exact, strict=True)
        }
        return Decision(
            parallelism=tasks,
            exact=dict(zip(demand.names, exact.tolist(), strict=True)),
            memory_mb=known | memory,
            reasons=reasons,
        )


def _compared(before: float, after: float) -> str:
    """Task-seconds of two deployments, in words."""
    minutes = abs(before - after) / 60
    return f"{minutes:,.0f} task-minutes {'fewer' if after < before else 'more'}"


def _running_s(facts: Facts) -> float:
    """Seconds since the last start of the job."""
    return facts.time_s - (0.0 if facts.last_rescale is None else facts.last_rescale.ended_s)
