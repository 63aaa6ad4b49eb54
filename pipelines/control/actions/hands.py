"""What an autopilot does to a job: an intent is stored, carried out, and ended once its decision is recorded."""

import secrets
from collections.abc import Callable, Mapping
from typing import Final, Literal

from flink_client.rest import FlinkRest
from flink_client.restart import Restart, prepare_restart
from flink_client.running import Scheduler, scheduler, settings
from models.errors import InvalidInput
from pipelines.control.actions.actuator import Actuator, Carried
from pipelines.control.actions.intents import Intent, IntentJournal
from pipelines.control.keeping.lease import Lease, LeaseLost
from pipelines.control.record import PolicyAdvice
from pipelines.control.request import AutopilotRequest, Clocks
from pipelines.control.sensing import Sight

OUTDATED_S: Final = 120.0
"""An action that was intended so long ago, and not begun, is not begun any more."""


class Hands:
    """Of one job's autopilot, under one lease."""

    def __init__(
        self,
        rest: FlinkRest,
        request: AutopilotRequest,
        journal: IntentJournal,
        lease: Lease,
        clocks: Clocks,
        beat: Callable[[], None],
    ) -> None:
        """
        Args:
            beat: called while an action is under way.
        """
        self._rest, self._request, self._journal, self._lease = rest, request, journal, lease
        self._clocks, self._beat = clocks, beat

    def intent(
        self,
        sight: Sight,
        number: int,
        flink_job: str,
        wanted: Mapping[str, int],
        purpose: Literal["rescale", "roll-back"],
        why: str,
        *,
        advice: PolicyAdvice | None = None,
        cut: str | None = None,
        decision_s: float = 0.0,
    ) -> Intent:
        """An action that is not begun.

        Args:
            wanted: tasks of each vertex, by name.
        """
        required = None if sight.slowly is None else sight.slowly.required
        return Intent(
            job=self._request.job,
            number=number,
            fence=self._lease.number,
            intended_at=self._clocks.now(),
            flink_job=flink_job,
            method="restart" if required is None else "in-place",
            purpose=purpose,
            why=why,
            names=dict(sight.names),
            before={v.id: len(v.tasks) for v in sight.vertices},
            wanted={v.id: wanted[sight.names[v.id]] for v in sight.vertices},
            required_before=None if required is None else dict(required),
            savepoint_trigger=secrets.token_hex(16),
            new_job=secrets.token_hex(16),
            former_job=secrets.token_hex(16),
            advice=advice,
            cut=cut,
            decision_s=decision_s,
        )

    def act(self, intent: Intent, *, resumed: bool = False) -> Carried:
        """Bring an action to its end.

        Raises:
            LeaseLost: another autopilot has taken over, and will bring it to its end.
            SluiceError: Flink does not answer; it is to be resumed later.
        """
        if resumed and self._outdated(intent):
            return Carried(
                "failed", intent.flink_job, 0.0, None, "the autopilot ended before it had acted, and it is too late now"
            )
        try:
            restart = self._restart() if intent.method == "restart" else None
        except InvalidInput as error:
            return Carried("refused", intent.flink_job, 0.0, None, str(error))
        self._lease.renew(always=True)
        if not self._journal.holds(intent):
            raise LeaseLost(f"another autopilot acts on {intent.job}: it has taken the number {intent.number}")
        actuator = Actuator(
            self._rest,
            self._journal,
            timeout_s=self._request.timeout_s,
            restart=restart,
            beat=self._beat,
            clock=self._clocks.monotonic,
            sleep=self._clocks.sleep,
        )
        return actuator.carry_out(intent)

    def end(self, intent: Intent) -> None:
        """Its decision is recorded."""
        self._journal.end(intent.number, self._clocks.now())

    def _outdated(self, intent: Intent) -> bool:
        """Whether it was intended long ago and nothing of it was done."""
        if (self._clocks.now() - intent.intended_at).total_seconds() < OUTDATED_S:
            return False
        if self._journal.begun(intent.number):
            return False
        if intent.method == "in-place":
            required = self._rest.requirements(intent.flink_job)
            return all(required.get(v) == n for v, n in (intent.required_before or intent.before).items())
        path = f"/jobs/{intent.flink_job}"
        answer = self._rest.get_if_there(path)
        triggered = self._rest.get_if_there(f"{path}/savepoints/{intent.savepoint_trigger}") is not None
        return answer is not None and answer["state"] == "RUNNING" and not triggered

    def _restart(self) -> Restart:
        """Raises InvalidInput: it is not known how to start the job."""
        found = settings(self._rest)
        if scheduler(found) is Scheduler.REACTIVE:
            raise InvalidInput(
                "the cluster is in reactive mode, where a job takes all slots; run it with 'jobmanager.scheduler: adaptive' "
                "and without 'scheduler-mode'"
            )
        if self._request.program is None:
            raise InvalidInput(
                "the cluster's scheduler cannot rescale a running job, and the program to restart is unknown; give --program "
                "FILE, or run the cluster with 'jobmanager.scheduler: adaptive'"
            )
        return prepare_restart(self._rest, self._request.program, found)
