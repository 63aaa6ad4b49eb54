"""The counters of a running job, read from Flink's REST interface with one request for each vertex.

`/jobs/:id/vertices/:id` has the records, bytes and times of all tasks of a vertex; Flink takes them from the same refresh
(`metrics.fetcher.update-interval`). What sources emit and what waits before them are metrics of their own.
"""

import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from flink_client.jobs.operators import chained_operators
from flink_client.jobs.running import NotRunning
from flink_client.metrics.partitions import LogEnds, PartitionsReader
from flink_client.metrics.readings import STATE_COUNTERS, TIMES
from flink_client.rest.answers import ENDED, FINISHED, RUNNING, flinks_answers, graph
from flink_client.rest.client import FlinkRest
from models.capacity.observed.counters.counts import JobCounts, StateCounts, TaskCounts, VertexCounts, WorkerCounts
from models.capacity.observed.waiting.estimated_lag import LagEstimator

_EMITTED: Final = re.compile(r"\d+\.(Source__.*\.numRecordsOut)")
_READ: Final = re.compile(r"\d+\.(Source__.*\.numRecordsIn)")
_PENDING: Final = re.compile(r"\d+\.(.*\.pendingRecords)")
_FETCHED: Final = re.compile(r"\d+\.(Source__.*\.KafkaConsumer\.records-consumed-total)")
_POLLED: Final = re.compile(r"\d+\.(Source__.*\.KafkaConsumer\.last-poll-seconds-ago)")
_AGE: Final = re.compile(r"\d+\.(Source__.*\.currentEmitEventTimeLag)")
_TIMES_OF_DETAILS: Final = ("accumulated-busy-time", "accumulated-backpressured-time", "accumulated-idle-time")
"""The names of TIMES in the details of a vertex."""
_YOUNG_S: Final = 20.0
"""A task that has run for longer, and has read nothing of a partition, reads none of it for another reason than its start."""
_UNKNOWN: Final = -1
"""Value of pending records, and of the age of a record, that a source does not know."""
_HASH: Final = "HASH"
_CPU: Final = "Status.JVM.CPU.Time"
_GC: Final = "Status.JVM.GarbageCollector.All.Time"
_HEAP: Final = "Status.JVM.Memory.Heap"
_NAMED: Final = 8
"""Readings after a start in which sources may not name all of their partitions yet."""
_STATE_LOOKS: Final = (1, 3)
"""Readings after a start in which names of state metrics are looked for, which takes a long answer for each vertex."""


@dataclass(frozen=True)
class _Graph:
    """The vertices of a job since it started."""

    since_ms: int
    order: list[str]
    """In topological order."""
    sources: frozenset[str]
    keyed: frozenset[str]
    """Those that records are hash-partitioned to, which have state."""


