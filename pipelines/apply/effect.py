"""A job's observed rates and busyness, from Flink's counters, beside the predictions of its plan.

Each task counts its own time: it is always busy, backpressured or idle. Rates and shares are relative to that time, and
do not depend on how late Flink reports the counters.
"""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from flink_client.jobs.deployment import RunningJob, RunningVertex
from flink_client.jobs.running import running_job
from flink_client.metrics.readings import BUSY_TIME, TIMES
from flink_client.rest.answers import flinks_answers
from flink_client.rest.client import FlinkRest
from flink_client.rest.waiting import wait_for
from models.errors import SluiceError
from models.plan.content import Plan
from models.plan.parts import OperatorPlan
from pipelines.apply.applied import Effect, VertexChange, VertexEffect

BEFORE_S: Final = 15.0
"""Longest observation of the job before the change, seconds."""
SETTLE_S: Final = 15.0
"""Longest pause before the observation after the change, in which tasks warm up and catch up, seconds."""
_BACKPRESSURED: Final = TIMES[1]
_IN: Final = "numRecordsIn"
_SOURCE_OUT: Final = re.compile(r"\d+\.(Source__.*\.numRecordsOut)")
"""Records emitted by a source, even if other operators are chained to it."""
_FIRST_NEWS_S: Final = 30.0
_COMPLETE_S: Final = 10.0
"""How long to wait for all counters; old sources never report their busy time."""
_READ_EVERY_S: Final = 1.0
"""Polling interval: Flink only refreshes metrics that are requested."""

Tasks = Sequence[Mapping[str, float]]
"""Counters of each task of a vertex."""
VertexCounters = Mapping[str, Tasks]
"""The same by vertex id."""


class Applicable(Protocol):
    """A plan, and the vertices that it changes."""

    @property
    def plan(self) -> Plan: ...

    @property
    def changes(self) -> tuple[VertexChange, ...]: ...


def observed(
    rest: FlinkRest, preparation: Applicable, job_id: str | None, seconds: float, say: Callable[[str], None]
) -> Effect | None:
    """Observe a job, if it is known and there is time for it; a failed observation is said, and is no failure of the plan."""
    if job_id is None or seconds <= 0:
        return None
    say(f"observing for {seconds:g} s")
    try:
        with flinks_answers(rest.url):
            return observe(rest, preparation, job_id, seconds)
    except SluiceError as error:
        say(f"the job was not observed: {error}")
        return None


def observe(rest: FlinkRest, preparation: Applicable, job_id: str, seconds: float) -> Effect:
    """Observe a job for `seconds`.

    Raises:
        SluiceError: it stopped running, or Flink does not report its counters.
    """
    job, plan = running_job(rest, job_id), preparation.plan
    operators = {v.id: _operators(preparation, v) for v in job.vertices}
    names = {
        v.id: (*TIMES, *_records(rest, job, v, plan, operators[v.id]))
        for v in job.vertices
        if operators[v.id] and not v.is_done
    }

    def read() -> VertexCounters:
        return {v.id: _running_tasks(rest, job, v, names[v.id]) for v in job.vertices if v.id in names}

    first, last = _watched(read, names, seconds)
    return effect_of(plan, seconds, [(operators[v.id], first[v.id], last[v.id]) for v in job.vertices if v.id in names])


def _watched(
    read: Callable[[], VertexCounters], names: Mapping[str, Sequence[str]], seconds: float
) -> tuple[VertexCounters, VertexCounters]:
    """Readings at the begin and the end of a window in which no counter went backwards.

    For a moment after a change Flink still reports the counters of the former tasks; the window then starts again.

    Raises:
        SluiceError: counters repeatedly go backwards.
    """
    first = last = _first_reading(read, names)
    begin = time.monotonic()
    latest_begin = begin + _FIRST_NEWS_S
    while time.monotonic() < begin + seconds:
        time.sleep(_READ_EVERY_S)
        before, last = last, read()
        if _went_back(before, last):
            first = last = _first_reading(read, names)
            begin = time.monotonic()
            if begin > latest_begin:
                raise SluiceError("tasks of the job were restarted repeatedly while it was observed")
    return first, last


def _went_back(before: VertexCounters, after: VertexCounters) -> bool:
    """Busy time may go backwards by itself: it is the rest after Flink updates the other times."""
    pairs = ((old, new) for id_ in before for old, new in zip(before[id_], after[id_], strict=True))
    return any(new[name] < old[name] for old, new in pairs for name in old.keys() & new.keys() - {BUSY_TIME})


