"""Rate and load of the source tasks of a running job, by Flink's own meters (averages over a minute).

A source operator may emit more or fewer records than it reads, as its deserializer drops or flattens them. Its pending
records are records to be read, and are converted to records that it will emit.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Final

from flink_client.jobs.deployment import RunningVertex
from flink_client.jobs.running import running_job
from flink_client.rest.answers import flinks_answers
from flink_client.rest.client import FlinkRest
from models.errors import SluiceError
from models.scaling.decisions.overload import METER_S, SourceLoad, SourceReading

METER: Final = "numRecordsOutPerSecond"
_BUSY: Final = "busyTimeMsPerSecond"
_BACKPRESSURED: Final = "backPressuredTimeMsPerSecond"
_READ: Final = "numRecordsIn"
_EMITTED: Final = "numRecordsOut"
_OF_SOURCE: Final = re.compile(rf"\d+\.(Source__.*\.){METER}")
"""The source's own meter, if other operators are chained to it."""
_UNKNOWN: Final = -1
"""Value of pending records that a source does not know."""
_PENDING: Final = re.compile(r"\d+\.(.*\.pendingRecords)")


def read_sources(rest: FlinkRest, job: str) -> SourceReading:
    """The rate of all sources of a job together, with the load of each; sources that have finished emit nothing more.

    Raises:
        SluiceError: the job does not run, has not run for a minute, Flink does not answer, or reports no rate (yet).
    """
    with flinks_answers(rest.url):
        running = running_job(rest, job)
        with_input = {edge.downstream for edge in rest.edges(job)}
        sources = [vertex for vertex in running.vertices if vertex.id not in with_input and not vertex.is_done]
        found = [_read(rest, job, vertex) for vertex in sources]
    if not found:
        raise SluiceError(f"all sources of job {running.name!r} have finished")
    return SourceReading(math.fsum(rate for rate, _ in found), tuple(load for _, load in found))


def _read(rest: FlinkRest, job: str, vertex: RunningVertex) -> tuple[float, SourceLoad]:
    running_s = min(t.running_s for t in rest.subtasks(job, vertex.id) if t.index not in vertex.finished)
    if running_s < METER_S:
        raise SluiceError(
            f"Flink's rates are averages over a minute, but a task of {vertex.name!r} has run for {running_s:.0f} s only"
        )
    reported = rest.metric_names(job, vertex.id)
    sources, pending = (
        tuple(sorted({m[1] for m in map(name.fullmatch, reported) if m})) for name in (_OF_SOURCE, _PENDING)
    )
    meters = tuple(f"{source}{METER}" for source in sources) or (METER,)
    read, emitted = (tuple(f"{source}{name}" for source in sources) for name in (_READ, _EMITTED))
    wanted = (*meters, *pending, *read, *emitted, _BUSY, _BACKPRESSURED)
    of_all = rest.vertex_metrics(job, vertex.id, wanted, vertex.parallelism)
    tasks = [values for task, values in enumerate(of_all) if task not in vertex.finished]
    if missing := sum(any(meter not in task for meter in meters) for task in tasks):
        raise SluiceError(f"Flink does not (yet) report {METER} for {missing} of {len(tasks)} tasks of {vertex.name!r}")
    waiting = [value for task in tasks for name in pending if (value := task.get(name, _UNKNOWN)) > _UNKNOWN]
    load = SourceLoad(
        name=vertex.name,
        busyness=_fullest(tasks, _BUSY),
        backpressure=_fullest(tasks, _BACKPRESSURED),
        pending=math.fsum(waiting) * _ratio(_sum(tasks, emitted), _sum(tasks, read)) if waiting else None,
        pending_tasks=len(waiting),
    )
    return _sum(tasks, meters), load


def _fullest(tasks: Sequence[Mapping[str, float]], meter: str) -> float | None:
    """The highest share of time; None where no task reports one, as older sources do."""
    shares = [task[meter] / 1000 for task in tasks if meter in task]
    return max(shares, default=None)


def _sum(tasks: Sequence[Mapping[str, float]], names: Sequence[str]) -> float:
    return math.fsum(task.get(name, 0.0) for task in tasks for name in names)


def _ratio(emitted: float, read: float) -> float:
    """Records emitted per record read; 1 for sources that do not count what they read."""
    return emitted / read if emitted > 0 and read > 0 else 1.0
