"""From readings of a running job's counters to the activity that a meter collects.

All tasks are put on the time between the readings: the records of a task are its rate, by its own clock, times that time.

What arrives at a source is what was appended to its logs, where a broker says where they end. Else it is what the source emits
and by how much its lag grows, which are not of one time: counters are late, most of all in the first seconds after a rescale.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from models.capacity.observed.counters.counts import JobCounts, LogCounts, StateCounts, TaskCounts, VertexCounts
from models.capacity.observed.counters.intervals import TaskInterval, cpu_per_busy_s, cpu_shares, intervals
from models.capacity.observed.waiting.in_flight import in_flight
from models.capacity.observed.waiting.lag import MOST_LATE_S, lag_before, reported_lag, rounds
from models.metrics import Activity

LEAST_S: Final = 1.0
"""Shorter intervals are not measured."""


@dataclass(frozen=True)
class VertexTraffic:
    """What the tasks of a vertex moved, bytes/s together."""

    sent: float
    state: float
    """Read from and written to state on disk; 0 where that is not counted."""


@dataclass(frozen=True)
class JobActivity:
    """What the vertices of a job did between two readings."""

    seconds: float
    vertices: Mapping[str, Activity]
    """By id."""
    traffic: Mapping[str, VertexTraffic]
    """By id of the vertex."""
    arriving: Mapping[str, float]
    """Records/s that came in, by the id of the source; what it read where neither its logs nor its lag are known."""
    lag_unknown: frozenset[str]
    """Sources, by id, that do not report what waits."""
    growth_unknown: Mapping[str, str]
    """Why it is unknown by how much the lag of a source grew that does report what waits, by id. An overloaded source reads
    less than arrives, so that what arrives is unknown as well."""
    busy_unknown: frozenset[str]
    """Vertices, by id, that do not report their busy time."""
    in_flight: Mapping[str, float]
    """Records on their way to each vertex, by id, where that is known."""

    @property
    def arrival_rate(self) -> float:
        return sum(self.arriving.values())

    @property
    def shares(self) -> dict[str, float]:
        """Of each source; empty while nothing arrives."""
        whole = self.arrival_rate
        return {id_: rate / whole for id_, rate in self.arriving.items()} if whole > 0 else {}


def activity_since(
    readings: Sequence[JobCounts],
    *,
    state_bytes: Mapping[str, float] | None = None,
    queue_shares: Mapping[str, Sequence[float]] | None = None,
    senders: Mapping[str, Sequence[str]] | None = None,
) -> JobActivity | None:
    """What was done from the last but one reading to the last.

    Args:
        readings: at least two, the earlier ones to tell how late counters are reported.
        state_bytes: of each vertex that keeps state, by id.
        queue_shares: share of its input buffers that each task uses, by vertex id, where it was read.
        senders: as for `in_flight`.

    Returns:
        None while a running task does not yet report counters that are newer than those of the last but one reading.
    """
    before, after = readings[-2:]
    done = intervals((before, after))
    by_task = {(one.vertex, one.task): one for one in done}
    seconds = after.time_s - before.time_s
    running = [v for v in after.vertices if not all(task.finished for task in v.tasks)]
    wanted = [(v.id, task.task) for v in running for task in v.tasks if not task.finished]
    if seconds < LEAST_S or not wanted or any(key not in by_task for key in wanted):
        return None
    cpu_per_busy = cpu_per_busy_s(done, cpu_shares((before, after)))
    arriving, unknown, lags, no_growth = {}, set(), {}, {}
    for vertex in (v for v in running if v.is_source):
        own = [_alone(reading, vertex.id) for reading in readings]
        between = intervals(own)
        found = rounds(own, between)
        lag = found[-1].lag if found else None
        was = found[-2].lag if len(found) > 1 else lag_before(own, between)
        emitted = sum(one.records_in / one.seconds for one in done if one.vertex == vertex.id)
        if lag is None:
            unknown.add(vertex.id)
        appended = _appended(_logs(before, vertex.id), vertex.logs)
        by_logs = None if appended is None else appended * vertex.emitted_per_read
        if (lag is None or (was is None and by_logs is None)) and any(
            reported_lag(reading) is not None for reading in own
        ):
            no_growth[vertex.id] = _why_unknown(own[-2] if was is None else own[-1])
        grown = 0.0 if lag is None or was is None else (lag - was) / seconds
        arriving[vertex.id] = max(emitted + grown, 0.0) if by_logs is None else by_logs
        lags[vertex.id] = lag
    return JobActivity(
        seconds=seconds,
        vertices={
            v.id: _activity(
                v,
                [by_task.get((v.id, task.task)) or _finished(v, task, after.time_s, seconds) for task in v.tasks],
                seconds,
                cpu_per_busy,
                lags.get(v.id),
                (state_bytes or {}).get(v.id),
                (queue_shares or {}).get(v.id),
            )
            for v in running
        },
        traffic={v.id: _traffic([one for one in done if one.vertex == v.id]) for v in running},
        arriving=arriving,
        lag_unknown=frozenset(unknown),
        growth_unknown=no_growth,
        busy_unknown=frozenset(one.vertex for one in done if one.busy_s is None),
        in_flight=in_flight(after, done, senders or {}),
    )


def _traffic(tasks: Sequence[TaskInterval]) -> VertexTraffic:
    state = [(one.state.read_bytes + one.state.written_bytes) / one.seconds for one in tasks if one.state is not None]
    return VertexTraffic(sent=sum(one.bytes_out / one.seconds for one in tasks), state=sum(state))


def _logs(reading: JobCounts, vertex: str) -> LogCounts | None:
    return next((v.logs for v in reading.vertices if v.id == vertex), None)


def _appended(before: LogCounts | None, after: LogCounts | None) -> float | None:
    """Records/s by the ends of the logs; None where these are not known, or of other partitions. Markers of transactions count,
    as they have offsets."""
    if before is None or after is None or before.ends.keys() != after.ends.keys():
        return None
    seconds = after.asked_s - before.asked_s
    if seconds < LEAST_S:
        return None
    # A topic that was created again begins at 0.
    return sum(max(end - before.ends[one], 0.0) for one, end in after.ends.items()) / seconds


def _alone(reading: JobCounts, vertex: str) -> JobCounts:
    return replace(reading, vertices=tuple(v for v in reading.vertices if v.id == vertex))


def _why_unknown(reading: JobCounts) -> str:
    """Why what waits at a reading is unknown."""
    if reported_lag(reading) is None:
        return "not all of its tasks report it"
    return f"its counters are more than {MOST_LATE_S:g} s late"


def _finished(vertex: VertexCounts, task: TaskCounts, ended_s: float, seconds: float) -> TaskInterval:
    """A task whose input was bounded and is read: it has nothing to do, but still is one of the vertex's tasks."""
    return TaskInterval(
        vertex=vertex.id,
        task=task.task,
        worker=task.worker,
        ended_s=ended_s,
        seconds=seconds,
        records_in=0.0,
        records_out=0.0,
        bytes_out=0.0,
        busy_s=0.0,
        backpressured_s=0.0,
        idle_s=seconds,
        pending=None,
        state=StateCounts(0.0, 0.0, 0.0, 0.0),
    )


