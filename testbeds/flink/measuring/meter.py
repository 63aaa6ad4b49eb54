"""Increments of Flink's counters by task and reporting interval."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from flink_client.metrics.readings import (
    BUSY_TIME,
    COUNTERS,
    STATE_COUNTERS,
    STATE_LATENCY,
    TIMES,
    Reading,
    Readings,
    longest_gap_s,
)
from flink_client.rest.answers import Vertex
from models.errors import SluiceError
from testbeds.flink.measuring.counters import Counter

_MAY_FALL = (BUSY_TIME, STATE_LATENCY)
_CLOCKS_S = 1.0
"""Tolerance by which a task may count more time than has passed, seconds."""


class NoNews(SluiceError):
    """Flink did not report on a task for too long, so its activity in a window is unknown."""


@dataclass(frozen=True)
class Increments:
    """Increments of the counters of one task; each array float64[intervals]."""

    values: Mapping[str, np.ndarray]
    state_latency_s: np.ndarray | None = field(default=None)
    """At the end of each interval; None where it is not reported."""

    def __getitem__(self, counter: str) -> np.ndarray:
        return self.values[counter]


@dataclass
class TaskClock:
    """When the counters of a task had the values that Flink reports: up to two seconds before it reports them.

    Busy time is the time since the task's start less its idle and backpressured time, so the three add up to how long the
    task had run when they were taken. The start is estimated from the report with the least delay.
    """

    started_s: float = math.inf
    """Latest possible start of the task, `time.monotonic`."""

    def dated(self, reading: Reading) -> float:
        """When its values were taken (`time.monotonic`); its arrival where the task does not report all three times."""
        if not all(name in reading.values for name in TIMES):
            return reading.time_s
        ran_s = sum(reading.values[name] for name in TIMES) / 1000
        self.started_s = min(self.started_s, reading.time_s - ran_s)
        return self.started_s + ran_s


class CounterMeter:
    """Reads the counters of all tasks of a running job, at least once a second during a measurement."""

    def __init__(
        self,
        readings: Readings,
        vertices: Iterable[Vertex],
        by_operator: Collection[str],
        since: float = 0.0,
        done: Collection[str] = (),
    ) -> None:
        """
        Args:
            vertices: of the job, once all of its tasks run.
            by_operator: ids of the vertices of which metrics are wanted that Flink names after an operator.
            since: earliest start of the tasks (`time.monotonic`): values of earlier tasks with the same numbers, which
                Flink still reports, are ignored.
            done: ids of the vertices whose tasks have all finished: they count nothing more.
        """
        self._since, self._begun = since, False
        self._readings, self._by_operator = readings, frozenset(by_operator)
        vertices = tuple(vertices)
        self._vertices = tuple(v for v in vertices if v.id not in done)
        self._done = tuple(v for v in vertices if v.id in done)
        self._counters: dict[tuple[str, int], dict[str, Counter]] = {
            (v.id, task): {} for v in self._vertices for task in range(v.parallelism)
        }
        self._clocks = {task: TaskClock() for task in self._counters}

    def begin(self) -> None:
        """Begin measuring: from now on a falling counter is a fault, not an old task being replaced."""
        self._begun = True

    def read(self) -> None:
        """Read all new values.

        Raises:
            SluiceError: the job no longer runs, or a task was restarted.
        """
        for vertex in self._vertices:
            for reading in self._readings.of_vertex(vertex, vertex.id in self._by_operator):
                self._note((vertex.id, reading.task), reading)

    def _note(self, task: tuple[str, int], reading: Reading) -> None:
        counters, values = self._counters[task], reading.values
        times = [values[name] for name in TIMES if name in values]
        if sum(times) / 1000 > reading.time_s - self._since + _CLOCKS_S:
            return
        if not self._begun and any(values.get(n, np.inf) < c.values[-1] for n, c in counters.items() if not c.may_fall):
            counters.clear()
            self._clocks[task] = TaskClock()
        before = [counters[name].values[-1] for name in TIMES if name in counters]
        # The sum of the three times grows with every refresh, whatever the task does.
        refreshed = times != before
        taken_s = self._clocks[task].dated(reading)
        for name, value in values.items():
            counter = counters.setdefault(name, Counter(may_fall=name in _MAY_FALL))
            news = refreshed if name in COUNTERS else value not in counter.values[-1:]
            counter.read(taken_s, value, news)

    @property
    def has_read_all(self) -> bool:
        """Whether each counter of each task was read at least once."""
        return all(name in counters for counters in self._counters.values() for name in COUNTERS)

    def has_news_since(self, time_s: float) -> bool:
        """Whether each task has reported at this time or later (`time.monotonic`)."""
        return self.has_read_all and all(c[COUNTERS[0]].times[-1] >= time_s for c in self._counters.values())

    def covers(self, begin: float, end: float) -> bool:
        """Whether all counters of all tasks are known at both times (`time.monotonic`)."""
        return all(
            all(name in counters and counters[name].covers(begin, end) for name in COUNTERS)
            for counters in self._counters.values()
        )

    def known_until(self, vertices: Collection[str]) -> float:
        """Until when the counters of all tasks of these vertices are known (`time.monotonic`); 0: one is not."""
        known = [
            found[COUNTERS[0]].times[-1] if COUNTERS[0] in found else 0.0
            for (vertex, _), found in self._counters.items()
            if vertex in vertices
        ]
        return min(known, default=0.0)

    def total(self, counter: str, vertices: Collection[str], times: Sequence[float]) -> np.ndarray:
        """A counter of all tasks of these vertices together, float64[times]; 0 for a task that has reported none."""
        known = (
            found[counter].at(times)
            for (vertex, _), found in self._counters.items()
            if vertex in vertices and counter in found
        )
        return np.asarray(np.sum([np.zeros(len(times)), *known], axis=0))

    def increments(self, boundaries: Sequence[float]) -> dict[tuple[str, int], Increments]:
        """By vertex id and task: the growth of each counter between consecutive times.

        Raises:
            NoNews: a task did not report for too long in between.
        """
        found = {}
        most = longest_gap_s(self._readings)
        for task, counters in self._counters.items():
            gap = counters[COUNTERS[0]].longest_gap_s(boundaries[0], boundaries[-1])
            if gap > most:
                raise NoNews(
                    f"Flink reported nothing of task {task[1]} of vertex {task[0]} for {gap:.1f} s while it was measured "
                    f"({most:g} s at most); measure again, on a machine that is less busy"
                )
            none = np.zeros(len(boundaries) - 1)
            found[task] = Increments(
                {
                    name: counters[name].increments(boundaries) if name in counters else none
                    for name in COUNTERS + STATE_COUNTERS
                },
                counters[STATE_LATENCY].at(boundaries[1:]) if STATE_LATENCY in counters else None,
            )
            for counter in counters.values():
                counter.forget_before(boundaries[-1])
        nothing = Increments(dict.fromkeys(COUNTERS + STATE_COUNTERS, np.zeros(len(boundaries) - 1)))
        return found | {(v.id, task): nothing for v in self._done for task in range(v.parallelism)}
