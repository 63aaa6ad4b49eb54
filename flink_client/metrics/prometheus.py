"""Counters of a job, as scraped by Prometheus from Flink's PrometheusReporter.

Raw samples are queried, each with the time of its scrape, so that nothing is extrapolated as with `rate()`.
"""

import math
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import Any, Final

from flink_client.metrics.prometheus_api import Prometheus
from flink_client.metrics.readings import COUNTERS, LATENCIES, STATE_COUNTERS, Reading, summed
from flink_client.rest.answers import Vertex
from models.errors import InvalidInput, SluiceError

_TASK: Final = "flink_taskmanager_job_task_"
_OPERATOR: Final = f"{_TASK}operator_"
_CPU_TIME: Final = "flink_taskmanager_Status_JVM_CPU_Time"
_NAMES: Final = (
    *(f"{_TASK}{name}" for name in COUNTERS),
    *(f"{_OPERATOR}{name}" for name in STATE_COUNTERS),
    *(f"{_OPERATOR}state_name_{name}" for name in LATENCIES),
)
_MEDIAN: Final = "0.5"
_LOOK_BACK_S: Final = 120
"""The scrape interval is derived from this much of the past."""
_SCRAPES: Final = 4
"""Each query covers this many scrapes, so that late samples are found; those read before are skipped."""
_ASK_EVERY_S: Final = 1.0
_TIMEOUT_S: Final = 10

_OTHER_ANSWERS: Final = (KeyError, TypeError, AttributeError, IndexError, ValueError, OverflowError, RecursionError)

Sample = tuple[float, float]
"""Time of the scrape, `time.monotonic`, and value."""


@dataclass
class _Task:
    attempt: int
    told_until: float = 0.0
    scrapes: dict[float, dict[str, float]] = field(default_factory=dict)


