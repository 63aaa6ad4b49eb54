"""The counters of a running job over the past, as Prometheus has scraped them from Flink's PrometheusReporter.

Raw samples are queried, each with the time of its scrape, so that nothing is extrapolated. All counters of a task are of the
same scrape, as all that REST answers is of the same refresh. The vertices, and where their tasks run, are read from REST.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median
from typing import Any, Final

from flink_client.jobs.operators import chained_operators
from flink_client.jobs.running import NotRunning
from flink_client.metrics.prometheus import label_of, one_scraper
from flink_client.metrics.prometheus_api import Prometheus
from flink_client.metrics.readings import STATE_COUNTERS, TIMES
from flink_client.rest.answers import ENDED, FINISHED, RUNNING, Subtask, flinks_answers, graph
from flink_client.rest.client import FlinkRest
from models.capacity.observed.counters.counts import JobCounts, StateCounts, TaskCounts, VertexCounts, WorkerCounts
from models.capacity.observed.waiting.estimated_lag import LagEstimator
from models.errors import SluiceError

_TASK: Final = "flink_taskmanager_job_task_"
_OPERATOR: Final = f"{_TASK}operator_"
_COUNTERS: Final = tuple(f"{_TASK}{name}" for name in ("numRecordsIn", "numRecordsOut", "numBytesOut", *TIMES))
_EMITTED, _READ, _PENDING, _AGE = (
    f"{_OPERATOR}{name}" for name in ("numRecordsOut", "numRecordsIn", "pendingRecords", "currentEmitEventTimeLag")
)
_FETCHED, _POLLED = (
    f"{_OPERATOR}KafkaSourceReader_KafkaConsumer_{name}" for name in ("records_consumed_total", "last_poll_seconds_ago")
)
_OLDEST: Final = (_AGE, _POLLED)
"""Of several sources of a task, the largest of these counts."""
_OFFSET: Final = f"{_OPERATOR}KafkaSourceReader_topic_partition_currentOffset"
_STATE: Final = tuple(f"{_OPERATOR}{name}" for name in STATE_COUNTERS)
_UNKNOWN: Final = -1
"""Age of a record without a time stamp, and time since a poll before the first one."""
_OF_SOURCES: Final = ',operator_name=~"Source:.*"'
_JVM: Final = "flink_taskmanager_Status_JVM_"
_CPU, _GC, _HEAP, _MOST_HEAP = (
    f"{_JVM}{name}" for name in ("CPU_Time", "GarbageCollector_All_Time", "Memory_Heap_Used", "Memory_Heap_Max")
)
_LEAST_STEP_S: Final = 5.0
_STALE: Final = 2.5
"""A task that was not scraped for so many steps does not count: one scrape may be missing."""


@dataclass
class _Scraped:
    """What was scraped of one task or TaskManager: values by time and name, of several series their sum, or the largest."""

    of: dict[float, dict[str, float]] = field(default_factory=lambda: defaultdict(dict))
    attempt: dict[float, int] = field(default_factory=dict)
    partitions: set[tuple[str, str]] = field(default_factory=set)

    def add(self, time_s: float, attempt: int, name: str, value: float) -> None:
        """Add a sample; of a scrape that has two attempts of a task, the newer one counts."""
        if attempt > self.attempt.get(time_s, -1):
            self.attempt[time_s], self.of[time_s] = attempt, {}
        if attempt == self.attempt[time_s]:
            known = self.of[time_s]
            known[name] = max(known.get(name, value), value) if name in _OLDEST else known.get(name, 0.0) + value

    def at(self, time_s: float, oldest_s: float) -> tuple[dict[str, float], int] | None:
        """The values of the last scrape, and the attempt of the task; None where that is older."""
        last = max((one for one in self.of if oldest_s < one <= time_s), default=None)
        return None if last is None else (self.of[last], self.attempt.get(last, 0))


@dataclass(frozen=True)
class ScrapedCounts:
    """Readings of the past."""

    readings: tuple[JobCounts, ...]
    step_s: float
    """Between two of them: that of the scrapes, but at least 5 s."""
    missing: tuple[str, ...]
    """TaskManagers that run tasks of the job, and are not scraped."""


def scraped_counts(prometheus: Prometheus, rest: FlinkRest, job: str, seconds: float) -> ScrapedCounts:
    """What was scraped of a job in the last seconds, dated by Prometheus' clock.

    Raises:
        NotRunning: the job has ended.
        SluiceError: Flink or Prometheus does not answer, or no task was scraped twice.
    """
    with flinks_answers(rest.url):
        answer = rest.get(f"/jobs/{job}")
        if answer["state"] in ENDED:
            raise NotRunning(f"job {job} is {answer['state'].lower()}; what runs can be observed")
        subtasks = {one["id"]: rest.subtasks(job, one["id"]) for one in answer["vertices"]}
    workers = {task.task_manager for of_one in subtasks.values() for task in of_one if task.task_manager}
    with prometheus.results():
        tasks = _tasks(prometheus, job, seconds)
        machines = _machines(prometheus, workers, seconds)
    times = sorted({time_s for one in tasks.values() for time_s in one.of})
    if not times:
        raise SluiceError(
            f"Prometheus at {prometheus.url} has no samples of job {job} from the last {seconds:g} s; it must scrape every "
            "TaskManager, and Flink's PrometheusReporter be on (metrics.reporter.prom.factory.class)"
        )
    apart = _apart(tasks.values())
    if not apart:
        raise SluiceError(
            f"Prometheus at {prometheus.url} has scraped no task of job {job} twice in the last {seconds:g} s, so that nothing "
            "is known of its rates; take a longer time, of at least three scrapes"
        )
    step_s = max(median(apart), _LEAST_STEP_S)
    count = int((times[-1] - times[0]) / step_s)
    grid = [times[-1] - step_s * number for number in range(count, -1, -1)]
    lags = LagEstimator()
    return ScrapedCounts(
        readings=tuple(lags.seen(_reading(answer, subtasks, tasks, machines, at_s, _STALE * step_s)) for at_s in grid),
        step_s=step_s,
        missing=tuple(sorted(name for name in workers if label_of(name) not in machines)),
    )


def _tasks(prometheus: Prometheus, job: str, seconds: float) -> dict[tuple[str, int], _Scraped]:
    """By vertex and number of the task."""
    found: dict[tuple[str, int], _Scraped] = defaultdict(_Scraped)
    wanted = [*((name, "") for name in (*_COUNTERS, *_STATE, _OFFSET))]
    wanted += [(name, _OF_SOURCES) for name in (_EMITTED, _READ, _FETCHED, _POLLED, _PENDING, _AGE)]
    for name, of in wanted:
        for series in one_scraper(prometheus.query(f'{name}{{job_id="{job}"{of}}}[{math.ceil(seconds)}s]')):
            labels = series["metric"]
            task = found[labels["task_id"], int(labels["subtask_index"])]
            if name == _OFFSET:
                task.partitions.add((labels.get("topic", ""), labels.get("partition", "")))
                continue
            for time_s, value in _samples(series):
                task.add(time_s, int(labels["task_attempt_num"]), name, value)
    return found


def _machines(prometheus: Prometheus, workers: Iterable[str], seconds: float) -> dict[str, _Scraped]:
    """TaskManagers by their label."""
    labels, found = "|".join(sorted(label_of(name) for name in workers)), dict[str, _Scraped]()
    for name in (_CPU, _GC, _HEAP, _MOST_HEAP):
        for series in one_scraper(prometheus.query(f'{name}{{tm_id=~"{labels}"}}[{math.ceil(seconds)}s]')):
            of_one = found.setdefault(series["metric"]["tm_id"], _Scraped())
            for time_s, value in _samples(series):
                of_one.of[time_s][name] = value
    return found


def _samples(series: Mapping[str, Any]) -> list[tuple[float, float]]:
    samples = ((float(time_s), float(value)) for time_s, value in series["values"])
    return [(time_s, value) for time_s, value in samples if math.isfinite(value)]


def _apart(tasks: Iterable[_Scraped]) -> list[float]:
    """Times between two scrapes of a task, seconds."""
    return [after - before for one in tasks for before, after in pairwise(sorted(one.of))]


def _reading(
    answer: Mapping[str, Any],
    subtasks: Mapping[str, Sequence[Subtask]],
    tasks: Mapping[tuple[str, int], _Scraped],
    machines: Mapping[str, _Scraped],
    at_s: float,
    stale_s: float,
) -> JobCounts:
    vertices, edges = graph(answer["plan"])
    with_input, order = {edge.downstream for edge in edges}, {v.id: place for place, v in enumerate(vertices)}
    known = [
        VertexCounts(
            id=one["id"],
            name=one["name"],
            operators=chained_operators(one["name"]),
            max_parallelism=one["maxParallelism"],
            slot_group=one.get("slotSharingGroupId", ""),
            is_source=one["id"] not in with_input,
            tasks=tuple(
                _task(task, tasks.get((one["id"], task.index), _Scraped()), at_s, stale_s)
                for task in subtasks[one["id"]]
            ),
        )
        for one in answer["vertices"]
    ]
    names = {task.task_manager for of_one in subtasks.values() for task in of_one}
    found = {name: machines[label_of(name)].at(at_s, at_s - stale_s) for name in names if label_of(name) in machines}
    return JobCounts(
        time_s=at_s,
        running_since_ms=answer.get("timestamps", {}).get(RUNNING, 0),
        state=answer["state"],
        vertices=tuple(sorted(known, key=lambda v: order.get(v.id, 0))),
        workers={name: _worker(values[0]) for name, values in found.items() if values is not None},
    )


def _task(task: Subtask, scraped: _Scraped, at_s: float, stale_s: float) -> TaskCounts:
    finished, found = task.state == FINISHED, scraped.at(at_s, at_s - stale_s)
    if found is None:
        return TaskCounts(task.index, task.attempt, runs=False, finished=finished, worker=task.task_manager)
    values, attempt = found
    busy, held, idle = (_seconds(values.get(f"{_TASK}{name}")) for name in TIMES)
    pending, age, polled_s = (values.get(name) for name in (_PENDING, _AGE, _POLLED))
    state = [values[name] for name in _STATE if name in values]
    made = TaskCounts(
        task=task.index,
        attempt=attempt,
        runs=not finished,
        finished=finished,
        worker=task.task_manager,
        records_in=values.get(_COUNTERS[0]),
        records_out=values.get(_COUNTERS[1]),
        bytes_out=values.get(_COUNTERS[2]),
        busy_s=busy,
        backpressured_s=held,
        idle_s=idle,
        emitted=values.get(_EMITTED),
        read=values.get(_READ),
        fetched=values.get(_FETCHED),
        polled_s=None if polled_s == _UNKNOWN else polled_s,
        age_s=None if age == _UNKNOWN else _seconds(age),
        partitions=len(scraped.partitions) or None,
        state=StateCounts(*state) if len(state) == len(_STATE) else None,
    )
    return made if pending is None or pending < 0 else replace(made, pending=pending * made.emitted_per_read)


def _worker(values: Mapping[str, float]) -> WorkerCounts:
    used, most = values.get(_HEAP), values.get(_MOST_HEAP)
    return WorkerCounts(
        cpu_s=None if _CPU not in values else values[_CPU] / 1e9,
        gc_s=None if _GC not in values else values[_GC] / 1e3,
        heap_used=None if used is None or not most or most < 0 else used / most,
    )


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
