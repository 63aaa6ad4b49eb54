"""What a calendar schedules around an instant: the weeks that are stored, and those to come as they would be made now.

Nothing is stored. A week that has passed without a stored schedule is left out, since its calendar was not followed.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from zoneinfo import ZoneInfo

from models.calendar.rules import instant
from models.calendar.schedule import ScheduledRate
from pipelines.calendar.scheduling import JobCalendar, WeekSchedule, week_before, week_key
from pipelines.store.workspace import Workspace


@dataclass(frozen=True)
class TimelineEntry:
    """A scheduled rate, with the time that it has between its neighbours; UTC."""

    scheduled: ScheduledRate
    """As its week has it, so that it names the change that is asked for."""
    due_at: datetime
    """When its replan begins: at the begin of its week, if its week was made without the one before."""
    ends_at: datetime

    @property
    def is_cut(self) -> bool:
        """Whether it began before the first week that is known."""
        return self.scheduled.starts_at < self.due_at

    def clipped(self, begin: datetime, end: datetime) -> ScheduledRate | None:
        """Its part in a time; None if it has none."""
        first, last = max(self.due_at, begin), min(self.ends_at, end)
        return self.scheduled.model_copy(update={"starts_at": first, "ends_at": last}) if first < last else None


@dataclass(frozen=True)
class Timeline:
    """The scheduled rates from the week before an instant's to the end of a later week, without gaps."""

    week: WeekSchedule
    """That of the instant."""
    is_stored: bool
    """Whether it is stored from the present calendar, as it is while the calendar is followed."""
    entries: tuple[TimelineEntry, ...]

    def between(self, begin: datetime, end: datetime) -> list[ScheduledRate]:
        """The parts in a time."""
        return [part for one in self.entries if (part := one.clipped(begin, end)) is not None]


def timeline(
    workspace: Workspace, calendar: JobCalendar, inputs: dict[str, str], now: datetime, until: datetime
) -> Timeline:
    """The scheduled rates around `now`, to the end of the week of `until` at least.

    Args:
        inputs: digests of what schedules are made from, by name.
        now, until: UTC.

    Raises:
        InvalidInput, Damaged: the season cannot be learnt.
    """
    monday = calendar.monday(now)
    before = week_before(workspace, calendar, monday)
    stored = workspace.output_from(week_key(calendar, monday), inputs, WeekSchedule)
    week = latest = stored or calendar.week(monday, before)
    weeks = [*([before] if before is not None and stored is not None else []), week]
    while (monday := calendar.next_monday(monday)) <= until:
        latest = calendar.week(monday, latest)
        weeks.append(latest)
    return Timeline(week, stored is not None, tuple(_joined(weeks, monday)))


def _joined(weeks: list[WeekSchedule], end: datetime) -> list[TimelineEntry]:
    found: list[TimelineEntry] = []
    edges = [*map(_monday, weeks), end]
    for week, first, last in zip(weeks, edges, edges[1:], strict=False):
        for one in week.intervals:
            due_at, ends_at = max(one.starts_at, first), min(one.ends_at, last)
            if due_at >= ends_at:
                continue
            if found and _same(found[-1].scheduled, one):
                found[-1] = replace(found[-1], ends_at=ends_at)
            else:
                found.append(TimelineEntry(one, due_at, ends_at))
    return found


def _same(one: ScheduledRate, other: ScheduledRate) -> bool:
    return (one.starts_at, one.rate) == (other.starts_at, other.rate)


def _monday(week: WeekSchedule) -> datetime:
    return instant(datetime(week.week.year, week.week.month, week.week.day), ZoneInfo(week.time_zone))
