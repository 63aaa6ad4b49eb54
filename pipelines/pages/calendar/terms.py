"""The events and freeze windows of a calendar that are not over."""

from datetime import datetime, timedelta
from typing import Final

from pydantic import Field

from models.calendar.demand import Occurrence, next_time, openings
from models.calendar.rules import Calendar, StatedEvent, instant
from models.schema import Format
from models.wording import amount

MOST_TERMS: Final = 50
"""Events, or freezes, that are listed."""
_DAY: Final = timedelta(days=1)


class CalendarEvent(Format):
    """A stated event, and its present or next time."""

    name: str
    begin: datetime = Field(description="ISO 8601, UTC.")
    end: datetime
    effect: str = Field(description="What it does to the rate, in words.")
    cron: str | None = Field(description="When it is repeated; None for one that is once.")


class CalendarFreeze(Format):
    """A time in which no plan changes."""

    begin: datetime = Field(description="ISO 8601, UTC; of a window of every day the present or next time.")
    end: datetime
    daily: str | None = Field(description="The window of every day, in words; None for one with dates.")


def coming_events(calendar: Calendar, now: datetime) -> list[CalendarEvent]:
    """The events that are not over by their begin, of a repeated one the present or next time."""
    found = [one for event in calendar.events if (one := next_time(event, calendar, now)) is not None]
    return [_event(one) for one in sorted(found, key=lambda one: one.begin)]


def coming_freezes(calendar: Calendar, now: datetime) -> list[CalendarFreeze]:
    """The freezes that are not over by their begin, of each daily window the present or next time."""
    found = [
        CalendarFreeze(begin=instant(one.begin, calendar.zone), end=last, daily=None)
        for one in calendar.freeze_dates
        if (last := instant(one.end, calendar.zone, last=True)) > now
    ]
    for window in calendar.freeze:
        first, last = next(one for one in openings(window, now, now + 2 * _DAY) if one[1] > now)
        found.append(CalendarFreeze(begin=first, end=last, daily=str(window)))
    return sorted(found, key=lambda one: one.begin)


def _event(one: Occurrence) -> CalendarEvent:
    return CalendarEvent(
        name=one.event.name, begin=one.begin, end=one.end, effect=_effect(one.event), cron=one.event.cron
    )


def _effect(event: StatedEvent) -> str:
    if event.rate is not None:
        return f"at least {amount(event.rate)} records/s"
    return f"{event.factor:g} times the season"
