"""What an autopilot does to a job: an intent is stored, carried out, and ended once its decision is recorded."""

import secrets
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Final, Literal

from flink_client.jobs.restart import Restart, prepare_restart
from flink_client.jobs.running import Scheduler, scheduler, settings
from flink_client.kubernetes.reference import parse_reference
from flink_client.rest.answers import ENDED
from flink_client.rest.client import FlinkRest
from models.errors import InvalidInput, SluiceError
from models.scaling.control.guard import Hold
from pipelines.apply.kubernetes.applying import ResourceApi
from pipelines.control.actions.carrying import Carried, Carrying
from pipelines.control.actions.deployment import JobDeployment, OpenApi
from pipelines.control.actions.in_place_actuator import InPlaceActuator
from pipelines.control.actions.intents import SAVEPOINT, IntendedPlacement, IntendedResource, Intent, IntentJournal
from pipelines.control.actions.placing import intended_placement
from pipelines.control.actions.resource_actuator import ResourceActuator, standing
from pipelines.control.actions.restart_actuator import RestartActuator
from pipelines.control.keeping.lease import Lease, LeaseLost
from pipelines.control.record import Method, PolicyAdvice
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
        connect: OpenApi,
    ) -> None:
        """
        Args:
            beat: called while an action is under way.
            connect: to Kubernetes, where the job has a FlinkDeployment.
        """
        self._rest, self._request, self._journal, self._lease = rest, request, journal, lease
        self._clocks, self._beat, self._connect = clocks, beat, connect
        target = request.deployment
        self._deployment = None if target is None else JobDeployment(target, connect)

    def hold(self, sight: Sight, flink_job: str) -> Hold | None:
        """Why the job's FlinkDeployment may not be changed now; None if it may, or there is none. Only GET requests."""
        if self._deployment is None:
            return None
        return self._deployment.hold(flink_job, sight.slowly is not None and sight.slowly.required is not None)

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
        """An action that is not begun. Where the job has a FlinkDeployment, `hold` has read it.

        Args:
            wanted: tasks of each vertex, by name.
        """
        required = None if sight.slowly is None else sight.slowly.required
        tasks = {v.id: wanted[sight.names[v.id]] for v in sight.vertices}
        resource = None if self._deployment is None else self._deployment.intended()
        method = self._method(tasks, required)
        placement, not_placed = self._placed(sight, flink_job, tasks) if method == "in-place" else (None, None)
        return Intent(
            job=self._request.job,
            number=number,
            fence=self._lease.number,
            intended_at=self._clocks.now(),
            flink_job=flink_job,
            method=method,
            purpose=purpose,
            why=why,
            names=dict(sight.names),
            before={v.id: len(v.tasks) for v in sight.vertices},
            wanted=tasks,
            required_before=None if required is None else dict(required),
            resource=resource,
            placement=placement,
            not_placed=not_placed,
            savepoint_trigger=secrets.token_hex(16),
            new_job=secrets.token_hex(16),
            former_job=secrets.token_hex(16),
            advice=advice,
            cut=cut,
            decision_s=decision_s,
        )

    def _placed(
        self, sight: Sight, flink_job: str, tasks: Mapping[str, int]
    ) -> tuple[IntendedPlacement | None, str | None]:
        """Where the tasks go, or why Flink decides that although there is a placement hook."""
        try:
            return intended_placement(self._rest, sight, flink_job, tasks), None
        except SluiceError as error:
            return None, str(error)

    def act(self, intent: Intent, *, resumed: bool = False) -> Carried:
        """Bring an action to its end.

        Raises:
            LeaseLost: another autopilot has taken over, and will bring it to its end.
            SluiceError: Flink does not answer; it is to be resumed later.
        """
        try:
            if resumed and self._outdated(intent):
                why = "the autopilot ended before it had acted, and it is too late now"
                return Carried("failed", intent.flink_job, 0.0, None, why)
            return self._act(intent)
        except LeaseLost:
            raise
        except SluiceError as error:
            if not self._is_gone(intent):
                raise
            return Carried("failed", intent.flink_job, 0.0, None, f"{error}; the job has ended")

    def _act(self, intent: Intent) -> Carried:
        try:
            restart = self._restart() if intent.method == "restart" else None
        except InvalidInput as error:
            if (taken := self._journal.marked(intent.number, SAVEPOINT)) is None:
                return Carried("refused", intent.flink_job, 0.0, None, str(error))
            why = f"{error}; the job has ended, and its savepoint is {taken.said}"
            return Carried("failed", intent.flink_job, 0.0, None, why)
        self._lease.renew(always=True)
        if not self._journal.holds(intent):
            raise LeaseLost(f"another autopilot acts on {intent.job}: it has taken the number {intent.number}")
        timeout_s, journal = self._request.timeout_s, self._journal
        beat, clock, sleep = self._beat, self._clocks.monotonic, self._clocks.sleep
        carrying = Carrying(self._rest, beat, clock, sleep)
        if restart is not None:
            return RestartActuator(self._rest, journal, restart, carrying, timeout_s=timeout_s).carry_out(intent)
        actuator = InPlaceActuator(self._rest, journal, carrying, timeout_s=timeout_s)
        if intent.resource is None:
            return actuator.carry_out(intent)
        with self._connected(intent.resource) as api:
            return ResourceActuator(
                api, actuator, self._rest, journal, timeout_s=timeout_s, beat=beat, clock=clock, sleep=sleep
            ).carry_out(intent)

    def _is_gone(self, intent: Intent) -> bool:
        """Whether the job that is to be changed has ended by itself, so that no later attempt can succeed.

        A JobManager that has just been started does not know its jobs yet, and an operator deploys a job again.
        """
        if intent.resource is not None:
            return False
        by_restart = intent.method == "restart"
        if by_restart and self._journal.marked(intent.number, SAVEPOINT) is not None:
            return False
        answer = self._rest.get_if_there(f"/jobs/{intent.flink_job}")
        if answer is None:
            return self._age_s(intent) >= OUTDATED_S
        return answer["state"] in ENDED and not by_restart

    def _connected(self, resource: IntendedResource) -> AbstractContextManager[ResourceApi]:
        """Raises SluiceError: there are no credentials now; an action that is under way is resumed once there are."""
        try:
            return self._connect(resource.context)
        except InvalidInput as error:
            raise SluiceError(str(error)) from error

    def _method(self, tasks: Mapping[str, int], required: Mapping[str, int] | None) -> Method:
        if self._deployment is None:
            return "restart" if required is None else "in-place"
        by_rest = self._deployment.target.through == "rest" or self._deployment.states(tasks)
        return "in-place" if by_rest else "resource"

    def end(self, intent: Intent) -> None:
        """Its decision is recorded."""
        self._journal.end(intent.number, self._clocks.now())

    def _outdated(self, intent: Intent) -> bool:
        """Whether it was intended long ago and nothing of it was done."""
        if self._age_s(intent) < OUTDATED_S:
            return False
        if self._journal.begun(intent.number):
            return False
        if intent.method == "resource" and intent.resource is not None:
            return not self._is_written(intent, intent.resource)
        if intent.method == "in-place":
            required = self._rest.requirements(intent.flink_job)
            return all(required.get(v) == n for v, n in (intent.required_before or intent.before).items())
        path = f"/jobs/{intent.flink_job}"
        answer = self._rest.get_if_there(path)
        triggered = self._rest.get_if_there(f"{path}/savepoints/{intent.savepoint_trigger}") is not None
        return answer is not None and answer["state"] == "RUNNING" and not triggered

    def _age_s(self, intent: Intent) -> float:
        return float((self._clocks.now() - intent.intended_at).total_seconds())

    def _is_written(self, intent: Intent, resource: IntendedResource) -> bool:
        with self._connected(resource) as api:
            try:
                found = api.read(*parse_reference(resource.reference))
            except InvalidInput:  # it is gone
                return False
        return standing(found, intent) in ("written", "taken-back")

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