def _first_reading(read: Callable[[], VertexCounters], names: Mapping[str, Sequence[str]]) -> VertexCounters:
    """A complete reading, or an incomplete one if Flink keeps leaving something out.

    Raises:
        SluiceError: no time is counted.
    """
    patient_until = time.monotonic() + _COMPLETE_S

    def complete() -> VertexCounters | None:
        reading = read()
        needed = names if time.monotonic() < patient_until else dict.fromkeys(names, TIMES[1:])
        return (
            reading if all(n in task for id_, tasks in reading.items() for task in tasks for n in needed[id_]) else None
        )

    return wait_for(complete, _FIRST_NEWS_S, "the counters of the job", pause_s=_READ_EVERY_S)


def _running_tasks(rest: FlinkRest, job: RunningJob, vertex: RunningVertex, names: Sequence[str]) -> Tasks:
    """Counters of the tasks that had not finished when the observation began."""
    tasks = rest.vertex_metrics(job.id, vertex.id, names, vertex.parallelism)
    return [values for task, values in enumerate(tasks) if task not in vertex.finished]


def _operators(preparation: Applicable, vertex: RunningVertex) -> tuple[str, ...]:
    return next((c.operators for c in preparation.changes if c.vertex == vertex.id), ())


def _records(
    rest: FlinkRest, job: RunningJob, vertex: RunningVertex, plan: Plan, operators: tuple[str, ...]
) -> tuple[str, ...]:
    """Counters whose sum is the input of a vertex, or the output of a source."""
    if operators[0] not in plan.source_rates:
        return (_IN,)
    found = map(_SOURCE_OUT.fullmatch, rest.metric_names(job.id, vertex.id))
    return tuple(sorted({match[1] for match in found if match}))


def effect_of(plan: Plan, seconds: float, vertices: Sequence[tuple[tuple[str, ...], Tasks, Tasks]]) -> Effect:
    """The effect between two readings.

    Args:
        vertices: the operators of each, and the counters of its tasks at the begin and at the end of the window.
    """
    measured = [(operators, *_measured(first, last)) for operators, first, last in vertices]
    sources = [records for operators, records, _, _ in measured if operators[0] in plan.source_rates]
    rate = sum(r for r in sources if r is not None) if sources and None not in sources else None
    planned = {o.name: o for o in plan.operators}
    return Effect(
        window_s=seconds,
        rate=rate,
        target_rate=plan.target_rate,
        vertices=tuple(
            _vertex_effect([planned[name] for name in operators], plan.target_rate, rate, records, busy, backpressured)
            for operators, records, busy, backpressured in measured
        ),
    )


def _measured(first: Tasks, last: Tasks) -> tuple[float | None, float | None, float | None]:
    """Records/s of all tasks, mean busyness and backpressure; None where a counter is missing."""
    records, busy, backpressured = 0.0, 0.0, 0.0
    knows_records = True
    for before, after in zip(first, last, strict=True):
        grown = {name: after[name] - before[name] for name in before if name in after}
        if any(name not in grown for name in TIMES):
            return None, None, None
        counted_s = sum(grown[name] for name in TIMES) / 1000
        counters = grown.keys() - set(TIMES)
        if counted_s <= 0 or any(grown[name] < 0 for name in counters):
            raise SluiceError("Flink's counters did not grow, or a task was restarted while it was observed")
        knows_records = knows_records and bool(counters)
        records += sum(grown[name] for name in counters) / counted_s
        busy += max(0.0, grown[BUSY_TIME]) / 1000 / counted_s / len(first)
        backpressured += grown[_BACKPRESSURED] / 1000 / counted_s / len(first)
    return records if knows_records else None, min(1.0, busy), min(1.0, backpressured)


def _vertex_effect(
    planned: Sequence[OperatorPlan],
    target_rate: float,
    rate: float | None,
    records: float | None,
    busy: float | None,
    backpressured: float | None,
) -> VertexEffect:
    """Predictions apply to the target rate, and are scaled in proportion to another one."""
    share = None if rate is None else rate / target_rate
    return VertexEffect(
        operators=tuple(o.name for o in planned),
        records_in_per_s=records,
        expected_records_in_per_s=None if share is None else planned[0].records_in_per_s * share,
        busyness=busy,
        expected_busyness=None if share is None else min(1.0, sum(o.predicted_busyness for o in planned) * share),
        backpressure=backpressured,
    )
