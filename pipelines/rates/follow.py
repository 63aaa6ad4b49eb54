"""Following the source rate of one job: read it, judge it, and store an event for each change."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from models.errors import InvalidInput, SluiceError
from models.plan.content import Plan
from models.scaling.decisions.overload import SourceReading
from models.scaling.rate_band import BandVerdict, RateBand
from pipelines.calendar.scheduling import scheduled_rate
from pipelines.inputs.job_files import operations_of
from pipelines.inputs.operations.operations import RateOrigin, Replanning
from pipelines.planning.planned_job import job_of
from pipelines.rates.origin import describe, read_rate
from pipelines.rates.reading import RateUnknown
from pipelines.rates.record import RateChangeEvent, is_taken, keep_event, last_event, next_number
from pipelines.rates.status import State, keep_status
from pipelines.store.pins import pin_of
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace

ReadRate = Callable[[RateOrigin, str], SourceReading]
_logger = logging.getLogger(__name__)


def rules_of(workspace: Workspace, plan: Plan) -> Replanning | None:
    """The replanning rules in the file of a plan's job; None if it has none, as a job from SQL alone."""
    return operations_of(job_of(workspace, plan)).replan


def followed_jobs(workspace: Workspace) -> list[str]:
    """Jobs that have a plan, and replanning rules in their file. Faulty ones are logged."""
    store, found = PlanStore(workspace), []
    for job in store.jobs():
        try:
            if rules_of(workspace, store.current(job)) is not None:
                found.append(job)
        except (SluiceError, OSError) as error:
            _logger.warning("the rate of %s is not followed: %s", job, error)
    return found


@dataclass
class _Known:
    """The inputs of the band."""

    plan_version: int
    rules: Replanning
    last_event: str | None


class JobFollower:
    """Follows one job; `poll` is called repeatedly, by one thread at a time."""

    def __init__(
        self,
        workspace: Workspace,
        job: str,
        *,
        read: ReadRate = read_rate,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """
        Args:
            read: reads the rate; raises RateUnknown.
            clock: monotonic, in seconds.
            now: the time of day, for records.
        """
        self._workspace, self._store, self._job = workspace, PlanStore(workspace), job
        self._read, self._clock, self._now = read, clock, now
        self._plan: Plan | None = None
        self._known: _Known | None = None
        self._band: RateBand | None = None
        self._said = ""
        self._begun = False
        self._kept: tuple[State, str] | None = None

    @property
    def interval_s(self) -> float:
        """Seconds until the next poll is due."""
        return 15.0 if self._known is None else self._known.rules.poll_interval_s

    def close(self) -> None:
        """There is nothing to close."""

    def poll(self) -> RateChangeEvent | None:
        """Read the rate once; returns a change for the caller to pass on, if there is one.

        Errors of reading, and faults of files in the workspace, are not raised but logged; the next poll tries again.
        """
        try:
            return self._poll()
        except (SluiceError, OSError) as error:
            self._say(logging.WARNING, f"the rate of {self._job} is unknown: {error}")
            self._keep("unreadable", str(error))
            return None

    def _poll(self) -> RateChangeEvent | None:
        plan = self._current_plan()
        rules = rules_of(self._workspace, plan)
        if rules is None:
            raise InvalidInput(f"the file of {self._job} no longer has rules for replanning")
        if (pin := pin_of(self._workspace, self._job)) is not None:
            self._known = None  # once released, the band begins again
            reason = f"{pin}; its rate is not followed until `sluice plans unpin {self._job}`"
            self._say(logging.INFO, reason)
            self._keep("pinned", reason)
            return None
        last = last_event(self._workspace, self._job)
        self._keep_up(plan, rules, last)
        if not self._begun:
            self._begun = True
            if last is not None and last.plan_version == plan.version and not is_taken(self._workspace, last.key):
                _logger.info("rate-changes: %s was not taken by a run; it is sent again", last.key)
                return last
        assert self._band is not None
        reading = self._read(rules.rates, self._job)
        least = self._scheduled(plan)
        if least is not None and reading.rate < least:
            if least > self._band.reference:
                self._keep("held", f"its calendar asks for a plan for {least:,.1f} records/s")
                return None
            reading = SourceReading(least)  # no plan is made for less than what is scheduled
        verdict = self._band.see(self._clock(), reading.rate, reading.sources)
        self._tell(verdict)
        if verdict.change is None:
            return None
        event = RateChangeEvent(
            job=self._job,
            plan_version=plan.version,
            number=next_number(self._workspace, self._job, plan.version),
            reported_at=self._now(),
            origin=describe(rules.rates, self._job),
            change=verdict.change,
        )
        try:
            # Another process was faster; the next poll refers to its event.
            return event if keep_event(self._workspace, event) else None
        except BaseException:
            self._known = None  # it is not stored, so it must be seen again
            raise

    def _scheduled(self, plan: Plan) -> float | None:
        """The rate that the job's calendar has for now; a calendar that is wrong must not end the following of the rate."""
        try:
            scheduled = scheduled_rate(self._workspace, plan, self._now())
        except (SluiceError, OSError) as error:
            self._say(logging.WARNING, f"the rate of {self._job} is followed without its calendar: {error}")
            return None
        return None if scheduled is None else scheduled.rate

    def _current_plan(self) -> Plan:
        """Read only if there is a newer one, since plans of thousands of tasks take a while."""
        newest = max(self._store.versions(self._job), default=0)
        if self._plan is None or self._plan.version != newest:
            self._plan = self._store.current(self._job)
        return self._plan

    def _keep_up(self, plan: Plan, rules: Replanning, last: RateChangeEvent | None) -> None:
        """Set the band from the plan in force, the present rules, and the last event."""
        known = _Known(plan.version, rules, None if last is None else last.key)
        if known == self._known:
            return
        told_of_plan = last is not None and last.plan_version == plan.version
        reference = last.change.new_rate if told_of_plan and last is not None else plan.target_rate
        self._band = RateBand(
            rules,
            reference,
            timeout_s=rules.rates.timeout_s,
            quiet_until_s=self._clock() + self._quiet_s(rules, last),
        )
        self._known = known

    def _quiet_s(self, rules: Replanning, last: RateChangeEvent | None) -> float:
        """The rest of the cool-down; setting the system clock back does not lengthen it."""
        if last is None:
            return 0.0
        since_s = (self._now() - last.reported_at).total_seconds()
        return rules.cool_down_s - since_s if since_s >= 0 else rules.cool_down_s

    def _tell(self, verdict: BandVerdict) -> None:
        if verdict.kind == "refused":
            raise RateUnknown(verdict.reason)
        self._say(logging.INFO, f"the rate of {self._job} {verdict.kind}: {verdict.reason}", kind=verdict.kind)
        held = verdict.kind == "held"
        self._keep("held" if held else "followed", verdict.reason if held else "")

    def _keep(self, state: State, reason: str) -> None:
        """Store the state for people; a failing write must not end the following."""
        if (state, reason) == self._kept:
            return
        try:
            keep_status(self._workspace, self._job, state, reason, self._now())
            self._kept = (state, reason)
        except (SluiceError, OSError) as error:
            _logger.warning("the state of following the rate of %s could not be stored: %s", self._job, error)

    def _say(self, level: int, what: str, kind: str | None = None) -> None:
        """Log a message once until a different one follows; messages that differ only in figures count as equal."""
        if (said := kind or what) != self._said or kind in ("outside", "changed"):
            _logger.log(level, "%s", what)
        self._said = said
