"""Readings of a running job, made from what its tasks do each second."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from models.capacity.observed.counters.counts import JobCounts, TaskCounts, VertexCounts, WorkerCounts


@dataclass(frozen=True)
class Doing:
    """What a task does each second."""

    records_in: float
    records_out: float
    busy: float
    backpressure: float = 0.0
    pending: float | None = None
    """Records that wait before it when it starts."""
    pending_grows: float = 0.0
    partitions: int | None = None


@dataclass(frozen=True)
class Vertex:
    """A vertex, and what each of its tasks does."""

    name: str
    tasks: Sequence[Doing]
    is_source: bool = False


def job_counts(
    vertices: Sequence[Vertex], time_s: float, ran_s: float | None = None, attempt: int = 0, since_ms: int = 1
) -> JobCounts:
    """The counters at `time_s`, of tasks that have run for `ran_s`, if that is not the same."""
    ran = time_s if ran_s is None else ran_s
    return JobCounts(
        time_s=time_s,
        running_since_ms=since_ms,
        state="RUNNING",
        vertices=tuple(
            VertexCounts(
                id=f"id-{v.name}",
                name=v.name,
                operators=(v.name,),
                max_parallelism=128,
                slot_group="group",
                is_source=v.is_source,
                tasks=tuple(_task(number, one, v.is_source, ran, attempt) for number, one in enumerate(v.tasks)),
            )
            for v in vertices
        ),
        workers={"tm1": WorkerCounts(cpu_s=0.5 * time_s, gc_s=0.01 * time_s, heap_used=0.25)},
    )


def _task(number: int, doing: Doing, is_source: bool, ran_s: float, attempt: int) -> TaskCounts:
    out = doing.records_out * ran_s
    return TaskCounts(
        task=number,
        attempt=attempt,
        runs=True,
        finished=False,
        worker="tm1",
        records_in=0.0 if is_source else doing.records_in * ran_s,
        records_out=out,
        bytes_out=100 * out,
        busy_s=doing.busy * ran_s,
        backpressured_s=doing.backpressure * ran_s,
        idle_s=(1 - doing.busy - doing.backpressure) * ran_s,
        emitted=doing.records_in * ran_s if is_source else None,
        pending=None if doing.pending is None else doing.pending + doing.pending_grows * ran_s,
        partitions=doing.partitions,
    )


def readings(*vertices: Vertex, times: Sequence[float] = tuple(range(10, 71, 10))) -> list[JobCounts]:
    """Readings at given times, by default every ten seconds for a minute."""
    return [job_counts(vertices, float(time)) for time in times]


def without_times(reading: JobCounts) -> JobCounts:
    """The same from tasks that do not report their times, as older sources do not."""
    return replace(
        reading,
        vertices=tuple(
            replace(v, tasks=tuple(replace(t, busy_s=None, backpressured_s=None, idle_s=None) for t in v.tasks))
            for v in reading.vertices
        ),
    )


def added(before: JobCounts, grown: JobCounts) -> JobCounts:
    """A reading after another one, with what tasks did in between."""
    vertices = tuple(
        replace(later, tasks=tuple(_sum(a, b) for a, b in zip(earlier.tasks, later.tasks, strict=True)))
        for earlier, later in zip(before.vertices, grown.vertices, strict=True)
    )
    return replace(grown, time_s=before.time_s + grown.time_s, vertices=vertices)


def _sum(before: TaskCounts, grown: TaskCounts) -> TaskCounts:
    names = ("records_in", "records_out", "bytes_out", "busy_s", "backpressured_s", "idle_s", "emitted")
    sums = {n: (getattr(before, n) or 0.0) + getattr(grown, n) for n in names if getattr(grown, n) is not None}
    return replace(grown, **sums)
