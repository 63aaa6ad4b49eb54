"""The autopilot of one job by the rules in its file, which may change while it runs."""

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from flink_client.jobs.restart import RestartProgram
from flink_client.rest.client import FlinkRest
from models.errors import InvalidInput, SluiceError
from pipelines.control.actions.deployment import checked_owner
from pipelines.control.autopilot import Autopilot
from pipelines.control.keeping.lease import LeaseLost
from pipelines.control.record import AutopilotDecision
from pipelines.control.request import AutopilotRequest, DeploymentTarget
from pipelines.control.running import pause_s, take_round
from pipelines.following.jobs import file_beside_job, job_file, operated_jobs
from pipelines.inputs.job_files import operations_of
from pipelines.inputs.operations.autopiloting import Autopiloting
from pipelines.inputs.parsing.files import read_as
from pipelines.observe.log_ends import BrokerLogEnds
from pipelines.piloting.events import PilotEvent, budget_event, permission_event, rescale_event
from pipelines.piloting.permission import begin_question, permission_of, rules_digest
from pipelines.store.workspace import Workspace

RETRY_S: Final = 30.0
"""Wait after an autopilot ended by itself, seconds."""
ANSWER_S: Final = 10.0
"""Time limit of one of Flink's answers, seconds."""
_logger = logging.getLogger(__name__)


def piloted_jobs(workspace: Workspace) -> list[str]:
    """Jobs with a file that asks for an autopilot. Faulty files are logged."""
    return operated_jobs(workspace, lambda operations: operations.autopilot is not None, "under an autopilot")


@dataclass(frozen=True)
class _Flight:
    """The loop that runs, and what it was made from."""

    rules: Autopiloting
    may_act: bool
    rest: FlinkRest
    loop: Autopilot


class JobPilot:
    """Runs the autopilot of one job; `poll` is called repeatedly, by one thread at a time."""

    def __init__(
        self,
        workspace: Workspace,
        job: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """
        Args:
            clock: monotonic, seconds.
            now: the time of day.
        """
        self._workspace, self._job = workspace, job
        self._clock, self._sleep, self._now = clock, sleep, now
        self._flight: _Flight | None = None
        self._due_s, self._said = clock(), ""

    @property
    def interval_s(self) -> float:
        """Seconds until the next round is due."""
        return max(self._due_s - self._clock(), 0.0)

    def close(self) -> None:
        """End the loop and give its lease back, so that another process may begin at once."""
        flight, self._flight = self._flight, None
        if flight is not None:
            with suppress(SluiceError, OSError):  # the lease then ends by itself
                flight.loop.close()
            flight.rest.close()

    def poll(self) -> PilotEvent | None:
        """One round. Errors, and faults of the job's file, are not raised but logged; the next poll tries again."""
        began_s = self._clock()
        self._due_s = began_s + RETRY_S
        try:
            flight = self._current()
            decision = take_round(flight.loop, self._sleep)
            self._due_s = began_s + pause_s(flight.loop)
            if (other := flight.loop.waits_for) is not None:
                self._say(f"another autopilot acts on {self._job}, and is waited for: {other}")
            return None if decision is None else self._event(flight, decision)
        except (LeaseLost, InvalidInput) as error:
            self.close()
            self._say(f"the autopilot of {self._job} has ended, and is tried again: {error}")
        except (SluiceError, OSError) as error:
            self._say(f"a round of the autopilot of {self._job} failed: {error}")
        return None

    def _current(self) -> _Flight:
        """The loop by the rules as they are now. Raises InvalidInput: the file or the policy's settings are wrong."""
        rules = operations_of(job_file(self._workspace, self._job)).autopilot
        if rules is None:
            raise InvalidInput(f"the file of {self._job} no longer asks for an autopilot")
        may_act = rules.mode == "alone" or (rules.mode == "approved" and self._permitted(rules))
        if self._flight is None or (self._flight.rules, self._flight.may_act) != (rules, may_act):
            self.close()
            self._flight = self._started(rules, may_act)
            does = f"acts by policy {rules.policy}" if may_act else f"only records what policy {rules.policy} would do"
            _logger.info("the autopilot of %s %s", self._job, does)
        return self._flight

    def _permitted(self, rules: Autopiloting) -> bool:
        permission = permission_of(self._workspace, self._job, rules)
        return permission is not None and permission.granted

    def _started(self, rules: Autopiloting, may_act: bool) -> _Flight:
        request = AutopilotRequest(
            job=self._job,
            flink_url=rules.flink,
            flink_name=rules.job or self._job,
            policy=rules.policy,
            settings=dict(rules.settings),
            limits=rules.limits,
            dry_run=not may_act,
            timeout_s=rules.timeout_s,
            program=self._program(rules),
            deployment=_deployment(rules),
        )
        rest = FlinkRest(rules.flink, timeout_s=ANSWER_S, patience_s=0.0, token_variable=rules.token_variable)
        ends = None if rules.kafka is None else BrokerLogEnds(rules.kafka)
        try:
            if (remark := checked_owner(rest, request.deployment)) is not None:
                self._say(f"the autopilot of {self._job}: {remark}")
            loop = Autopilot(
                self._workspace, request, rest, log_ends=ends, clock=self._clock, sleep=self._sleep, now=self._now
            )
        except BaseException:
            rest.close()
            raise
        return _Flight(rules, may_act, rest, loop)

    def _program(self, rules: Autopiloting) -> RestartProgram | None:
        if rules.program is None:
            return None
        return read_as(file_beside_job(self._workspace, self._job, rules.program), RestartProgram)

    def _event(self, flight: _Flight, decision: AutopilotDecision) -> PilotEvent | None:
        self._said = ""
        wants = decision.done == "dry-run" and flight.rules.mode == "approved"
        if wants and begin_question(self._workspace, self._job, flight.rules, self._now()):
            return permission_event(decision, rules_digest(flight.rules))
        return rescale_event(decision) or budget_event(self._workspace, decision)

    def _say(self, what: str) -> None:
        """Log a message once until a different one follows, or a round succeeds."""
        if what != self._said:
            _logger.warning("%s", what)
        self._said = what


def _deployment(rules: Autopiloting) -> DeploymentTarget | None:
    if rules.kubernetes is None:
        return None
    return DeploymentTarget(rules.kubernetes, rules.context, rules.through)
