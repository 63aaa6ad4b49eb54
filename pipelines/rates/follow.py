"""Following the source rate of one job: read it, judge it, and tell a change that nobody has told yet."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from models.errors import InvalidInput, SluiceError
from models.operations import RateOrigin, Replanning
from models.plan import Plan
from models.scaling.rate_band import RateBand, Verdict
from pipelines.operations import job_of, operations_of
from pipelines.plan_store import PlanStore
from pipelines.rates.reading import RateUnknown, describe, read_rate
from pipelines.rates.record import ToldChange, is_taken, last_told, next_number, tell
from pipelines.workspace import Workspace

ReadRate = Callable[[RateOrigin, str], float]
_logger = logging.getLogger(__name__)


def rules_of(workspace: Workspace, plan: Plan) -> Replanning | None:
    """What the file of a plan's job says about replanning; None where it says nothing, as a job of SQL alone does."""
    return operations_of(job_of(workspace, plan)).replan


def followed_jobs(workspace: Workspace) -> list[str]:
    """Jobs that have a plan, and rules for replanning in their file. What is wrong with others is told in the log."""
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
    """What the band was made from."""

    plan_version: int
    rules: Replanning
    last_told: str | None


class JobFollower:
    """Follows one job; `poll` is called again and again, by one thread at a time."""

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
            read: the rate from where it is told; raises RateUnknown.
            clock: seconds that never run backwards.
            now: the time of day, for what others are to know.
        """
        self._workspace, self._store, self._job = workspace, PlanStore(workspace), job
        self._read, self._clock, self._now = read, clock, now
        self._plan: Plan | None = None
        self._known: _Known | None = None
        self._band: RateBand | None = None
        self._said = ""
        self._begun = False

    @property
    def interval_s(self) -> float:
        """Seconds until the next poll is due."""
        return 15.0 if self._known is None else self._known.rules.poll_interval_s

    def poll(self) -> ToldChange | None:
        """Read the rate once; returns the change that it is up to the caller to pass on, if there is one.

        Raises nothing that reading, or what others left in the workspace, may cause: it is told in the log, and the next
        poll tries again.
        """
        try:
            return self._poll()
        except (SluiceError, OSError) as error:
            self._say(logging.WARNING, f"the rate of {self._job} is not known: {error}")
            return None

    def _poll(self) -> ToldChange | None:
        plan = self._current_plan()
        rules = rules_of(self._workspace, plan)
        if rules is None:
            raise InvalidInput(f"the file of {self._job} says nothing of replanning any more")
        last = last_told(self._workspace, self._job)
        self._keep_up(plan, rules, last)
        if not self._begun:
            self._begun = True
            if last is not None and last.plan_version == plan.version and not is_taken(self._workspace, last.key):
                _logger.info("rate-changes: %s was told before, but nobody took it; it is sent again", last.key)
                return last
        assert self._band is not None
        verdict = self._band.see(self._clock(), self._read(rules.rates, self._job))
        self._tell(verdict)
        if verdict.change is None:
            return None
        told = ToldChange(
            job=self._job,
            plan_version=plan.version,
            number=next_number(self._workspace, self._job, plan.version),
            told_at=self._now(),
            origin=describe(rules.rates, self._job),
            change=verdict.change,
        )
        try:
            # Whoever was faster has told it; the next poll refers to that.
            return told if tell(self._workspace, told) else None
        except BaseException:
            self._known = None  # it is not told, so it must be seen again
            raise

    def _current_plan(self) -> Plan:
        """Read only where there is a newer one, since plans of thousands of tasks take a while."""
        newest = max(self._store.versions(self._job), default=0)
        if self._plan is None or self._plan.version != newest:
            self._plan = self._store.current(self._job)
        return self._plan

    def _keep_up(self, plan: Plan, rules: Replanning, last: ToldChange | None) -> None:
        """Make the band that of the plan in force, of the rules as they are now, and of what was told by anyone."""
        known = _Known(plan.version, rules, None if last is None else last.key)
        if known == self._known:
            return
        told_of_plan = last is not None and last.plan_version == plan.version
        reference = last.change.new_rate if told_of_plan and last is not None else plan.target_rate
        self._band = RateBand(rules, reference, quiet_until_s=self._clock() + self._quiet_s(rules, last))
        self._known = known

    def _quiet_s(self, rules: Replanning, last: ToldChange | None) -> float:
        """What is left of the cool-down; a time of day that was set back makes it no longer than it is."""
        if last is None:
            return 0.0
        since_s = (self._now() - last.told_at).total_seconds()
        return rules.cool_down_s - since_s if since_s >= 0 else rules.cool_down_s

    def _tell(self, verdict: Verdict) -> None:
        if verdict.kind == "refused":
            raise RateUnknown(verdict.reason)
        self._say(logging.INFO, f"the rate of {self._job} {verdict.kind}: {verdict.reason}", kind=verdict.kind)

    def _say(self, level: int, what: str, kind: str | None = None) -> None:
        """Once until something else is to be said; figures alone are nothing else."""
        if (said := kind or what) != self._said or kind in ("outside", "changed"):
            _logger.log(level, "%s", what)
        self._said = said
