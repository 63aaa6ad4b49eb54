"""What follows a proposal: the wait for its merge, then the job by the plan, and the record of both."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from flink_client.jobs.running import awaited, find_named_job
from flink_client.rest.answers import flinks_answers
from flink_client.rest.client import FlinkRest
from models.errors import SluiceError
from models.plan.content import Plan
from pipelines.apply.application import without_password
from pipelines.apply.applied import Applied, Effect, Outcome, VertexChange, compared
from pipelines.apply.effect import BEFORE_S, SETTLE_S, observed
from pipelines.apply.gitops.merge import MergeLook, MergeWatch
from pipelines.apply.gitops.proposal import Proposal

_LOOK_EVERY_S: Final = 1.0


@dataclass(frozen=True)
class _Deployed:
    outcome: Outcome
    reason: str
    job_id: str | None
    seconds: float
    effect: Effect | None = None


@dataclass(frozen=True)
class _Observable:
    plan: Plan
    changes: tuple[VertexChange, ...]


def await_merge(
    watch: MergeWatch,
    say: Callable[[str], None],
    sleep: Callable[[float], None] = time.sleep,
) -> MergeLook:
    """Wait until a proposal is merged, or will not be.

    Args:
        say: called with each new state, in words.
    """
    said = ""
    while True:
        look = watch.look()
        if look.sentence != said:
            say(look.sentence)
            said = look.sentence
        if look.state != "waiting":
            return look
        sleep(watch.look_every_s)


def not_merged(proposal: Proposal, look: MergeLook) -> Applied:
    """The record of a proposal that will not be merged."""
    waited_s = (datetime.now(UTC) - proposal.begun).total_seconds()
    ended = _Deployed("not-merged", look.sentence, None, max(0.0, waited_s))
    return _record(proposal, proposal.flink, ended, None, proposal.proposed_at)


def verify_merged(
    rest: FlinkRest,
    plan: Plan,
    proposal: Proposal,
    before: Effect | None,
    commit: str | None,
    say: Callable[[str], None] = lambda what: None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Applied:
    """Follow the job until it runs as planned, and observe it, as after a direct application. Nothing is changed.

    Args:
        before: the job before the plan; where it does not run the plan yet, it is observed once more.
        commit: of the target, which has the plan.

    Returns:
        The outcome; failures are recorded in it, not raised.
    """
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    ended = _Deployment(rest, plan, proposal, before, say, clock, sleep).end()
    return _record(proposal, rest.url, ended, commit, started_at)


class _Deployment:
    def __init__(
        self,
        rest: FlinkRest,
        plan: Plan,
        proposal: Proposal,
        before: Effect | None,
        say: Callable[[str], None],
        clock: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> None:
        self._rest, self._plan, self._proposal, self._before = rest, plan, proposal, before
        self._say, self._clock, self._sleep = say, clock, sleep
        self._job_id: str | None = None

    def end(self) -> _Deployed:
        proposal = self._proposal
        begin = self._clock()
        missing = self._missing()
        if missing is not None:
            self._say(f"waiting for the deployment of {proposal.target}: {missing}")
            before = self._observed(min(proposal.observe_s, BEFORE_S))
            missing = self._missing()
            if before is not None and missing is not None:  # else the deployment came meanwhile
                self._before = before
        while missing is not None:
            if self._clock() - begin >= proposal.deploy_s:
                return _Deployed(
                    "failed",
                    f"{proposal.target} has the plan, but {missing} {proposal.deploy_s:g} s later; check what deploys from "
                    f"{proposal.repository}",
                    self._job_id,
                    self._clock() - begin,
                )
            self._sleep(_LOOK_EVERY_S)
            missing = self._missing()
        took_s = self._clock() - begin
        self._sleep(min(SETTLE_S, proposal.observe_s / 4))
        effect, worse = compared(self._before, self._observed(proposal.observe_s), self._plan.source_rates)
        if (missing := self._missing()) is not None:
            left = f"the plan ran, but the job left it again: {missing}"
            return _Deployed("failed", left, self._job_id, took_s, effect)
        if worse is not None:
            return _Deployed("failed", worse, self._job_id, took_s, effect)
        if proposal.is_stated and all(c.before == c.after for c in proposal.changes):
            reason = f"{proposal.target} states the plan already, and Flink runs it"
            return _Deployed("unchanged", reason, self._job_id, took_s, effect)
        reason = f"Flink runs the plan, {took_s:.1f} s after the merge was seen"
        return _Deployed("applied", reason, self._job_id, took_s, effect)

    def _missing(self) -> str | None:
        """What is not as planned yet; a job that is being redeployed may be another one then."""
        proposal = self._proposal
        try:
            with flinks_answers(self._rest.url):
                self._job_id = find_named_job(self._rest, proposal.flink_job)
            return awaited(self._rest, self._job_id, proposal.running)[1]
        except SluiceError as error:
            return str(error)

    def _observed(self, seconds: float) -> Effect | None:
        planned = _Observable(self._plan, self._proposal.changes)
        return observed(self._rest, planned, self._job_id, seconds, self._say)


def _record(proposal: Proposal, flink: str, ended: _Deployed, commit: str | None, started_at: str) -> Applied:
    return Applied(
        job=proposal.job,
        version=proposal.version,
        plan_digest=proposal.plan_digest,
        flink_url=without_password(flink),
        repository=f"{proposal.repository} {proposal.target}:{proposal.path}",
        commit=commit,
        proposed_at=proposal.proposed_at,
        flink_job=ended.job_id,
        started_at=started_at,
        seconds=round(ended.seconds, 3),
        method="none" if ended.outcome == "unchanged" else "merge",
        placement="advice",
        outcome=ended.outcome,
        reason=ended.reason,
        changes=proposal.changes,
        advice=proposal.advice,
        effect=ended.effect,
        approved_by=proposal.approved_by,
    )
