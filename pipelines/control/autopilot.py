"""The autopilot of one job: observe, let the policy decide, keep to the limits, rescale, verify, record.

The same decision step drives the arena (`models.scaling.control.deciding`).
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from flink_client.metrics.partitions import LogEnds
from flink_client.rest.client import FlinkRest
from models.errors import Infeasible, InvalidInput, SluiceError
from models.scaling.control.deciding import ControlStep, RunningTasks, decide
from models.scaling.control.guard import ControlStanding, Hold, hold
from models.scaling.policies import POLICIES, make_policy
from models.scaling.policy import Facts, Rescaled
from models.scaling.rates import Rates
from pipelines.control.account import JobAccount
from pipelines.control.actions.deployment import OpenApi, open_api
from pipelines.control.actions.intents import Intent
from pipelines.control.files import AutopilotFiles
from pipelines.control.fitness import bounds_of, unfit
from pipelines.control.keeping.diary import history_of
from pipelines.control.keeping.lease import LeaseLost, LeaseSeeker
from pipelines.control.keeping.recording import AutopilotRound, DecisionRecorder
from pipelines.control.keeping.tenure import Tenure
from pipelines.control.record import AutopilotDecision, Done
from pipelines.control.request import AutopilotRequest, Clocks
from pipelines.control.sensing import Sight, known_rates, state_mb
from pipelines.control.watching import JobWatch
from pipelines.control.wording import advice_of, rescale_of
from pipelines.store.workspace import Workspace

POLL_S: Final = 10.0
"""Longest time between two readings, seconds."""
_CLOCK_S: Final = 0.5


class Autopilot:
    """Runs the loop of one job; `round` is called every `every_s`, by one thread at a time."""

    def __init__(
        self,
        workspace: Workspace,
        request: AutopilotRequest,
        rest: FlinkRest,
        *,
        log_ends: LogEnds | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        holder: str = "",
        connect: OpenApi = open_api,
    ) -> None:
        """
        Args:
            log_ends: where what waits is counted by the broker.
            connect: to Kubernetes, where the job has a FlinkDeployment.
            clock: monotonic, seconds.
            now: the time of day.

        Raises:
            InvalidInput: there is no such policy or setting.
        """
        self.request, self.limits = request, request.limits
        self.policy = make_policy(request.policy, request.settings)
        self.files = AutopilotFiles(workspace, request.job)
        self._clocks, self._zero_s = Clocks(clock, sleep, now), clock()
        self._reads = POLICIES[request.policy].reads
        self._watch = JobWatch(rest, request, self._reads, log_ends, clock)
        self._account = JobAccount()
        self._recorder = DecisionRecorder(request, self.policy, self._watch, self._account, self._clocks)
        self._seeker = LeaseSeeker(workspace, request.job, clock, holder)
        self._take_over = partial(
            Tenure, workspace, request, rest, clocks=self._clocks, every_s=self.every_s, connect=connect
        )
        self._tenure: Tenure | None = None

    @property
    def every_s(self) -> float:
        """Seconds between two rounds."""
        return min(self.policy.interval_s, POLL_S)

    @property
    def waits_for(self) -> str | None:
        """Which process acts on the job instead of this one; None if this one does."""
        return None if self._tenure is not None else self._seeker.held_by or "the lease of a former autopilot to end"

    @property
    def estimates_lag(self) -> bool:
        """As `JobWatch.estimates_lag`."""
        return self._watch.estimates_lag

    def ask(self) -> None:
        """Have Flink fetch the metrics for the next round, a moment before it."""
        self._watch.ask()

    def round(self) -> AutopilotDecision | None:
        """One round. Returns what was stored; None where nothing is new.

        Raises:
            LeaseLost: another autopilot has taken over; this one must end.
            InvalidInput: the policy cannot work with this job.
        """
        if self._tenure is None and not self._begin():
            return None
        holder = self._holder
        holder.lease.renew()
        sight = self._look()
        now = AutopilotRound(sight, self._clocks.monotonic())
        try:
            decided = self._resume(now) or self._decide(now)
        except (LeaseLost, InvalidInput):
            raise
        except SluiceError as error:  # an action that is under way is resumed in the next round
            decided = self._held_by(now, Hold("stale", str(error)))
        if decided is None:
            holder.state.beat()
            return None
        stored = holder.diary.keep(decided)
        holder.ended()
        holder.state.keep(decided, self._account.history)
        return stored

    def close(self) -> None:
        """End: another autopilot may begin at once."""
        if self._tenure is not None:
            self._tenure.state.end(self._account.history)
            self._tenure.lease.release()
            self._tenure = None

    # --- begin

    @property
    def _holder(self) -> Tenure:
        assert self._tenure is not None
        return self._tenure

    def _begin(self) -> bool:
        """Take the lease, and read what was done before; False while another autopilot holds it."""
        lease = self._seeker.attempt()
        if lease is None:
            return False
        now = self._clocks.now()
        try:
            self._account.history, newest = history_of(self.files, now)
            self._account.resume(newest, now, self._clocks.monotonic(), self.limits.judge_s)
            self._tenure = self._take_over(lease)
        except SluiceError:
            lease.release()
            raise
        before = self.files.state()
        if before is not None:
            self._watch.job = before.flink_job
            self._account.required = None if before.required is None else dict(before.required)
        return True

    def _look(self) -> Sight:
        before = self._watch.job
        sight = self._watch.look()
        if self._watch.job != before:
            self._account.required = None
        return sight

    # --- decide

    def _decide(self, now: AutopilotRound) -> AutopilotDecision | None:
        """None where the policy is not due yet."""
        sight = now.sight
        required = None if sight.slowly is None else sight.slowly.required
        if self._account.see_required(required, self._clocks.now()):
            self._watch.forget()
        state = self._holder.state
        state.required, state.flink_job = self._account.required, self._watch.job
        if sight.restarted:
            self._watch.forget()
            slots = None if sight.slowly is None else sight.slowly.slots
            if (blame := self._account.see_restart(slots)) is not None and sight.tasks:
                return self._take_back(now, blame)
        if (held := unfit(sight, self._watch.newest_s, self.limits)) is not None:
            if held.limit == "restarting":
                self._watch.forget()
            return self._decision(now, "none", held.why, held=held)
        meter = self._watch.metered(sight)
        if meter.seconds < self.policy.interval_s - _CLOCK_S:
            return None
        return self._ask_policy(now, meter.seconds, meter.read())

    def _ask_policy(self, now: AutopilotRound, seconds: float, read: Rates | None) -> AutopilotDecision:
        """The policy's decision, carried out within the limits."""
        sight = now.sight
        if read is None:
            why = "a vertex has taken no record yet; after a minute it is left out"
            return self._held_by(now, Hold("partial", why))
        rates = known_rates(read, sight, self._reads)
        bounds = bounds_of(sight, self.limits, on_demand=self.request.deployment is not None)
        now = AutopilotRound(sight, now.began_s, rates, seconds, bounds)
        if (worse := self._account.judge(rates, sight.time_s, self.limits.judge_s)) is not None:
            return self._take_back(now, worse)
        try:
            step = decide(
                self.policy,
                self._facts(now),
                RunningTasks(sight.tasks, None),
                partial(self._holds, sight),
                bounds.grant,
            )
        except InvalidInput as error:
            return self._held_by(now, Hold("partial", str(error)))
        except Infeasible as error:
            return self._held_by(now, Hold("bounds", str(error)), "held-back")
        return self._follow(now, step)

    def _facts(self, now: AutopilotRound) -> Facts:
        assert now.rates is not None and now.seconds is not None and now.bounds is not None
        last, zero_s = self._account.last, self._zero_s
        return Facts(
            time_s=now.sight.time_s - zero_s,
            interval_s=now.seconds,
            rates=now.rates,
            last_rescale=None if last is None else Rescaled(last.ended_s - zero_s, last.downtime_s, last.state_mb),
            max_task_slots=now.bounds.most_in_all,
        )

    def _holds(self, sight: Sight) -> Hold | None:
        """What forbids a rescale now."""
        return self._limited() or self._holder.hands.hold(sight, str(self._watch.job))

    def _limited(self) -> Hold | None:
        switch = self.files.switch()
        stopped = (
            None if switch is None else f"{switch.by} has stopped it" + (f": {switch.reason}" if switch.reason else "")
        )
        failing = self._watch.failing_checkpoints
        return hold(self.limits, ControlStanding(self._clocks.now(), self._account.history, stopped, failing))

    # --- act

    def _follow(self, now: AutopilotRound, step: ControlStep) -> AutopilotDecision:
        """Do what is left of the recommendation."""
        advice = advice_of(step.advice, now.sight.tasks)
        if step.advice.deploy is None:
            return self._decision(now, "none", step.advice.reason, advice=advice)
        if step.held is not None or step.granted is None:
            return self._held_by(now, step.held or Hold("bounds", "nothing is left to do"), "held-back", advice=advice)
        intent = self._holder.hands.intent(
            now.sight,
            self._holder.diary.number,
            str(self._watch.job),
            step.granted.parallelism,
            "rescale",
            step.advice.reason,
            advice=advice,
            cut=step.granted.note,
            decision_s=self._clocks.monotonic() - now.began_s,
        )
        if self.request.dry_run:
            rescale = rescale_of(intent, None, now.bounds, self.limits)
            return self._decision(now, "dry-run", f"would rescale: {intent.why}", advice=advice, rescale=rescale)
        return self._act(now, intent)

    def _take_back(self, now: AutopilotRound, why: str) -> AutopilotDecision:
        """Return to the tasks before the last rescale, which did harm."""
        on, tasks = self._account.probation, now.sight.tasks
        assert on is not None
        wanted = {name: on.before.get(name, count) for name, count in tasks.items()}
        why = f"the last rescale is taken back, since {why}"
        held = self._holds_back(now.sight)
        if held is not None or self.request.dry_run or not tasks:
            return self._decision(now, "held-back" if held else "none", held.why if held else why, held=held)
        intent = self._holder.hands.intent(
            now.sight, self._holder.diary.number, str(self._watch.job), wanted, "roll-back", why
        )
        return self._act(now, intent)

    def _holds_back(self, sight: Sight) -> Hold | None:
        """Of the limits the stop switch alone keeps from taking a rescale back."""
        held = self._limited()
        if held is not None and held.limit == "stopped":
            return held
        return self._holder.hands.hold(sight, str(self._watch.job))

    def _resume(self, now: AutopilotRound) -> AutopilotDecision | None:
        """Bring to its end what a former process has begun."""
        due = self._holder.open
        if due is None or (now.sight.counts is None and due.method == "in-place"):
            return None
        if self.request.dry_run:
            return None
        if self._holder.has_record(due):  # the former process ended between the record and the journal
            self._holder.end(due)
            return None
        return self._act(now, due, resumed=True)

    def _act(self, now: AutopilotRound, intent: Intent, *, resumed: bool = False) -> AutopilotDecision:
        holder = self._holder
        holder.state.acting(self._account.history)
        holder.open = intent
        carried = holder.hands.act(intent, resumed=resumed)
        holder.acted = intent
        slots = None if now.sight.slowly is None else now.sight.slowly.slots
        self._account.after(
            intent, carried, self._clocks.monotonic(), self._clocks.now(), state_mb(now.sight) or 0.0, slots
        )
        self._watch.changed(carried.flink_job)
        done: Done = "rolled-back" if (carried.done, intent.purpose) == ("rescaled", "roll-back") else carried.done
        return self._decision(
            now,
            done,
            intent.why if carried.why is None else f"{carried.why}; it was to be done since {intent.why}",
            advice=intent.advice,
            rescale=rescale_of(intent, carried, now.bounds, self.limits, resumed=resumed),
        ).model_copy(update={"decision_s": intent.decision_s})

    # --- record

    def _held_by(self, now: AutopilotRound, held: Hold, done: Done = "none", **more: Any) -> AutopilotDecision:
        return self._decision(now, done, held.why, held=held, **more)

    def _decision(self, now: AutopilotRound, done: Done, reason: str, **more: Any) -> AutopilotDecision:
        return self._recorder.decision(now, self._holder, done, reason, **more)
