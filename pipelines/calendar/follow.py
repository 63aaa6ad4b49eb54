"""Following the calendar of one job: a change for each scheduled rate that begins, once."""

import logging
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Final

from models.calendar.schedule import ScheduledRate, in_force
from models.errors import InvalidInput, SluiceError
from models.job import Job
from models.plan.content import Plan
from models.scaling.decisions.overload import SourceReading
from pipelines.calendar.record import CalendarChange, change_key, in_words, keep_change, last_change, read_change
from pipelines.calendar.scheduling import JobCalendar, calendar_of_plan, inputs_of, stored_week
from pipelines.following.polling import Following
from pipelines.inputs.job_files import operations_of
from pipelines.inputs.operations.operations import RateOrigin
from pipelines.planning.planned_job import job_of
from pipelines.rates.origin import read_rate
from pipelines.rates.reading import RateUnknown
from pipelines.rates.record import is_taken
from pipelines.store.pins import pin_of
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace

ReadRate = Callable[[RateOrigin, str], SourceReading]
POLL_S: Final = 30.0
_logger = logging.getLogger(__name__)


def jobs_with_calendar(workspace: Workspace) -> list[str]:
    """Jobs that have a plan, and a calendar in their file. Faulty ones are logged."""
    store, found = PlanStore(workspace), []
    for job in store.jobs():
        try:
            if operations_of(job_of(workspace, store.current(job))).calendar is not None:
                found.append(job)
        except (SluiceError, OSError) as error:
            _logger.warning("the calendar of %s is not followed: %s", job, error)
    return found


def calendar_changes(workspace: Workspace, look_every_s: float) -> AsyncIterator[CalendarChange]:
    """Every scheduled change of every job that has a plan and a calendar, until the generator is closed.

    Args:
        look_every_s: seconds between two searches for new jobs.
    """
    following = Following(
        "the calendar of", lambda: jobs_with_calendar(workspace), lambda job: CalendarFollower(workspace, job)
    )
    return following.events(look_every_s)


class CalendarFollower:
    """Follows one job; `poll` is called repeatedly, by one thread at a time."""

    interval_s: float = POLL_S

    def __init__(
        self,
        workspace: Workspace,
        job: str,
        *,
        read: ReadRate = read_rate,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """
        Args:
            read: reads the source rate, before a change to a lower one; raises RateUnknown.
            now: the time of day.
        """
        self._workspace, self._job, self._read, self._now = workspace, job, read, now
        self._sent: set[str] = set()
        """Changes that this process has sent, or that need not be sent again."""
        self._said = ""

    def close(self) -> None:
        """There is nothing to close."""

    def poll(self) -> CalendarChange | None:
        """Compare the calendar with what was asked for; returns a change for the caller to pass on, if there is one.

        Faults of files are not raised but logged; the next poll tries again.
        """
        try:
            return self._poll()
        except (SluiceError, OSError) as error:
            self._say(logging.WARNING, f"the calendar of {self._job} is not followed: {error}")
            return None

    def _poll(self) -> CalendarChange | None:
        plan = PlanStore(self._workspace).current(self._job)
        found = calendar_of_plan(self._workspace, plan)
        if found is None:
            raise InvalidInput(f"the file of {self._job} no longer has a calendar")
        job, calendar, folder = found
        at = self._now()
        week = stored_week(self._workspace, calendar, inputs_of(calendar, folder), at)
        scheduled = in_force(week.intervals, at)
        if scheduled is None:
            raise InvalidInput(f"the schedule of {self._job} has no rate for {at}; remove it, to have it made again")
        key = change_key(self._job, scheduled)
        if key in self._sent:
            return None
        if self._workspace.exists(key):
            return self._again(key)
        if self._is_planned(plan, scheduled):
            return None
        if (obstacle := self._obstacle(plan, job, calendar, scheduled, at)) is not None:
            self._say(logging.INFO, f"{obstacle}; the plan for {in_words(scheduled, calendar.rules.zone)} waits")
            return None
        change = CalendarChange(
            job=self._job,
            plan_version=plan.version,
            old_rate=plan.target_rate,
            reported_at=at,
            time_zone=calendar.rules.time_zone,
            scheduled=scheduled,
        )
        stored = keep_change(self._workspace, change)
        self._sent.add(key)
        self._say(logging.INFO, change.cause)
        return change if stored else None

    def _again(self, key: str) -> CalendarChange | None:
        """A change that another process stored, or this one before it was restarted: sent again unless a run took it."""
        self._sent.add(key)
        if is_taken(self._workspace, key):
            return None
        _logger.info("calendar: %s was not taken by a run; it is sent again", key)
        return read_change(self._workspace, key)

    def _is_planned(self, plan: Plan, scheduled: ScheduledRate) -> bool:
        last = last_change(self._workspace, self._job)
        asked = plan.target_rate if last is None else last.scheduled.rate
        return asked == scheduled.rate

    def _obstacle(
        self, plan: Plan, job: Job, calendar: JobCalendar, scheduled: ScheduledRate, at: datetime
    ) -> str | None:
        """Why no plan is made now, in words."""
        if (pin := pin_of(self._workspace, self._job)) is not None:
            return str(pin)
        if calendar.is_frozen(at):
            return f"the calendar of {self._job} is frozen"
        rules = operations_of(job).replan
        if rules is None or scheduled.rate >= plan.target_rate:
            return None
        try:
            rate = self._read(rules.rates, self._job).rate
        except RateUnknown as error:
            return f"the rate of {self._job} is unknown, so its plan is not made smaller: {error}"
        highest = (1 + rules.upwards) * scheduled.rate
        return None if rate <= highest else f"{rate:,.1f} records/s still arrive at {self._job}"

    def _say(self, level: int, what: str) -> None:
        """Log a message once until a different one follows."""
        if what != self._said:
            _logger.log(level, "%s", what)
        self._said = what