class CountsReader:
    """Reads the counters of one job again and again."""

    def __init__(
        self,
        rest: FlinkRest,
        job: str,
        log_ends: LogEnds | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        Args:
            clock: seconds, by which readings are dated.
            log_ends: where what waits is counted by the broker. Else it is estimated (`LagEstimator`), since Kafka's source
                reports it as of its last fetch, which may be long ago while it is held back.
        """
        self._rest, self._job, self._clock = rest, job, clock
        self._partitions = PartitionsReader(rest, job, log_ends, clock)
        self._graph = _Graph(-1, [], frozenset(), frozenset())
        self._readings = 0
        """Since the job started."""
        self._of_sources: dict[str, tuple[str, ...]] = {}
        self._of_state: dict[str, tuple[str, ...]] = {}
        self._lags = LagEstimator()

    @property
    def faults(self) -> Sequence[str]:
        """Why some of what was read is unknown."""
        return self._partitions.faults

    def refresh(self) -> None:
        """Have the JobManager fetch metrics from the TaskManagers, if those that it has are old; it does not wait for them.

        Flink fetches metrics when it is asked for some, and answers with those that it has: without this, a reading shows
        what was fetched at the one before.

        Raises:
            SluiceError: Flink does not answer.
        """
        self._partitions.refresh()
        self._rest.get(f"/jobs/{self._job}/metrics")

    def read(self, *, workers: bool) -> JobCounts:
        """All counters at this time.

        Args:
            workers: whether to read TaskManagers, too, with a request for each.

        Raises:
            NotRunning: the job has ended.
            SluiceError: Flink does not answer.
        """
        with flinks_answers(self._rest.url):
            answer = self._rest.get(f"/jobs/{self._job}")
            if answer["state"] in ENDED:
                cause = self._rest.failure(self._job)
                raise NotRunning(f"job {self._job} is {answer['state'].lower()}" + (f": {cause}" if cause else ""))
            since_ms = answer.get("timestamps", {}).get(RUNNING, 0)
            self._read_graph(since_ms, answer["plan"])
            order = self._graph.order
            vertices = [self._vertex(one) for one in answer["vertices"]]
            names = {task.worker for vertex in vertices for task in vertex.tasks if task.worker} if workers else set()
            counts = JobCounts(
                time_s=self._clock(),
                running_since_ms=since_ms,
                state=answer["state"],
                vertices=tuple(sorted(vertices, key=lambda v: order.index(v.id) if v.id in order else 0)),
                workers={name: self._worker(name) for name in sorted(names)},
            )
            return self._lags.seen(counts)

    def silent_partitions(self) -> dict[str, tuple[str, ...]]:
        """Partitions of which nothing was read since the job started, by vertex; none of a source that read nothing at all.

        Raises:
            SluiceError: Flink does not answer.
        """
        with flinks_answers(self._rest.url):
            return self._partitions.silent()

    def _read_graph(self, since_ms: int, plan: Mapping[str, Any]) -> None:
        """Its vertices; after a restart the metrics' names are read again."""
        if since_ms != self._graph.since_ms:
            self._partitions.restarted()
            vertices, edges = graph(plan)
            with_input = {edge.downstream for edge in edges}
            self._graph = _Graph(
                since_ms,
                [v.id for v in vertices],
                frozenset(v.id for v in vertices) - with_input,
                frozenset(edge.downstream for edge in edges if edge.ship_strategy == _HASH),
            )
            self._readings = 0
            self._of_sources.clear()
            self._of_state.clear()
        self._readings += 1

    def _vertex(self, one: Mapping[str, Any]) -> VertexCounts:
        is_source = one["id"] in self._graph.sources
        details = self._rest.get(f"/jobs/{self._job}/vertices/{one['id']}")["subtasks"]
        of_source = self._source_metrics(one["id"], len(details)) if is_source else {}
        by_broker = self._partitions.waiting(one["id"]) if is_source else {}
        state = self._state(one["id"], len(details)) if one["id"] in self._graph.keyed else {}
        tasks = [
            replace(
                self._task(one["id"], task, of_source.get(task["subtask"], {}), by_broker),
                state=state.get(task["subtask"]),
            )
            for task in details
        ]
        return VertexCounts(
            id=one["id"],
            name=one["name"],
            operators=chained_operators(one["name"]),
            max_parallelism=one["maxParallelism"],
            slot_group=one.get("slotSharingGroupId", ""),
            is_source=is_source,
            tasks=tuple(sorted(tasks, key=lambda task: task.task)),
            logs=self._partitions.logs(one["id"]) if is_source else None,
        )

    def _task(
        self,
        vertex: str,
        task: Mapping[str, Any],
        of_source: Mapping[str, float],
        by_broker: Mapping[int, float | None],
    ) -> TaskCounts:
        counted, number = task["metrics"], int(task["subtask"])
        reported = bool(counted.get("write-records-complete"))
        times = [
            # Those of a source's own metrics are of the same refresh as what it emitted.
            _seconds(of_source.get(name, counted.get(detail))) if reported else None
            for name, detail in zip(TIMES, _TIMES_OF_DETAILS, strict=True)
        ]
        emitted, read, fetched, waiting = (_of(pattern, of_source) for pattern in (_EMITTED, _READ, _FETCHED, _PENDING))
        known = [by_broker[number]] if number in by_broker else waiting
        pending = [value for value in known if value is not None and value > _UNKNOWN]
        ages, polled = ([value for value in _of(one, of_source) if value != _UNKNOWN] for one in (_AGE, _POLLED))
        partitions = self._partitions.number(vertex, number)
        if not known and partitions == 0:
            pending = [0.0]  # it has nothing to read from
        made = TaskCounts(
            task=number,
            attempt=task["attempt"],
            runs=task["status"] == RUNNING,
            finished=task["status"] == FINISHED,
            worker=task.get("taskmanager-id", "").replace("(unassigned)", ""),
            records_in=counted["read-records"] if reported else None,
            records_out=counted["write-records"] if reported else None,
            bytes_out=counted["write-bytes"] if reported else None,
            busy_s=times[0],
            backpressured_s=times[1],
            idle_s=times[2],
            emitted=math.fsum(emitted) if emitted else None,
            read=math.fsum(read) if read else None,
            fetched=math.fsum(fetched) if fetched else None,
            polled_s=max(polled) if polled else None,
            age_s=max(ages) / 1000 if ages else None,
            partitions=partitions,
        )
        made = replace(made, pending=math.fsum(pending) * made.emitted_per_read if pending else None)
        is_young = made.ran_s is not None and made.ran_s < _YOUNG_S
        return replace(made, pending=None) if is_young and number in self._partitions.unread(vertex) else made

    def _source_metrics(self, vertex: str, tasks: int) -> dict[int, dict[str, float]]:
        """What the sources of a vertex count, by task and name."""
        # After a rescale partitions move to other tasks, which report them late.
        known = not self._partitions.asks_broker and any(
            _PENDING.fullmatch(f"0.{name}") for name in self._of_sources.get(vertex, ())
        )
        is_late = self._readings < _NAMED and self._partitions.is_missing(vertex)
        if not known and (vertex not in self._of_sources or is_late or _is_power_of_two(self._readings)):
            # A source reports what waits before it only once it has read something, and some never do: they are asked for
            # their names, a long answer, less and less often.
            reported = self._rest.metric_names(self._job, vertex)
            wanted = (_EMITTED, _READ, _FETCHED, _POLLED, _PENDING, _AGE)
            found = (m[1] for pattern in wanted for m in map(pattern.fullmatch, reported) if m)
            self._of_sources[vertex] = tuple(sorted(set(found)))
            self._partitions.find(vertex, reported, tasks)
        names = (*self._of_sources[vertex], *TIMES)
        return dict(enumerate(self._rest.vertex_metrics(self._job, vertex, names, tasks)))

    def _state(self, vertex: str, tasks: int) -> dict[int, StateCounts]:
        """Accesses to the state of each task that counts them."""
        if self._readings in _STATE_LOOKS and not self._of_state.get(vertex):
            reported = (name.partition(".") for name in self._rest.metric_names(self._job, vertex))
            found = {name for task, _, name in reported if task.isdecimal() and name.endswith(STATE_COUNTERS)}
            self._of_state[vertex] = tuple(sorted(found))
        names = self._of_state.get(vertex, ())
        values = self._rest.vertex_metrics(self._job, vertex, names, tasks) if names else []
        return {task: _state_counts(known) for task, known in enumerate(values) if known}

    def _worker(self, name: str) -> WorkerCounts:
        wanted = (_CPU, _GC, f"{_HEAP}.Used", f"{_HEAP}.Max")
        known = self._rest.task_manager_metrics(name, wanted)
        used, most = known.get(f"{_HEAP}.Used"), known.get(f"{_HEAP}.Max")
        return WorkerCounts(
            cpu_s=None if _CPU not in known else known[_CPU] / 1e9,
            gc_s=None if _GC not in known else known[_GC] / 1e3,
            heap_used=None if used is None or not most or most < 0 else used / most,
        )


def _is_power_of_two(number: int) -> bool:
    return number & (number - 1) == 0


def _state_counts(values: Mapping[str, float]) -> StateCounts:
    """All states of one task together."""
    sums = [math.fsum(value for name, value in values.items() if name.endswith(counter)) for counter in STATE_COUNTERS]
    return StateCounts(*sums)


def _of(pattern: re.Pattern[str], of_source: Mapping[str, float]) -> list[float]:
    return [value for name, value in of_source.items() if pattern.fullmatch(f"0.{name}")]


def _seconds(milliseconds: float | str | None) -> float | None:
    """None where Flink reports no number, as for the busy time of older sources."""
    value = math.nan if milliseconds is None else float(milliseconds)
    return value / 1000 if math.isfinite(value) else None