class PrometheusReadings:
    """Implements `flink_client.metrics.readings.Readings` for one job."""

    def __init__(self, url: str, job: str, task_managers: Iterable[str]) -> None:
        """
        Args:
            url: of Prometheus.
            job: Flink's id.
            task_managers: TaskManagers that must be scraped.

        Raises:
            InvalidInput: it does not scrape all of them.
            SluiceError: it does not answer.
        """
        self._url, self._job = url, job
        self._client = Prometheus(url, timeout_s=_TIMEOUT_S)
        with self._as_it_should():
            asked = time.time()
            ahead_s = self._clock() - (asked + time.time()) / 2
            self._to_monotonic_s = time.monotonic() - time.time() - ahead_s
            self._refresh_s = self._scraped_every(task_managers)
        self._tasks: dict[tuple[str, int], _Task] = {}
        self._cpu_told: dict[str, tuple[float, float]] = {}
        self._asked_at = 0.0

    @property
    def refresh_s(self) -> float:
        return self._refresh_s

    def of_vertex(self, vertex: Vertex, by_operator: bool) -> list[Reading]:
        if time.monotonic() - self._asked_at >= _ASK_EVERY_S:
            self._asked_at = time.monotonic()
            with self._as_it_should():
                self._ask()
        readings = []
        for number in range(vertex.parallelism):
            if (task := self._tasks.get((vertex.id, number))) is not None:
                readings += [Reading(number, when, _together(values)) for when, values in sorted(task.scrapes.items())]
                task.told_until = max([task.told_until, *task.scrapes])
                task.scrapes.clear()
        return readings

    def cpu_s(self, task_manager: str) -> list[Sample]:
        until, asked_at = self._cpu_told.get(task_manager, (0.0, 0.0))
        if time.monotonic() - asked_at < _ASK_EVERY_S:
            return []
        with self._as_it_should():
            samples = self._samples(_first(self._client.query(_cpu_query(task_manager, self._reach))))
        new = [(when, value / 1e9) for when, value in samples if when > until]
        self._cpu_told[task_manager] = (max([until, *(when for when, _ in new)]), time.monotonic())
        return new

    @property
    def _reach(self) -> str:
        return f"{max(1, round(_SCRAPES * self._refresh_s))}s"

    def _ask(self) -> None:
        """All new samples of all tasks, in one query."""
        names = "|".join(_NAMES)
        series = self._client.query(f'{{__name__=~"{names}",job_id="{self._job}"}}[{self._reach}]')
        chosen = one_scraper(series)
        for one in chosen:
            labels = one["metric"]
            if labels.get("quantile", _MEDIAN) != _MEDIAN:
                continue
            task = self._task(labels)
            if task is None:
                continue
            name = labels["__name__"]
            if name.startswith(f"{_OPERATOR}state_name_"):
                name = f"{name}:{labels.get('operator_id')}:{labels.get('state_name')}"
            elif name.startswith(_OPERATOR):
                name = f"{name}:{labels.get('operator_id')}"
            for when, value in self._samples(one):
                if when > task.told_until:
                    task.scrapes.setdefault(when, {})[name] = value

    def _task(self, labels: Mapping[str, str]) -> _Task | None:
        """None for a series of what ran before the task's attempt, as scraped until a rescale."""
        key, attempt = (labels["task_id"], int(labels["subtask_index"])), int(labels["task_attempt_num"])
        task = self._tasks.setdefault(key, _Task(attempt))
        if attempt < task.attempt:
            return None
        if attempt > task.attempt and task.told_until > 0:
            raise SluiceError(
                f"task {key[1]} of vertex {key[0]} was restarted while it was measured (attempt {task.attempt}, then "
                f"{attempt}); measure again"
            )
        if attempt > task.attempt:
            task = self._tasks[key] = _Task(attempt)
        return task

    def _clock(self) -> float:
        """Prometheus' time, seconds since the epoch."""
        clock = float(self._client.query("time()")[1])
        if not math.isfinite(clock):
            raise ValueError(f"its time is {clock}")
        return clock

    def _scraped_every(self, task_managers: Iterable[str]) -> float:
        apart: list[float] = []
        for name in task_managers:
            times = [t for t, _ in self._samples(_first(self._client.query(_cpu_query(name, f"{_LOOK_BACK_S}s"))))]
            if len(times) < 2:
                raise InvalidInput(
                    f"Prometheus at {self._url} must scrape every TaskManager, but has {len(times)} samples of {name!r} in the "
                    f"last {_LOOK_BACK_S} s; add it to its scrape configuration, and Flink's PrometheusReporter to Flink's "
                    f"settings, or leave 'prometheus_url' out"
                )
            apart += [after - before for before, after in pairwise(times)]
        return median(apart)

    def _samples(self, series: Mapping[str, Any] | None) -> list[Sample]:
        if series is None:
            return []
        samples = ((float(when) + self._to_monotonic_s, float(value)) for when, value in series["values"])
        return [(when, value) for when, value in samples if math.isfinite(when) and math.isfinite(value)]

    @contextmanager
    def _as_it_should(self) -> Iterator[None]:
        """Turn results of another form into a clear error."""
        try:
            yield
        except _OTHER_ANSWERS as error:
            raise SluiceError(
                f"Prometheus at {self._url} gave an unexpected answer ({type(error).__name__}: {error!s:.200}); check "
                f"'prometheus_url'"
            ) from error


def _cpu_query(task_manager: str, reach: str) -> str:
    return f'{_CPU_TIME}{{tm_id="{label_of(task_manager)}"}}[{reach}]'


def label_of(text: str) -> str:
    """Flink's reporter replaces characters that labels must not contain by underscores."""
    return re.sub(r"[^a-zA-Z0-9:_]", "_", text)


def _first(series: list[Any]) -> Mapping[str, Any] | None:
    """The samples of one scrape job, if several scrape the same process."""
    return min(series, key=_scraper, default=None)


def _scraper(series: Mapping[str, Any]) -> tuple[str, str]:
    return series["metric"].get("job", ""), series["metric"].get("instance", "")


def one_scraper(series: list[Any]) -> list[Any]:
    """Series of a TaskManager from the first of its scrape jobs only."""
    first: dict[str, tuple[str, str]] = {}
    for one in series:
        name = one["metric"].get("tm_id", "")
        first[name] = min(first.get(name, _scraper(one)), _scraper(one))
    return [one for one in series if _scraper(one) == first[one["metric"].get("tm_id", "")]]


def _together(scrape: Mapping[str, float]) -> dict[str, float]:
    """All states of one task together, by the plain name of each counter; latencies are medians here."""
    bare = [(name.partition(":")[0], value) for name, value in scrape.items()]
    counters = (
        (name.removeprefix(_OPERATOR).removeprefix(_TASK), value) for name, value in bare if "_state_name_" not in name
    )
    return summed(counters, (value for name, value in bare if "_state_name_" in name))
