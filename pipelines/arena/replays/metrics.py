"""What a policy can know of a running job: its metrics as Flink reports them, which are late, averaged and noisy.

| quantity | value | source |
|---|---|---|
| rates; busy, backpressured and idle time | mean over the last 60 s, or since the start | `MeterView`, `TimerGauge` |
| refreshed | every 5 s | `View.UPDATE_INTERVAL_SECONDS` |
| fetched | every 10 s | `metrics.fetcher.update-interval` |
| gauges: lag, state, queues | as of the last refresh before the fetch | |
| noise of counted records | standard deviation 1 % of a task's meter | assumed: tasks refresh up to 5 of the 60 s apart |
| noise of measured times | 3 % of a task's busy, backpressured or CPU time | assumed; see below |

So what a policy reads is 0 to 10 s old, beside the delay of the mean. How a refresh and a fetch fall within the 10 s is drawn
at each start of the job. Noise is drawn for each task and fetch. Times are noisier than counts: they are sampled between
records, and include pauses for garbage collection.

A policy gets the mean of all values fetched since it was last called, or the last one if none was. A `MeterView` younger than
60 s divides by 60 s all the same; policies get the mean over its age, which they could compute from the job's uptime.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from models.metrics import SAMPLE_INTERVAL_S, Activity

WINDOW_S: Final = 60.0
FETCH_S: Final = 10.0
_COUNTED: Final = ("records_in", "records_out", "cache_hits", "cache_misses")
_TIMED: Final = ("busy_s", "backpressured_s", "cpu_s", "state_time_s")
_ADDED: Final = (*_COUNTED, *_TIMED)
TIMED_ROWS: Final = slice(len(_COUNTED), None)
"""Of `Totals.added`: those that are times."""
_REFRESHES: Final = round(WINDOW_S / SAMPLE_INTERVAL_S)
_REFRESHES_A_FETCH: Final = round(FETCH_S / SAMPLE_INTERVAL_S)


@dataclass(frozen=True)
class MetricNoise:
    """Standard deviations of the logarithm of a task's values."""

    records: float = 0.01
    time: float = 0.03


@dataclass(frozen=True)
class Fetched:
    """The values of one fetch: what each operator did in a window, and the rate at which records arrived in it."""

    activity: Mapping[str, Activity]
    arrival_rate: float


class FlinkMetrics:
    """The metrics of one job over its starts. Time passes in refreshes, one reporting interval each."""

    def __init__(self, seed: int, noise: MetricNoise | None = None) -> None:
        self._rng = np.random.default_rng(seed)
        self._noise = noise or MetricNoise()
        self.restart()

    def restart(self) -> None:
        """The job starts with other tasks, whose meters begin at 0."""
        self.latest: Fetched | None = None
        self._phase = int(self._rng.integers(_REFRESHES_A_FETCH))
        """Refreshes since the last fetch."""
        self._age = int(self._rng.integers(2))
        """How many refreshes are missing from a fetch: the last one may come just after it."""
        self._seen: deque[Totals] = deque([Totals.nothing()], maxlen=_REFRESHES + 1 + self._age)

    def refresh(self, activity: Mapping[str, Activity], arrival_rate: float) -> Fetched | None:
        """A reporting interval has passed; returns new values if they are fetched at its end.

        Args:
            activity: of each operator in it; empty while the job is down.
        """
        if not activity:
            return None
        self._seen.append(self._seen[-1].plus(activity, arrival_rate))
        self._phase = (self._phase + 1) % _REFRESHES_A_FETCH
        if self._phase or len(self._seen) < 2 + self._age:
            return None
        self.latest = self._fetch()
        return self.latest

    def _fetch(self) -> Fetched:
        last = self._seen[-1 - self._age]
        first = self._seen[max(len(self._seen) - 1 - self._age - _REFRESHES, 0)]
        seconds = last.seconds - first.seconds
        done = self._done(first, last)
        values = self._as_measured(done, [len(gauges.busy_s) for gauges in last.gauges.values()], seconds)
        found, begin = {}, 0
        for name, gauges in last.gauges.items():
            end = begin + len(gauges.busy_s)
            found[name] = _at_the_end(gauges, seconds, {field: value[begin:end] for field, value in values.items()})
            begin = end
        return Fetched(found, (last.arrived - first.arrived) / seconds)

    def _done(self, first: "Totals", last: "Totals") -> np.ndarray:
        """What was done in the window, by the fields _ADDED."""
        done: np.ndarray = last.added - first.added
        return done

    def _as_measured(self, done: np.ndarray, tasks: Sequence[int], seconds: float) -> dict[str, np.ndarray]:
        """With noise; the times of a task stay within the window."""
        drawn = self._rng.standard_normal(done.size)
        ends = np.cumsum(tasks) * len(_ADDED)
        noise = np.hstack([own.reshape(len(_ADDED), -1) for own in np.split(drawn, ends[:-1])])
        scale = np.where(np.arange(len(_ADDED)) < len(_COUNTED), self._noise.records, self._noise.time)
        values = dict(zip(_ADDED, done * np.exp(scale[:, None] * noise), strict=True))
        busy = np.minimum(values["busy_s"], seconds)
        blocked = np.minimum(values["backpressured_s"], seconds - busy)
        return values | {"busy_s": busy, "backpressured_s": blocked, "idle_s": seconds - busy - blocked}


def _at_the_end(gauges: Activity, seconds: float, values: dict[str, np.ndarray]) -> Activity:
    return Activity(
        seconds=seconds,
        input_queue_share=gauges.input_queue_share,
        lag_records=gauges.lag_records,
        state_bytes=gauges.state_bytes,
        keeps_state=gauges.keeps_state,
        **values,
    )


@dataclass(frozen=True)
class Totals:
    """Since the start of the job: seconds of running, records that arrived, and what each operator did."""

    seconds: float
    arrived: float
    added: np.ndarray
    """Sums of the fields _ADDED, float64[fields, tasks of all operators]; 0 without axes at the start."""
    gauges: Mapping[str, Activity]
    """The last interval."""

    @classmethod
    def nothing(cls) -> "Totals":
        return cls(0.0, 0.0, np.zeros(()), {})

    def plus(self, activity: Mapping[str, Activity], arrival_rate: float) -> "Totals":
        done = list(activity.values())
        seconds = done[0].seconds
        added = np.array([np.concatenate([getattr(own, field) for own in done]) for field in _ADDED])
        return Totals(self.seconds + seconds, self.arrived + arrival_rate * seconds, added + self.added, activity)
