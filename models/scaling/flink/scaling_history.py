"""The autoscaler's memory: earlier scalings, pending scale-downs, and durations of restarts."""

import math
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Decimal

from models.scaling.flink.settings import FlinkSettings


@dataclass(frozen=True)
class PastScaling:
    """A rescale as it affected one operator."""

    time_s: float
    before: int
    """Tasks."""
    after: int
    true_rate: float
    """Records/s, of the tasks before it."""
    expected_rate: float
    """True rate expected from it."""


def is_ineffective(last: PastScaling | None, tasks: int, true_rate: float, threshold: float) -> bool:
    """Whether the last scaling was a scale-up to the current tasks with less than a share of the expected increase.

    Args:
        tasks: current tasks; if they differ from those of the last scaling, someone else has rescaled.
        true_rate: records/s, now.
        threshold: share of the expected increase.
    """
    if last is None or last.after != tasks or last.after <= last.before:
        return False
    expected, actual = last.expected_rate - last.true_rate, true_rate - last.true_rate
    return not actual >= threshold * expected


def was_just_scaled_up(last: PastScaling | None, tasks: int, now_s: float, interval_s: float) -> bool:
    """Whether the last scaling was a scale-up to the current tasks, less than `interval_s` seconds ago.

    Args:
        tasks: current tasks; if they differ from those of the last scaling, someone else has rescaled.
    """
    if last is None or last.after != tasks or last.after <= last.before:
        return False
    return now_s < last.time_s + interval_s


def observed_scalability(scalings: Sequence[PastScaling], min_observations: int, lowest: float) -> float:
    """Share of linear scaling observed in earlier scalings, from `lowest` to 1; 1 if there are too few.

    The baseline is the rate per task of the latest scaling from the fewest tasks. Least squares of
    rate = baseline x tasks x share give share = sum(tasks x rate) / (baseline x sum(tasks^2)), rounded up to hundredths.
    """
    if len(scalings) < max(1, min_observations) or not all(math.isfinite(s.true_rate) for s in scalings):
        return 1.0
    base = min(reversed(scalings), key=lambda scaling: scaling.before)
    squares = sum(s.before**2 for s in scalings) * base.true_rate / base.before
    if squares == 0:
        return 1.0
    share = max(lowest, min(1.0, sum(s.before * s.true_rate for s in scalings) / squares))
    return float(Decimal(repr(share)).quantize(Decimal("0.01"), ROUND_CEILING))


class ScalingHistory:
    """The last scalings of every operator."""

    def __init__(self, settings: FlinkSettings) -> None:
        self._settings = settings
        self._of: dict[str, deque[PastScaling]] = {}

    def add(self, name: str, scaling: PastScaling) -> None:
        self._of.setdefault(name, deque(maxlen=self._settings.history_max_count)).append(scaling)

    def of(self, name: str, now_s: float) -> Sequence[PastScaling]:
        """The latest last."""
        scalings = self._of.get(name)
        if scalings is None:
            return ()
        while scalings and scalings[0].time_s < now_s - self._settings.history_max_age_s:
            scalings.popleft()
        return scalings

    def scalability(self, names: Sequence[str], now_s: float) -> list[float]:
        """Scalability of each operator; 1 unless the option is on and the history is long enough."""
        if not self._settings.observes_scalability:
            return [1.0] * len(names)
        enough, lowest = self._settings.scalability_min_observations, self._settings.scalability_min
        return [observed_scalability(self.of(name, now_s), enough, lowest) for name in names]


@dataclass(frozen=True, slots=True)
class WantedTasks:
    """A scale-down that is wanted."""

    time_s: float
    tasks: int
    outside_band: bool


@dataclass
class _Delayed:
    first_s: float
    falling: deque[WantedTasks] = field(default_factory=deque)
    """Strictly decreasing in tasks: earlier entries with fewer tasks can no longer be the maximum."""


class DelayedScaleDowns:
    """A scale-down happens once fewer tasks were wanted for a whole interval, to the most wanted in it."""

    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._of: dict[str, _Delayed] = {}

    def keep(self, names: Collection[str]) -> None:
        """Forget all but these operators: the others no longer want fewer tasks."""
        self._of = {name: delayed for name, delayed in self._of.items() if name in names}

    def clear(self) -> None:
        self._of.clear()

    def want(self, name: str, wanted: WantedTasks) -> WantedTasks | None:
        """Tasks to scale down to now; None to wait."""
        if self._interval_s <= 0:
            return wanted
        delayed = self._of.setdefault(name, _Delayed(wanted.time_s))
        while delayed.falling and delayed.falling[-1].tasks <= wanted.tasks:
            delayed.falling.pop()
        delayed.falling.append(wanted)
        since_s = wanted.time_s - self._interval_s
        if since_s < delayed.first_s:
            return None
        while delayed.falling[0].time_s < since_s:
            delayed.falling.popleft()
        return delayed.falling[0]


class RestartTimes:
    """Downtimes of the last rescales."""

    def __init__(self, settings: FlinkSettings) -> None:
        self._settings = settings
        self._seen: deque[tuple[float, float]] = deque(maxlen=settings.history_max_count)

    def add(self, time_s: float, downtime_s: float) -> None:
        self._seen.append((time_s, downtime_s))

    def expected_s(self, now_s: float) -> float:
        """The longest one remembered, within its limit, if the option is on; else the option's."""
        # The latest is kept however old it is.
        while len(self._seen) > 1 and self._seen[0][0] < now_s - self._settings.history_max_age_s:
            self._seen.popleft()
        if not self._settings.restart_time_tracked or not self._seen:
            return self._settings.restart_time_s
        return min(max(downtime_s for _, downtime_s in self._seen), self._settings.restart_time_limit_s)
