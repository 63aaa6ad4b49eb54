"""The gauges of an autopilot: name, meaning and value of each. An unknown value has no sample."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from pipelines.control.files import AutopilotState
from pipelines.control.record import AutopilotDecision, PolicyOutlook, SeenJob, SeenVertex
from pipelines.pages.autopilot.detail import budget_spent

PREFIX: Final = "sluice_autopilot"
MIB: Final = 1024.0 * 1024.0
Labelled = tuple[tuple[str, ...], float]
"""Values of the labels after that of the job, and the sample."""


@dataclass(frozen=True)
class PilotMeasure:
    """A gauge."""

    name: str
    """Without the prefix."""
    meaning: str
    labels: tuple[str, ...]
    """After that of the job."""
    samples: Callable[[AutopilotState], Iterable[Labelled]]


def _of_state(name: str, meaning: str, value: Callable[[AutopilotState], float | None]) -> PilotMeasure:
    return PilotMeasure(name, meaning, (), lambda state: _known(value(state)))


def _of_newest(name: str, meaning: str, value: Callable[[AutopilotDecision], float | None]) -> PilotMeasure:
    return _of_state(name, meaning, lambda state: None if state.newest is None else value(state.newest))


def _of_job(name: str, meaning: str, value: Callable[[SeenJob], float | None]) -> PilotMeasure:
    return _of_newest(name, meaning, lambda newest: value(newest.seen))


def _of_outlook(name: str, meaning: str, value: Callable[[PolicyOutlook], float | None]) -> PilotMeasure:
    return _of_newest(name, meaning, lambda newest: None if newest.outlook is None else value(newest.outlook))


def _of_vertex(name: str, meaning: str, value: Callable[[SeenVertex], float | None]) -> PilotMeasure:
    def samples(state: AutopilotState) -> Iterator[Labelled]:
        for vertex, seen in ({} if state.newest is None else state.newest.seen.vertices).items():
            yield from (((vertex,), one) for _, one in _known(value(seen)))

    return PilotMeasure(name, meaning, ("vertex",), samples)


def _forecast(state: AutopilotState) -> Iterator[Labelled]:
    outlook = None if state.newest is None else state.newest.outlook
    if outlook is not None:
        yield ("low",), outlook.low
        yield ("high",), outlook.high


def _known(value: float | None) -> list[Labelled]:
    return [] if value is None else [((), float(value))]


OF_RUNNING: Final = (
    _of_job("arriving_records_per_second", "Records/s that arrive at the sources.", lambda s: s.arriving_rate),
    _of_job("read_records_per_second", "Records/s that the sources read.", lambda s: s.read_rate),
    _of_job("lag_records", "Records that wait before the sources.", lambda s: s.lag_records),
    _of_job("lag_seconds", "How long catching up would take, if nothing new arrived.", lambda s: s.lag_s),
    _of_vertex("tasks", "Tasks of a vertex.", lambda v: v.tasks),
    _of_vertex("busy_ratio", "Mean share of time that the tasks of a vertex are busy.", lambda v: v.busyness),
    _of_vertex("busiest_task_ratio", "The same of its busiest task.", lambda v: v.max_busyness),
    _of_job("slots", "Task slots that the job takes.", lambda s: s.slots),
    _of_job("slots_reachable", "Task slots that the job holds or that are free.", lambda s: s.slots_there),
    _of_job("price_dollars_per_hour", "Price of the job's task slots.", lambda s: s.price_per_hour),
    _of_job("state_bytes", "State in the last checkpoint.", lambda s: None if s.state_mb is None else s.state_mb * MIB),
    _of_job("metrics_age_seconds", "Age of the newest metrics of the job.", lambda s: s.staleness_s),
    PilotMeasure(
        "forecast_records_per_second",
        "Band in which the policy expects the mean arriving rate over its horizon.",
        ("bound",),
        _forecast,
    ),
    _of_outlook("forecast_horizon_seconds", "Time that the forecast is for, from now.", lambda o: o.horizon_s),
    _of_outlook("capacity_records_per_second", "Records/s that the running tasks can take.", lambda o: o.capacity),
    _of_outlook("late_ratio", "Share of the records that were late so far.", lambda o: o.late_share),
    _of_newest("lateness_budget_spent_ratio", "Late records over those that may be late.", budget_spent),
)
"""Of what was seen last; without samples while the autopilot does not run."""

OF_STATE: Final = (
    _of_state("beat_timestamp_seconds", "When the autopilot last wrote its state.", lambda s: s.beat_at.timestamp()),
    _of_newest("decided_timestamp_seconds", "When its newest round was.", lambda d: d.decided_at.timestamp()),
    _of_state("dry_run", "1 if it changes nothing.", lambda s: float(s.dry_run)),
    _of_state("day_rescales", "Rescales in the last 24 hours.", lambda s: s.rescales_in_a_day),
    _of_state(
        "day_rescales_failed", "Those of them that failed or were rolled back.", lambda s: s.rolled_back_in_a_day
    ),
    _of_state("day_rescales_limit", "Most rescales in 24 hours.", lambda s: s.limits.rescales_a_day),
    _of_state("price_limit_dollars_per_hour", "Most that the job may cost.", lambda s: s.limits.dollars_per_hour),
)
"""Of the autopilot itself; with samples after it has ended, too."""
