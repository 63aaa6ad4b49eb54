"""All that is learned of one job, from the facts that the policy is shown at each of its calls."""

from typing import Final

from models.scaling.policy import Facts, Rescaled
from models.scaling.sluice.forecast import RateForecast
from models.scaling.sluice.learned.capacity import LearnedCapacity, read_rate
from models.scaling.sluice.learned.downtime import Downtime
from models.scaling.sluice.learned.lateness import LatenessBudget
from models.scaling.sluice.learned.memory import Memory
from models.scaling.sluice.learned.pace import Pace
from models.scaling.sluice.settings import SluiceSettings

PATHS: Final = 32
PATH_STEP_S: Final = 60.0
BUDGET_MEMORY_S: Final = 3600.0
WAITING_S: Final = 0.5
"""Wait from which the growth of the lag shows the present rate."""
WARM_UP_S: Final = 60.0
"""Time after a restart whose metrics are ignored if it was long, since new JVMs run cold code."""
LONG_RESTART_S: Final = 10.0


class Experience:
    """Hands each call's facts to what learns from them."""

    def __init__(self, settings: SluiceSettings, horizon_s: float) -> None:
        """Args:
        horizon_s: how far ahead rates are forecast, seconds.
        """
        self._settings = s = settings
        self.capacity = LearnedCapacity(s)
        self.memory = Memory(s)
        self.forecast = RateForecast(
            PATH_STEP_S,
            s.interval_s,
            round(horizon_s / PATH_STEP_S),
            PATHS,
            trend=s.uses("trend"),
            season=s.uses("season"),
        )
        self.budget = LatenessBudget(s.attainment, BUDGET_MEMORY_S)
        self.downtime = Downtime(s.restart_s, learns=s.uses("downtime"))
        self.pace = Pace(s.least_between_s, learns=s.uses("pace"))
        self.lag_began = False
        """Whether records wait that did not at the last call."""
        self._rescaled: Rescaled | None = None
        self._paced: Rescaled | None = None
        """The last rescale after which another might have followed."""
        self._last_s: float | None = None
        self._last_lag = 0.0
        self._lost_s: float | None = None
        """Lost to cold code since the last restart; None once it is known."""

    def observe(self, facts: Facts, lag: float) -> float | None:
        """Learn from the facts; returns the present rate where records wait throughout, so that it is known."""
        cold = self.downtime.of(0.0) > LONG_RESTART_S
        warm = running_s(facts) - facts.interval_s >= (WARM_UP_S if cold and facts.last_rescale is not None else 0.0)
        if facts.last_rescale is not None and facts.last_rescale != self._rescaled:
            self._rescaled = facts.last_rescale
            self.downtime.observe(max(facts.last_rescale.downtime_s, 0.0), facts.last_rescale.state_mb)
            self._lost_s = 0.0 if cold else None
        self.capacity.observe(facts.rates, facts.interval_s, warm)
        self._count_lost(facts, lag, warm)
        self.memory.observe(facts.rates, self.capacity.task_seconds if warm else {})
        # The policy is not called while the job is down: assume the present rate for that time.
        passed = facts.interval_s if self._last_s is None else facts.time_s - self._last_s
        mean = sum(facts.rates.source_rates.values())
        for _ in range(max(1, round(passed / self._settings.interval_s))):
            self.forecast.observe(mean)
        began = warm and self._last_s is not None and self._waits(lag) and not self._waits(self._last_lag)
        self.lag_began = began and self._settings.uses("lag")
        present = self._present_rate(lag, passed) if warm else None
        self._count_late(lag, max(mean, present or 0.0), passed)
        self._last_s, self._last_lag = facts.time_s, lag
        return present if self._settings.uses("lag") else None

    def observe_pace(self, facts: Facts) -> None:
        """Record that another rescale might follow the last one now."""
        if facts.last_rescale is not None and facts.last_rescale != self._paced:
            self._paced = facts.last_rescale
            self.pace.observe(running_s(facts))

    def _waits(self, lag: float) -> bool:
        """Whether that many records show that the job reads as fast as it can."""
        return self.capacity.known and lag >= WAITING_S * self.capacity.capacity_now

    def _present_rate(self, lag: float, passed: float) -> float | None:
        """The rate since the last call, from the growth of the lag while the job read as fast as it could."""
        if not self._waits(min(lag, self._last_lag)):
            return None
        return max(self.capacity.capacity_now + (lag - self._last_lag) / passed, 0.0)

    def _count_late(self, lag: float, rate: float, passed: float) -> None:
        """Estimate the late records since the last call from how long those read at its ends had waited.

        What waits came at `rate`; a rate of 0 tells nothing of when.
        """
        if not self.capacity.known or rate <= 0:
            return
        objective_s = self._settings.objective_s
        ends = (self._last_lag / rate, lag / rate)
        low, high = min(ends), max(ends)
        above = 1.0 if low > objective_s else max(high - objective_s, 0.0) / max(high - low, 1e-9)
        self.budget.observe(rate * passed, rate * passed * above, passed)

    def _count_lost(self, facts: Facts, lag: float, warm: bool) -> None:
        """Seconds of work lost to cold code since a restart: counted for as long as records wait, at most until it is warm."""
        if self._lost_s is None or not self.capacity.known:
            return
        read = read_rate(facts.rates)
        waits = lag > read
        if waits and not warm:
            self._lost_s = running_s(facts) * max(1.0 - read / self.capacity.capacity_now, 0.0)
            return
        if self._lost_s > 0:
            self.downtime.observe_lost(self._lost_s)
        self._lost_s = None


def running_s(facts: Facts) -> float:
    """Seconds since the last start of the job."""
    return facts.time_s - (0.0 if facts.last_rescale is None else facts.last_rescale.ended_s)
