"""Series of a job under an autopilot over time, from its decisions: what the figures draw.

Unknown values are None, at which a line breaks; so are times for which there is no record.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from pipelines.control.record import AutopilotDecision, Done
from pipelines.pages.autopilot.detail import budget_spent

GAP_S: Final = 150.0
"""A record is due every minute; a longer time without one breaks a line, seconds."""
_SHOWN: Final[tuple[Done, ...]] = ("rescaled", "refused", "failed", "rolled-back", "dry-run")


@dataclass(frozen=True)
class TimeSeries:
    """Values over time; None where unknown."""

    name: str
    times: tuple[datetime, ...]
    values: tuple[float | None, ...]

    @property
    def is_known(self) -> bool:
        """Whether any value is known."""
        return any(value is not None for value in self.values)


@dataclass(frozen=True)
class ForecastBand:
    """Bands of the mean arriving rate, records/s, each at the middle of the time that it is for."""

    times: tuple[datetime, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True)
class RescaleMark:
    """A rescale that was tried, or in a dry run would have been."""

    at: datetime
    done: Done
    tasks: int
    """Tasks of all vertices that were wanted."""
    why: str


@dataclass(frozen=True)
class AutopilotSeries:
    """What was seen of a job, and what was done."""

    arriving: TimeSeries
    read: TimeSeries
    capacity: TimeSeries
    """Records/s that the tasks can take, as the policy knows."""
    bands: tuple[ForecastBand, ...]
    """One for each stretch of time without a gap."""
    lag_s: TimeSeries
    budget_spent: TimeSeries
    """Late records over those that may be late."""
    tasks: tuple[TimeSeries, ...]
    """By vertex."""
    slots: TimeSeries
    price: TimeSeries
    """USD per hour."""
    marks: tuple[RescaleMark, ...]


def autopilot_series(decisions: Sequence[AutopilotDecision]) -> AutopilotSeries:
    """The series of decisions that are in order of time."""
    stretches = _stretches(decisions)

    def series(name: str, value: Callable[[AutopilotDecision], float | None]) -> TimeSeries:
        return _series(name, stretches, value)

    names = dict.fromkeys(name for one in decisions for name in one.seen.vertices)
    return AutopilotSeries(
        arriving=series("arriving", lambda one: one.seen.arriving_rate),
        read=series("read", lambda one: one.seen.read_rate),
        capacity=series("capacity", lambda one: None if one.outlook is None else one.outlook.capacity),
        bands=tuple(filter(None, map(_band, stretches))),
        lag_s=series("lag", lambda one: one.seen.lag_s),
        budget_spent=series("spent", budget_spent),
        tasks=tuple(series(name, lambda one, name=name: _tasks_of(one, name)) for name in names),  # type: ignore[misc]
        slots=series("task slots", lambda one: one.seen.slots),
        price=series("price", lambda one: one.seen.price_per_hour),
        marks=tuple(_marks(decisions)),
    )


def _stretches(decisions: Sequence[AutopilotDecision]) -> list[list[AutopilotDecision]]:
    """Decisions between two gaps."""
    found: list[list[AutopilotDecision]] = []
    for one in decisions:
        if not found or (one.decided_at - found[-1][-1].decided_at).total_seconds() > GAP_S:
            found.append([])
        found[-1].append(one)
    return found


def _series(
    name: str,
    stretches: Sequence[Sequence[AutopilotDecision]],
    value: Callable[[AutopilotDecision], float | None],
) -> TimeSeries:
    times: list[datetime] = []
    values: list[float | None] = []
    for stretch in stretches:
        if times:
            times.append(times[-1] + timedelta(seconds=1))
            values.append(None)
        times += [one.decided_at for one in stretch]
        values += [value(one) for one in stretch]
    return TimeSeries(name, tuple(times), tuple(values))


def _band(stretch: Sequence[AutopilotDecision]) -> ForecastBand | None:
    known = [(one.decided_at, one.outlook) for one in stretch if one.outlook is not None]
    if not known:
        return None
    return ForecastBand(
        times=tuple(at + timedelta(seconds=outlook.horizon_s / 2) for at, outlook in known),
        low=tuple(outlook.low for _, outlook in known),
        high=tuple(outlook.high for _, outlook in known),
    )


def _tasks_of(one: AutopilotDecision, name: str) -> int | None:
    vertex = one.seen.vertices.get(name)
    return None if vertex is None else vertex.tasks


def _marks(decisions: Sequence[AutopilotDecision]) -> list[RescaleMark]:
    """One for each rescale; of dry runs that want the same again and again, one."""
    marks: list[RescaleMark] = []
    wanted: dict[str, int] | None = None
    for one in decisions:
        if one.rescale is None or one.done not in _SHOWN:
            wanted = None if one.rescale is None and one.done == "none" else wanted
            continue
        if one.done == "dry-run" and one.rescale.after == wanted:
            continue
        wanted = one.rescale.after
        marks.append(RescaleMark(one.decided_at, one.done, sum(one.rescale.after.values()), one.reason))
    return marks