def _activity(
    vertex: VertexCounts,
    tasks: Sequence[TaskInterval],
    seconds: float,
    cpu_per_busy: Mapping[str, float],
    lag: float | None,
    state_bytes: float | None,
    queue_shares: Sequence[float] | None,
) -> Activity:
    scale = np.array([seconds / one.seconds for one in tasks])
    busy = np.array([one.busy_s or 0.0 for one in tasks]) * scale
    blocked = np.array([one.backpressured_s for one in tasks]) * scale
    accessed = [one.state for one in tasks if one.state is not None]
    nothing = np.zeros(len(tasks))
    return Activity(
        seconds=seconds,
        records_in=np.array([one.records_in for one in tasks]) * scale,
        records_out=np.array([one.records_out for one in tasks]) * scale,
        busy_s=busy,
        backpressured_s=blocked,
        idle_s=np.maximum(seconds - busy - blocked, 0.0),
        cpu_s=busy * np.array([cpu_per_busy.get(one.worker, 1.0) for one in tasks]),
        cache_hits=np.array([s.cache_hits for s in accessed]) if len(accessed) == len(tasks) else nothing,
        cache_misses=np.array([s.cache_misses for s in accessed]) if len(accessed) == len(tasks) else nothing,
        state_time_s=nothing,
        input_queue_share=nothing if queue_shares is None else np.array(queue_shares[: len(tasks)]),
        lag_records=np.full(len(tasks), (lag or 0.0) / len(tasks)) if vertex.is_source else nothing,
        state_bytes=np.full(len(tasks), (state_bytes or 0.0) / len(tasks)),
        keeps_state=state_bytes is not None,
    )
