"""The record of each round: what was seen, what the policy advised, what was done or held back, and why."""

from dataclasses import dataclass
from typing import Any

from models.scaling.control.granting import TaskBounds
from models.scaling.control.guard import Hold
from models.scaling.policy import Policy
from models.scaling.rates import Rates
from pipelines.control.account import JobAccount
from pipelines.control.keeping.tenure import Tenure
from pipelines.control.record import AutopilotDecision, Done
from pipelines.control.request import AutopilotRequest, Clocks
from pipelines.control.sensing import Sight
from pipelines.control.watching import JobWatch
from pipelines.control.wording import outlook_of, seen_of


@dataclass(frozen=True)
class AutopilotRound:
    """What is known in one round."""

    sight: Sight
    began_s: float
    rates: Rates | None = None
    seconds: float | None = None
    bounds: TaskBounds | None = None


@dataclass(frozen=True)
class DecisionRecorder:
    """Writes up the decisions of one autopilot."""

    request: AutopilotRequest
    policy: Policy
    watch: JobWatch
    account: JobAccount
    clocks: Clocks

    def decision(
        self, now: AutopilotRound, holder: Tenure, done: Done, reason: str, *, held: Hold | None = None, **more: Any
    ) -> AutopilotDecision:
        """The record of a round.

        Args:
            held: what kept the policy from acting.
            more: further fields of the record.
        """
        newest_s, limits, history = self.watch.newest_s, self.request.limits, self.account.history
        age_s = None if newest_s is None else max(self.clocks.monotonic() - newest_s, 0.0)
        since = history.respects_until(limits)
        at = self.clocks.now()
        return AutopilotDecision(
            job=self.request.job,
            number=holder.diary.number,
            fence=holder.lease.number,
            decided_at=at,
            flink_job=self.watch.job,
            policy=self.policy.name,
            seen=seen_of(now.sight, now.rates, now.seconds, age_s, now.bounds, limits),
            done=done,
            held=None if held is None else held.limit,
            reason=reason,
            someone_else_at=history.someone_else if since is not None and at < since else None,
            decision_s=more.pop("decision_s", self.clocks.monotonic() - now.began_s),
            advice=more.pop("advice", None),
            outlook=outlook_of(self.policy),
            **more,
        )
