"""The schedule of a job's calendar, week by week: calendar/<job>/2026-11-23.json, named by its Monday.

Each week's schedule is stored once it is needed, and stays unless the calendar or its history file changes. It begins with the
interval that the week before ended with, so that the shortest time between changes, and freezes, hold over midnight before
Monday, too.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Final, Literal

from pydantic import Field

from models.calendar.demand import frozen, on_grid
from models.calendar.rules import Calendar, instant
from models.calendar.schedule import ScheduledRate, in_force, schedule
from models.calendar.season import Period, Season, learn
from models.errors import InvalidInput
from models.job import Job
from models.plan.content import Plan
from models.schema import SCHEMA_VERSION, Format, Name, NonNegative, Positive
from pipelines.apply.record import recorded
from pipelines.calendar.history import RateHistory, history_from_csv, history_from_samples
from pipelines.inputs.job_files import operations_of
from pipelines.inputs.operations.operations import Operations
from pipelines.planning.planned_job import file_beside, job_of
from pipelines.store.digests import digest, digest_bytes
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Damaged, Missing, Workspace

FOLDER: Final = "calendar"
_DAY, _WEEK = timedelta(days=1), timedelta(days=7)
REPLAN_S: Final = 120.0
"""From the time of a scheduled change to a plan that is being applied: polling, a DAG run, the replan, the rehearsal."""
RECENT_PLANS: Final = 10
"""Versions whose applications show how long one takes."""


class WeekSchedule(Format):
    """The rates to plan for in one week."""

    schema_version: Literal[1] = Field(SCHEMA_VERSION, description="Version of this format.")
    job: Name = Field(description="Job of the calendar.")
    week: date = Field(description="Monday that it begins at, in the time zone.")
    time_zone: str = Field(description="IANA time zone of the calendar.")
    season: Period = Field(description="Period of the rate.")
    season_from: str = Field(description="What the season was learnt from, in words.")
    before_s: NonNegative = Field(description="How long before a rise its plan is in force, seconds.")
    rescale_s: Positive = Field(description="Time of a change, by which it begins earlier still, seconds.")
    intervals: tuple[ScheduledRate, ...] = Field(
        min_length=1, description="From the one that runs as the week begins, to beyond its end."
    )


@dataclass(frozen=True)
class JobCalendar:
    """The calendar of a job, with what its schedules are made from."""

    job: str
    rules: Calendar
    rescale_s: float
    season: Callable[[], tuple[Season, str]]
    """Learns it; and what from, in words."""

    @classmethod
    def of(cls, workspace: Workspace, job: Job, folder: Path, rates: Path | None = None) -> "JobCalendar":
        """That of a job's file.

        Args:
            folder: of the job's file.
            rates: a history, instead of the one that the file names.

        Raises:
            InvalidInput: the file has no calendar.
        """
        operations = operations_of(job)
        rules = operations.calendar
        if rules is None:
            raise InvalidInput(
                f"the file of {job.name!r} has no calendar; add operations.calendar with events, or with a history of its rate"
            )
        path = rates or (None if rules.history is None else folder / rules.history)

        @functools.cache  # several weeks, and a plot, need it, and samples are many files
        def learnt() -> tuple[Season, str]:
            if path is None and rules.base_rate is not None:
                return Season.flat(rules.base_rate, rules.step_s), "the base rate of the calendar"
            history = history_from_samples(workspace, job) if path is None else history_from_csv(path, rules.zone)
            return _season(history, rules)

        return cls(job.name, rules, rescale_time_s(workspace, job.name, operations), learnt)

    def monday(self, at: datetime) -> datetime:
        """When the week of an instant begins, UTC."""
        local = at.astimezone(self.rules.zone)
        midnight = datetime(local.year, local.month, local.day) - timedelta(days=local.weekday())
        return instant(midnight, self.rules.zone)

    def next_monday(self, monday: datetime) -> datetime:
        """When the next week begins, UTC: an hour earlier or later where the clock changes."""
        return self.monday(monday + _WEEK + _DAY / 2)

    def week(self, monday: datetime, before: "WeekSchedule | None" = None) -> WeekSchedule:
        """The schedule of a week.

        Args:
            before: that of the week before, if there was one.

        Raises:
            InvalidInput, Damaged: the season cannot be learnt.
        """
        season, origin = self.season()
        running = None if before is None else in_force(before.intervals, monday)
        end = self.next_monday(monday) + _DAY
        intervals = schedule(self.rules, season, monday - _DAY, end, self.rescale_s, running)
        return WeekSchedule(
            job=self.job,
            week=monday.astimezone(self.rules.zone).date(),
            time_zone=self.rules.time_zone,
            season=season.period,
            season_from=origin,
            before_s=self.rules.before_s,
            rescale_s=self.rescale_s,
            intervals=tuple(intervals),
        )

    def ahead(self, begin: datetime, end: datetime) -> tuple[WeekSchedule, list[ScheduledRate]]:
        """The intervals from `begin` to `end`, UTC, and the week that they begin in. Nothing is stored; raises as `week`."""
        monday = self.monday(begin)
        first = week = self.week(monday)
        found: list[ScheduledRate] = []
        while True:
            following = self.next_monday(monday)
            until = min(following, end)
            for one in week.intervals:
                part = one.clipped(max(begin, monday), until)
                if part.starts_at >= part.ends_at:
                    continue
                if found and (found[-1].rate, found[-1].rises_at) == (part.rate, part.rises_at):
                    found[-1] = found[-1].model_copy(update={"ends_at": part.ends_at})
                else:
                    found.append(part)
            if following >= end:
                return first, found
            monday, week = following, self.week(following, week)

    def is_frozen(self, at: datetime) -> bool:
        """Whether no plan may change."""
        return bool(frozen(self.rules, on_grid(at), 1)[0])


def stored_week(workspace: Workspace, calendar: JobCalendar, inputs: dict[str, str], at: datetime) -> WeekSchedule:
    """The schedule of the week of an instant, made and stored if there is none.

    Args:
        inputs: digests of what it is made from, by name.

    Raises:
        InvalidInput, Damaged: the season cannot be learnt.
    """
    monday = calendar.monday(at)
    return workspace.once(
        week_key(calendar, monday),
        inputs,
        WeekSchedule,
        lambda: calendar.week(monday, week_before(workspace, calendar, monday)),
    )


def calendar_of_plan(workspace: Workspace, plan: Plan) -> tuple[Job, JobCalendar, Path] | None:
    """The job of a plan, its calendar and the folder of its file; None if the file has no calendar."""
    job = job_of(workspace, plan)
    if operations_of(job).calendar is None:
        return None
    folder = file_beside(workspace, plan, "any").parent
    return job, JobCalendar.of(workspace, job, folder), folder


def scheduled_rate(workspace: Workspace, plan: Plan, at: datetime) -> ScheduledRate | None:
    """The rate that the calendar of a plan's job has for an instant; None without a calendar.

    Raises:
        InvalidInput, Damaged: the job's file is wrong, or the season cannot be learnt.
    """
    found = calendar_of_plan(workspace, plan)
    if found is None:
        return None
    _, calendar, folder = found
    return in_force(stored_week(workspace, calendar, inputs_of(calendar, folder), at).intervals, at)


def inputs_of(calendar: JobCalendar, folder: Path) -> dict[str, str]:
    """Digests of the calendar and its history file. Samples of the running job do not count: they are new every hour.

    Raises:
        InvalidInput: the history file is missing.
    """
    found = {"calendar": digest(calendar.rules)}
    if calendar.rules.history is not None:
        try:
            found["history"] = digest_bytes((folder / calendar.rules.history).read_bytes())
        except OSError as error:
            raise InvalidInput(f"the history {folder / calendar.rules.history} cannot be read: {error}") from None
    return found


def rescale_time_s(workspace: Workspace, job: str, operations: Operations) -> float:
    """Time from a scheduled change to the job that runs its plan, seconds: stated, or seen, or at most."""
    rules = operations.calendar
    if rules is not None and rules.rescale_s is not None:
        return rules.rescale_s
    seen = []
    for version in PlanStore(workspace).versions(job)[-RECENT_PLANS:]:
        try:
            seen += [one.seconds for one in recorded(workspace, job, version) if one.outcome == "applied"]
        except Damaged:
            continue
    applying = operations.apply
    at_most = applying.timeout_s if applying.repository is None else applying.repository.deploy_s
    return REPLAN_S + (max(seen) if seen else at_most)


def _season(history: RateHistory, rules: Calendar) -> tuple[Season, str]:
    season = learn(history.times, history.rates, rules.zone, rules.step_s, rules.quantile)
    days = "1 day" if season.days == 1 else f"{season.days} days"
    return season, f"{history.origin}, of {days}"


def week_before(workspace: Workspace, calendar: JobCalendar, monday: datetime) -> WeekSchedule | None:
    """The stored schedule of the week before; None if there is none, or it is damaged."""
    try:
        return workspace.read_output(week_key(calendar, calendar.monday(monday - _WEEK + _DAY / 2)), WeekSchedule)
    except (Missing, Damaged):
        return None


def week_key(calendar: JobCalendar, monday: datetime) -> str:
    """Workspace key of the schedule of a week."""
    return f"{FOLDER}/{calendar.job}/{monday.astimezone(calendar.rules.zone):%Y-%m-%d}.json"
