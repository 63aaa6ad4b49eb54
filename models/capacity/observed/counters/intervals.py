"""What a task did between two readings of its counters.

Flink reports counters up to two refreshes late, all of one task together. A task is always busy, backpressured or idle, so
the growth of these three times is the time that the growth of its other counters belongs to, however late they are read.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from models.capacity.observed.counters.counts import JobCounts, StateCounts, TaskCounts, VertexCounts, WorkerCounts

LEAST_S: Final = 1.0
"""Shorter growth of the times is a rounding of Flink's, not a refresh."""


@dataclass(frozen=True)
class TaskInterval:
    """What one task did in one interval."""

    vertex: str
    """Id."""
    task: int
    worker: str
    ended_s: float
    """When the later counters were read, `time.monotonic`."""
    seconds: float
    records_in: float
    """At a source: records emitted."""
    records_out: float
    bytes_out: float
    busy_s: float | None
    """None where the task does not report it."""
    backpressured_s: float
    idle_s: float
    pending: float | None
    """Records that waited before it at the end."""
    state: StateCounts | None = None
    """None where accesses to its state are not counted."""


def intervals(readings: Sequence[JobCounts]) -> list[TaskInterval]:
    """All intervals that the readings show, in the order of time.

    There is none over a restart, before a task reports all of its counters, and after it has finished.
    """
    found: list[TaskInterval] = []
    last: dict[tuple[str, int], tuple[TaskCounts, float]] = {}
    for reading in readings:
        for vertex in reading.vertices:
            for task in vertex.tasks:
                key = (vertex.id, task.task)
                if not task.runs or not _complete(task):
                    last.pop(key, None)
                    continue
                if key in last and not _restarted(last[key][0], task):
                    if (grown := _grown(vertex, last[key], task, reading.time_s)) is None:
                        continue
                    found.append(grown)
                last[key] = (task, reading.time_s)
    return found


def _complete(task: TaskCounts) -> bool:
    return None not in (task.records_in, task.records_out, task.bytes_out)


def _restarted(before: TaskCounts, after: TaskCounts) -> bool:
    """Whether the task was started again: another attempt or TaskManager, or counters that fell."""
    fell = any(
        (getattr(after, name) or 0.0) < (getattr(before, name) or 0.0)
        for name in ("records_in", "records_out", "bytes_out", "emitted")
    )
    return fell or after.attempt != before.attempt or after.worker != before.worker


def _grown(
    vertex: VertexCounts, last: tuple[TaskCounts, float], after: TaskCounts, time_s: float
) -> TaskInterval | None:
    """None where the counters were not refreshed since."""
    before, before_s = last
    ran, had_run = after.ran_s, before.ran_s
    seconds = time_s - before_s if ran is None or had_run is None else ran - had_run
    if seconds < LEAST_S:
        return None
    out = _increase(before.records_out, after.records_out)
    emitted = out if after.emitted is None else _increase(before.emitted, after.emitted)
    # Flink computes the busy time as the rest of gauges that are not read at one instant, so that it may fall a little.
    waited = [_increase(before.backpressured_s, after.backpressured_s), _increase(before.idle_s, after.idle_s)]
    backpressured, idle = (min(one, seconds) for one in waited)
    return TaskInterval(
        vertex=vertex.id,
        task=after.task,
        worker=after.worker,
        ended_s=time_s,
        seconds=seconds,
        records_in=emitted if vertex.is_source else _increase(before.records_in, after.records_in),
        records_out=out,
        bytes_out=_increase(before.bytes_out, after.bytes_out),
        busy_s=None if ran is None else max(seconds - backpressured - idle, 0.0),
        backpressured_s=backpressured,
        idle_s=idle,
        pending=after.pending,
        state=None if before.state is None or after.state is None else after.state.since(before.state),
    )


def _increase(before: float | None, after: float | None) -> float:
    return max((after or 0.0) - (before or 0.0), 0.0)


def cpu_shares(readings: Sequence[JobCounts]) -> dict[str, float]:
    """Cores that each TaskManager used in the mean; those that were started meanwhile, and those that do not report it,
    are left out."""
    return {
        name: sum(used for used, _ in grown) / sum(seconds for _, seconds in grown)
        for name, grown in _of_workers(readings).items()
        if grown
    }


def cpu_per_busy_s(done: Sequence[TaskInterval], used: Mapping[str, float]) -> dict[str, float]:
    """CPU seconds of a busy second on each TaskManager, at most 1: what else its JVM does belongs to no task."""
    busy: dict[str, float] = {}
    seconds: dict[tuple[str, str, int], float] = {}
    for one in done:
        busy[one.worker] = busy.get(one.worker, 0.0) + (one.busy_s or 0.0)
        key = (one.worker, one.vertex, one.task)
        seconds[key] = seconds.get(key, 0.0) + one.seconds
    longest = {worker: max(s for (w, _, _), s in seconds.items() if w == worker) for worker in busy}
    return {w: min(used[w] * longest[w] / busy[w], 1.0) for w in busy if w in used and busy[w] > 0}


def _of_workers(readings: Iterable[JobCounts]) -> dict[str, list[tuple[float, float]]]:
    """CPU seconds and elapsed seconds between readings, by TaskManager."""
    found: dict[str, list[tuple[float, float]]] = {}
    known = [(r.time_s, r.workers) for r in readings if r.workers]
    for (began, before), (ended, after) in pairwise(known):
        for name in before.keys() & after.keys():
            used = _cpu(before[name], after[name])
            if used is not None:
                found.setdefault(name, []).append((used, ended - began))
    return found


def _cpu(before: WorkerCounts, after: WorkerCounts) -> float | None:
    if before.cpu_s is None or after.cpu_s is None or after.cpu_s < before.cpu_s:
        return None
    return after.cpu_s - before.cpu_s


def starts_of(readings: Sequence[JobCounts]) -> list[float]:
    """When the job was seen to have been started again."""
    return [
        after.time_s
        for before, after in pairwise(readings)
        if after.running_since_ms != before.running_since_ms or _attempts(after) != _attempts(before)
    ]


def _attempts(reading: JobCounts) -> list[tuple[str, int, int]]:
    return [(v.id, task.task, task.attempt) for v in reading.vertices for task in v.tasks]
