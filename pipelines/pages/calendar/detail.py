"""The calendar of a job: what it schedules, what became of that, and what it costs and saves. Nothing is stored."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Self

from pydantic import Field

from models.calendar.demand import on_grid
from models.calendar.schedule import ScheduledRate
from models.calendar.season import Period
from models.errors import SluiceError
from models.schema import Format
from pipelines.calendar.costs import ScheduleCost, SizedRate, cost_of
from pipelines.calendar.in_force import PlansInForce, cost_in_force, plans_in_force, plans_since
from pipelines.calendar.record import changes_since
from pipelines.calendar.scheduling import JobCalendar, calendar_of_plan, inputs_of
from pipelines.calendar.timeline import Timeline, timeline
from pipelines.pages.calendar.changes import ChangeRecords, ScheduledChange, scheduled_change
from pipelines.pages.calendar.terms import MOST_TERMS, CalendarEvent, CalendarFreeze, coming_events, coming_freezes
from pipelines.pages.versions import versions_of
from pipelines.rates.record import is_taken
from pipelines.store.pins import pin_of
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Damaged, Workspace

DAYS: Final = 7
"""Days to come, and days gone by, that the page is about."""
SizesOf = Callable[[Workspace, str, Sequence[float]], Mapping[float, SizedRate]]
"""What the plan for each rate takes; raises SluiceError where that is unknown."""


class CostComparison(Format):
    """What a time costs, beside the plan for its highest rate all that time."""

    begin: datetime = Field(description="ISO 8601, UTC.")
    end: datetime
    hours: float = Field(description="Hours of that time for which the plan is known.")
    peak_rate: float = Field(description="The highest rate planned for, records/s.")
    slot_hours: float
    peak_slot_hours: float
    saved_slot_hours: float = Field(description="Below 0 where the highest rate's plan takes fewer slots than others.")
    saved_share: float = Field(description="Of the slot hours of the highest rate's plan.")
    dollars: float | None = Field(description="USD; None where a price is unknown.")
    peak_dollars: float | None
    saved_dollars: float | None

    @classmethod
    def of(cls, cost: ScheduleCost, begin: datetime, end: datetime, hours: float, peak_rate: float) -> Self:
        return cls(
            begin=begin,
            end=end,
            hours=hours,
            peak_rate=peak_rate,
            slot_hours=cost.slot_hours,
            peak_slot_hours=cost.peak_slot_hours,
            saved_slot_hours=cost.peak_slot_hours - cost.slot_hours,
            saved_share=cost.saved_share,
            dollars=cost.dollars,
            peak_dollars=cost.peak_dollars,
            saved_dollars=cost.saved_dollars,
        )


class CalendarSchedule(Format):
    """What a calendar schedules, and what became of that."""

    time_zone: str = Field(description="IANA time zone of the calendar.")
    season: Period = Field(description="Period of the rate.")
    season_from: str = Field(description="What the season was learnt from, in words.")
    before_s: float = Field(description="How long before a rise its plan is in force, seconds.")
    rescale_s: float = Field(description="Time of a change, by which it begins earlier still, seconds.")
    is_followed: bool = Field(
        description="Whether the week's schedule is stored, as it is while the calendar is followed."
    )
    obstacle: str | None = Field(description="Why no change is asked for now; None if nothing is known to keep it.")
    changes: tuple[ScheduledChange, ...] = Field(description="The latest change that was due, and those to come.")
    past: tuple[ScheduledChange, ...] = Field(description="Changes of the days gone by, the newest first.")
    events: tuple[CalendarEvent, ...] = Field(description=f"Those that are not over, at most {MOST_TERMS}.")
    more_events: int = Field(description="Events that are not listed.")
    freezes: tuple[CalendarFreeze, ...] = Field(description=f"Those that are not over, at most {MOST_TERMS}.")
    more_freezes: int
    forecast: CostComparison | None = Field(description="Of the days to come; None where it is unknown.")
    forecast_unknown: str | None = Field(description="Why it is unknown.")
    spent: CostComparison | None = Field(description="Of the days gone by; None where no version was in force.")
    has_prices: bool = Field(description="Whether any price is known.")
    are_applied: bool = Field(
        description="Whether a version counts from its application to Flink, else from its publication."
    )


class CalendarDetail(Format):
    """The content of the page."""

    job: str
    schedule: CalendarSchedule | None = Field(description="None if the job's file has no calendar, or for the fault.")
    fault: str | None = Field(description="Why the calendar cannot be shown.")
    faults: tuple[str, ...] = Field((), description="What else could not be read, and why.")


@dataclass(frozen=True)
class Around:
    """The calendar of a job around an instant."""

    calendar: JobCalendar
    timeline: Timeline
    now: datetime
    """UTC, on the grid."""
    until: datetime

    @property
    def coming(self) -> list[ScheduledRate]:
        """The intervals of the days to come."""
        return self.timeline.between(self.now, self.until)


def around(workspace: Workspace, job: str, now: datetime) -> Around | None:
    """The calendar of a job that has a plan; None if its file has none.

    Raises:
        InvalidInput: no job with a plan has that name; its file or its history is wrong.
        Damaged: all versions are damaged, or samples are.
    """
    store = PlanStore(workspace)
    versions_of(store, job)
    found = calendar_of_plan(workspace, store.current(job))
    if found is None:
        return None
    _, calendar, folder = found
    begin = on_grid(now)
    until = begin + timedelta(days=DAYS)
    return Around(calendar, timeline(workspace, calendar, inputs_of(calendar, folder), begin, until), begin, until)


def calendar_detail(workspace: Workspace, job: str, now: datetime, sizes_of: SizesOf) -> CalendarDetail:
    """Read what the page shows.

    Args:
        now: UTC.

    Raises:
        InvalidInput: no job with a plan has that name; other faults are in the answer.
    """
    versions_of(PlanStore(workspace), job)
    try:
        found = around(workspace, job, now)
        if found is None:
            return CalendarDetail(job=job, schedule=None, fault=None)
        return _shown(workspace, found, now, sizes_of)
    except (SluiceError, OSError) as error:
        return CalendarDetail(job=job, schedule=None, fault=str(error))


def _shown(workspace: Workspace, found: Around, now: datetime, sizes_of: SizesOf) -> CalendarDetail:
    rules, week, begin = found.calendar.rules, found.timeline.week, now - timedelta(days=DAYS)
    records, faults = _records(workspace, found, begin, now)
    sized, forecast, unknown = _forecast(workspace, found, sizes_of)
    listed = [
        scheduled_change(one, records, sized, now, week.rescale_s, rules.zone)
        for one in found.timeline.entries
        if one.due_at < found.until and (one.ends_at > now or (found.timeline.is_stored and not one.is_cut))
    ]
    spent = _spent(records.in_force, begin, now)
    costs = [one.dollars for one in (forecast, spent) if one is not None]
    events, freezes = coming_events(rules, now), coming_freezes(rules, now)
    schedule = CalendarSchedule(
        time_zone=rules.time_zone,
        season=week.season,
        season_from=week.season_from,
        before_s=week.before_s,
        rescale_s=week.rescale_s,
        is_followed=found.timeline.is_stored,
        obstacle=records.obstacle,
        changes=tuple(one for one in listed if one.ends_at > now),
        past=tuple(one for one in reversed(listed) if begin < one.due_at and one.ends_at <= now),
        events=tuple(events[:MOST_TERMS]),
        more_events=max(0, len(events) - MOST_TERMS),
        freezes=tuple(freezes[:MOST_TERMS]),
        more_freezes=max(0, len(freezes) - MOST_TERMS),
        forecast=forecast,
        forecast_unknown=unknown,
        spent=spent,
        has_prices=any(price is not None for price in (*costs, *(one.price_per_hour for one in listed))),
        are_applied=records.in_force.are_applied,
    )
    return CalendarDetail(job=found.calendar.job, schedule=schedule, fault=None, faults=faults)


def _records(
    workspace: Workspace, found: Around, begin: datetime, now: datetime
) -> tuple[ChangeRecords, tuple[str, ...]]:
    """What is stored of the changes, and the faults of what is damaged."""
    job = found.calendar.job
    recent = plans_since(workspace, job, begin)
    in_force = plans_in_force(workspace, job, recent, begin, now)
    faults = [*in_force.faults]
    asked = changes_since(workspace, job, min(one.scheduled.starts_at for one in found.timeline.entries))
    obstacle = f"the calendar of {job} is frozen" if found.calendar.is_frozen(now) else None
    try:
        if (pin := pin_of(workspace, job)) is not None:
            obstacle = str(pin)
    except Damaged as error:
        faults.append(str(error))
    taken = frozenset(key for key in asked if is_taken(workspace, key))
    return ChangeRecords(job, asked, taken, recent.plans, in_force, obstacle), tuple(faults)


def _forecast(
    workspace: Workspace, found: Around, sizes_of: SizesOf
) -> tuple[Mapping[float, SizedRate], CostComparison | None, str | None]:
    """What each rate takes, what the days to come cost, and why that is unknown."""
    intervals = found.coming
    rates = [one.rate for one in intervals]
    try:
        sized = sizes_of(workspace, found.calendar.job, rates)
    except SluiceError as error:
        return {}, None, str(error)
    cost = cost_of(intervals, sized)
    if cost is None:
        return sized, None, next((size.why_not for size in sized.values() if size.why_not), None)
    hours = sum(one.hours for one in intervals)
    return sized, CostComparison.of(cost, found.now, found.until, hours, max(rates)), None


def _spent(in_force: PlansInForce, begin: datetime, end: datetime) -> CostComparison | None:
    cost = cost_in_force(in_force.periods)
    if cost is None:
        return None
    hours = sum(one.hours for one in in_force.periods)
    return CostComparison.of(cost, begin, end, hours, max(one.rate for one in in_force.periods))
