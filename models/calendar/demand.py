"""The rate to plan for over time, and when no plan may change, on a grid of GRID_S seconds.

Events and freeze windows that begin or end between two points of the grid take the whole cells that they touch.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np
from croniter import CroniterBadDateError, croniter
from numpy.typing import NDArray

from models.calendar.rules import GRID_S, Calendar, StatedEvent, instant
from models.calendar.season import Season
from models.scaling.control.limits import FreezeWindow

_CELL: Final = timedelta(seconds=GRID_S)
_DAY: Final = timedelta(days=1)
_FAR: Final = timedelta(days=9 * 366)
"""Within it every date of a calendar returns, that of a leap day too."""


@dataclass(frozen=True)
class Occurrence:
    """One time of an event."""

    event: StatedEvent
    begin: datetime
    """UTC."""
    end: datetime


@dataclass(frozen=True)
class ExpectedRates:
    """What is expected to arrive, cell by cell."""

    begin: datetime
    """UTC, a multiple of the grid."""
    rates: NDArray[np.float64]
    """Records/s at the sources together."""
    causes: tuple[Occurrence | None, ...]
    """The event that decides the rate of each cell; None where it is the season."""


def cells(seconds: float) -> int:
    """Cells of the grid that cover a time."""
    return math.ceil(seconds / GRID_S - 1e-9)


def on_grid(at: datetime) -> datetime:
    """The last point of the grid that is not later, UTC."""
    return datetime.fromtimestamp(at.timestamp() // GRID_S * GRID_S, UTC)


def demand(calendar: Calendar, season: Season, begin: datetime, count: int) -> ExpectedRates:
    """The rates of the season, with those of events where they decide.

    Args:
        begin: on the grid, UTC.
        count: number of cells.
    """
    zone = calendar.zone
    base = np.array([season.at((begin + i * _CELL).astimezone(zone)) for i in range(count)])
    expected: list[float | None] = [None] * count
    causes: list[Occurrence | None] = [None] * count
    for one in occurrences(calendar, begin, begin + count * _CELL):
        for i in _span(one.begin, one.end, begin, count):
            rate = max(one.event.rate, base[i]) if one.event.rate is not None else (one.event.factor or 1.0) * base[i]
            known = expected[i]
            if known is None or rate > known:
                expected[i], causes[i] = float(rate), one
    rates = np.array([base[i] if rate is None else rate for i, rate in enumerate(expected)])
    return ExpectedRates(begin, rates, tuple(causes))


def occurrences(calendar: Calendar, begin: datetime, end: datetime) -> list[Occurrence]:
    """The events of a time, by their begin; those that reach into it included.

    Args:
        begin, end: UTC.
    """
    found = [one for event in calendar.events for one in _times(event, calendar, begin, end)]
    return sorted((one for one in found if one.end > begin and one.begin < end), key=lambda one: one.begin)


def next_time(event: StatedEvent, calendar: Calendar, at: datetime) -> Occurrence | None:
    """The time of an event that is not over at an instant (UTC): the present one, else the next; None if there is none."""
    return next((one for one in _times(event, calendar, at, at + _FAR) if one.end > at), None)


def _times(event: StatedEvent, calendar: Calendar, begin: datetime, end: datetime) -> Iterator[Occurrence]:
    zone = calendar.zone
    length = timedelta(seconds=event.duration_s or 0.0)
    if event.start is not None:
        first = instant(event.start, zone)
        yield Occurrence(event, first, first + length if event.end is None else instant(event.end, zone, last=True))
        return
    # On the wall clock, which may differ from UTC by up to a day in either direction.
    clock = croniter(event.cron, (begin - length - _DAY).astimezone(zone).replace(tzinfo=None))
    while True:
        try:
            local: datetime = clock.get_next(datetime)
        except CroniterBadDateError:
            return
        first = instant(local, zone)
        if first >= end + _DAY:
            return
        yield Occurrence(event, first, first + length)


def frozen(calendar: Calendar, begin: datetime, count: int) -> NDArray[np.bool_]:
    """Whether no plan may change in a cell, bool[count]."""
    found = np.zeros(count, dtype=np.bool_)
    for dated in calendar.freeze_dates:
        first, last = instant(dated.begin, calendar.zone), instant(dated.end, calendar.zone, last=True)
        found[list(_span(first, last, begin, count))] = True
    for window in calendar.freeze:
        for first, last in openings(window, begin, begin + count * _CELL):
            found[list(_span(first, last, begin, count))] = True
    return found


def openings(window: FreezeWindow, begin: datetime, end: datetime) -> Iterator[tuple[datetime, datetime]]:
    """When a window of every day begins and ends, UTC, from a day before `begin` to `end`."""
    day = (begin - _DAY).date()
    while day <= end.date():
        first = datetime.combine(day, window.begin, UTC)
        last = datetime.combine(day, window.end, UTC)
        yield first, last if last > first else last + _DAY
        day += _DAY


def _span(first: datetime, last: datetime, begin: datetime, count: int) -> range:
    """The cells that a time touches."""
    low = math.floor((first - begin) / _CELL)
    high = math.ceil((last - begin) / _CELL)
    return range(max(0, low), max(0, min(count, high)))
