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
from models.scaling.policy import Decision, Facts, Outlook, Recommendation
from models.scaling.rates import Rates
from models.scaling.sluice.learned.capacity import ATTAINABLE_SHARE, Demand
from models.scaling.sluice.learned.experience import PATH_STEP_S, Experience, running_s
from models.scaling.sluice.settings import SluiceSettings
from models.wording import amount

Array = NDArray[np.float64]

CANDIDATES: Final = 32
"""Number of capacities compared, evenly spaced on a logarithmic scale."""
LEAST_OVER_RATE: Final = 0.7
MOST_OVER_RATE: Final = 1.6
"""Capacities considered, as multiples of the lowest and highest expected rate."""
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
CALM_EVERY_S: Final = 30.0
"""Time between two comparisons while nothing waits."""
LOOK_AGAIN: Final = 0.25
"""Where records begin to wait, the next reading is waited for if it comes within this share of the time until a rescale could
be followed by another, since it shows the rate."""


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
        self._horizon_s = max(LEAST_HORIZON_S, HORIZON_RESCALES * (s.least_between_s + s.restart_s))
        self._learned = Experience(s, self._horizon_s)
        self._compared_s = -np.inf
        self.outlook: Outlook | None = None

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
            memory_mb=found.memory_mb | self._learned.memory.wanted(rates, tasks),
            reasons=found.reasons,
        )

    def observe(self, facts: Facts) -> Recommendation:
        """The next step; see `models.scaling.policy.Policy.observe`."""
        lag = self._learned.capacity.waiting(facts.rates)
        present = self._learned.observe(facts, lag)
        since = running_s(facts)
        if facts.last_rescale is not None and since < self._settings.least_between_s:
            return Recommendation(
                None, f"The job has run for {since:.0f} s since its last rescale, too short for another."
            )
        self._learned.observe_pace(facts)
        if not self._learned.capacity.known:
            return Recommendation(None, "Nothing has been read yet, so nothing is known of the capacity.")
        if self._learned.lag_began and self.interval_s <= LOOK_AGAIN * self._learned.pace.between_s:
            return Recommendation(None, "Records have begun to wait; how fast they come shows at the next reading.")
        if present is None and facts.time_s - self._compared_s < CALM_EVERY_S:
            return Recommendation(None, f"Nothing waits, and deployments are compared every {CALM_EVERY_S:.0f} s.")
        self._compared_s = facts.time_s
        return self._recommend(facts, self._compare(facts, lag, present))

    def _compare(self, facts: Facts, lag: float, present: float | None) -> _Choice:
        # Compiles at import, which would delay commands that only name the policy.
        from models.scaling.sluice.outlook import Options, Situation, outlook

        s, demand = self._settings, self._learned.capacity.demand
        paths = self._learned.forecast.forecast(present, spread=self._settings.uses("errors"))
        state_mb = sum(m.state_mb or 0.0 for m in facts.rates.operators.values())
        restart_s = self._learned.downtime.of(state_mb)
        tasks = np.vstack([demand.tasks, self._candidates(facts, demand, paths, lag)])
        capacity, deviation = self._learned.capacity.of(tasks)
        numbers = tasks.sum(axis=1)
        changed = np.arange(len(tasks)) > 0
        work = float(np.sum(demand.task_seconds)) / ATTAINABLE_SHARE
        held, late = outlook(
            Options(
                capacity,
                deviation if self._settings.uses("errors") else np.zeros(len(tasks)),
                numbers,
                np.where(changed, restart_s, 0.0),
                np.where(changed, restart_s + self._learned.pace.between_s, restart_s + max(COMMITTED_S, s.interval_s)),
            ),
            Situation(
                lag=lag,
                rate=max(present or 0.0, sum(facts.rates.source_rates.values()), 1e-9),
                restart_s=restart_s,
                between_s=self._learned.pace.between_s,
                seen_after_s=FETCHED_AFTER_S + s.interval_s,
                work=work,
                least_tasks=float(len(demand.names)),
                most_tasks=facts.max_task_slots or np.inf,
                most_capacity=float(np.max(capacity)),
            ),
            paths,
            PATH_STEP_S,
            s.objective_s,
            corrects=self._settings.uses("corrections"),
        )
        cost = held + self._learned.budget.price * work * late
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
            seconds = max(float(np.sum(demand.task_seconds)), 1e-15)  # 0 where nothing was busy yet
            rates = np.append(rates, slots / seconds * np.linspace(0.6, 1.0, 9))
        tasks = self._learned.capacity.tasks_for(np.sort(rates))
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
            late_share=self._learned.budget.late_share,
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
            f"{self._learned.budget.late_share:.1%} were late so far, {1 - self._settings.attainment:.1%} may be.",
        )

    def _decision(self, facts: Facts, choice: _Choice, row: int) -> Decision:
        demand = choice.demand
        target = float(choice.capacity[row])
        exact = target * demand.task_seconds
        tasks = {name: int(n) for name, n in zip(demand.names, choice.tasks[row], strict=True)}
        known = {n: m.memory_mb for n, m in facts.rates.operators.items() if m.memory_mb is not None}
        memory = self._learned.memory.wanted(facts.rates, tasks)
        self._learned.memory.try_levels(facts.rates, memory, self._learned.capacity.task_seconds)
        for name, level in memory.items():
            if level > known[name]:
                tasks[name] = facts.rates.operators[name].parallelism
            if level > 0:
                self._learned.capacity.forget(name)
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
