"""Carrying out an intent on a `FlinkDeployment`: patch it, follow the operator, verify on Flink, patch it back otherwise.

    unwritten --patch--> written --stable, and Flink runs the tasks--> rescaled
                         written --an error, or time is up: patch back--> taken-back --> rolled back

A patch has the intent's mark as an annotation, and raises the generation of the resource by one. So the resource itself shows
how far an intent is, whichever process was killed where. Any other generation, or mark, is somebody else's change of the
spec, which is left alone.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final, Literal

from flink_client.jobs.running import awaited
from flink_client.kubernetes.progress import progress
from flink_client.kubernetes.reference import parse_reference
from flink_client.kubernetes.refusals import Conflict, NotPermitted
from flink_client.kubernetes.resource import FlinkDeployment
from flink_client.kubernetes.scaling import spec_change
from flink_client.rest.client import FlinkRest
from models.errors import InvalidInput, SluiceError
from pipelines.apply.kubernetes.applying import ResourceApi
from pipelines.control.actions.carrying import BACK_S, LOOK_EVERY_S, Carried, CarriedDone
from pipelines.control.actions.in_place_actuator import InPlaceActuator
from pipelines.control.actions.intents import RESOURCE_TAKING_BACK, TAKING_BACK, Intent, IntentJournal, IntentStep

MARK: Final = "sluice/autopilot"
"""Annotation: the intent that has changed the resource last."""
_TAKEN_BACK: Final = "-taken-back"
_READ_EVERY_S: Final = 1.0
_MOST_CONFLICTS: Final = 5
_UNCHANGED: Final = "nothing was changed"
Standing = Literal["unwritten", "written", "taken-back", "someone-else"]


def mark_of(intent: Intent) -> str:
    """`JOB/NUMBER-` and what no other intent has, not even one of another workspace."""
    return f"{intent.job}/{intent.number}-{intent.new_job[:12]}"


def standing(resource: FlinkDeployment, intent: Intent) -> Standing:
    """How far an intent is, by the resource."""
    assert intent.resource is not None
    since, mark = resource.generation - intent.resource.generation, resource.annotations.get(MARK)
    if since == 0:
        return "unwritten"
    if (since, mark) == (1, mark_of(intent)):
        return "written"
    return "taken-back" if (since, mark) == (2, mark_of(intent) + _TAKEN_BACK) else "someone-else"


class _NotBroughtAbout(SluiceError):
    """The tasks do not run as wanted in time, or the operator failed."""


class _SomeoneElse(SluiceError):
    """Somebody else has changed the spec."""


class ResourceActuator:
    """Carries out the intents of one job that has a FlinkDeployment."""

    def __init__(
        self,
        api: ResourceApi,
        flink: InPlaceActuator,
        rest: FlinkRest,
        journal: IntentJournal,
        *,
        timeout_s: float,
        beat: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """
        Args:
            flink: for intents that go through Flink first.
            timeout_s: for the wanted tasks to run; the former ones get as much time, and at least a minute.
            beat: called while it waits; it may raise to end the waiting.
        """
        self._api, self._flink, self._rest, self._journal = api, flink, rest, journal
        self._timeout_s, self._beat, self._clock, self._sleep = timeout_s, beat, clock, sleep
        self._last: FlinkDeployment | None = None
        """The resource as it was read last."""
        self._ran_s: float | None = None
        """Since when all tasks run as wanted."""

    def carry_out(self, intent: Intent) -> Carried:
        """Bring an intent to its end, from wherever it stands.

        Raises:
            SluiceError: a server did not answer, or `beat` ended it; it can be carried out later.
        """
        self._begun_s = self._up_s = self._clock()
        self._job, self._ran_s = intent.flink_job, None
        if (step := self._journal.marked(intent.number, RESOURCE_TAKING_BACK)) is not None:
            return self._take_back(intent, step.said)
        return self._through_operator(intent) if intent.method == "resource" else self._through_rest(intent)

    def _through_operator(self, intent: Intent) -> Carried:
        assert intent.resource is not None
        try:
            stands = self._patched(intent, "unwritten", intent.wanted, mark_of(intent))
        except _SomeoneElse as error:
            return self._ended("failed", f"{error}, which was left alone", someone_else=True)
        except (NotPermitted, InvalidInput) as error:
            return self._ended("refused", _unchanged(error))
        if stands == "unwritten":  # the resource states the tasks already
            return self._ended("rescaled", None)
        try:
            remark = self._follow(
                intent, intent.resource.generation + 1, intent.resource.error, intent.wanted, self._timeout_s
            )
        except _SomeoneElse as error:
            return self._ended("failed", f"{error}, which was left alone", someone_else=True)
        except _NotBroughtAbout as error:
            self._journal.mark(intent.number, RESOURCE_TAKING_BACK, IntentStep(at=datetime.now(UTC), said=str(error)))
            return self._take_back(intent, str(error))
        return self._ended("rescaled", remark)

    def _through_rest(self, intent: Intent) -> Carried:
        """Flink first; the tasks are written into the resource once they run, so that none are written that do not."""
        if self._journal.marked(intent.number, TAKING_BACK) is None and (refused := self._refusal(intent)) is not None:
            return refused
        carried = self._flink.carry_out(intent)
        if carried.done != "rescaled":
            return carried
        written = self._through_operator(intent)
        if written.done == "rescaled":
            return replace(carried, why=written.why, flink_job=written.flink_job)
        if written.done == "refused":
            return self._flink.take_back(intent, str(written.why))
        return written

    def _refusal(self, intent: Intent) -> Carried | None:
        """How it ends, where the resource could not be written after Flink has rescaled; None if it could."""
        try:
            resource = self._read(intent)
            stands = standing(resource, intent)
            if stands == "unwritten":
                self._patch(resource, intent.wanted, mark_of(intent), dry_run=True)
        except Conflict:
            return None
        except (NotPermitted, InvalidInput) as error:
            if self._rest.requirements(intent.flink_job) != intent.required_before:
                return self._flink.take_back(intent, str(error))
            return self._ended("refused", _unchanged(error))
        if stands == "someone-else":
            return self._ended("failed", f"{_changed(resource)}, which was left alone", someone_else=True)
        return None

    def _take_back(self, intent: Intent, why: str) -> Carried:
        assert intent.resource is not None
        former = {vertex: (intent.required_before or {}).get(vertex, intent.before[vertex]) for vertex in intent.wanted}
        try:
            stands = self._patched(intent, "written", former, mark_of(intent) + _TAKEN_BACK)
            generation = intent.resource.generation + (2 if stands == "taken-back" else 1)
            error_before = None if self._last is None else self._last.error
            self._follow(intent, generation, error_before, former, max(self._timeout_s, BACK_S))
        except _SomeoneElse as error:
            return self._ended("failed", f"{why}; {error}, which was left alone", someone_else=True)
        except (_NotBroughtAbout, InvalidInput) as error:
            return self._ended("failed", f"{why}; the former tasks do not run either: {error}")
        return self._ended("rolled-back", why)

    # --- the resource

    def _read(self, intent: Intent) -> FlinkDeployment:
        assert intent.resource is not None
        self._last = resource = self._api.read(*parse_reference(intent.resource.reference))
        self._job = resource.job_id or self._job
        return resource

    def _patch(
        self, resource: FlinkDeployment, tasks: Mapping[str, int], mark: str, *, dry_run: bool = False
    ) -> FlinkDeployment | None:
        """None where the resource states the tasks already."""
        change = spec_change(resource, tasks, running={}, size=None, adaptive=True)
        return self._api.patch(resource, change.spec, {MARK: mark}, dry_run=dry_run) if change.spec else None

    def _patched(self, intent: Intent, since: Standing, tasks: Mapping[str, int], mark: str) -> Standing:
        """Write the tasks, unless that was done.

        Returns:
            How far the intent is then; `since` where nothing differs.

        Raises:
            _SomeoneElse: the spec was changed otherwise; nothing was written.
        """
        for _ in range(_MOST_CONFLICTS):
            resource = self._read(intent)
            stands = standing(resource, intent)
            if stands == "someone-else":
                raise _SomeoneElse(_changed(resource))
            if stands != since:
                return stands
            try:
                written = self._patch(resource, tasks, mark)
            except Conflict:  # by somebody, or by the operator, whose status is part of the resource: look again
                continue
            return stands if written is None else standing(written, intent)
        raise SluiceError(f"FlinkDeployment {resource.reference} changes too often to be written")

    # --- looking

    def _follow(
        self, intent: Intent, generation: int, error_before: str | None, wanted: Mapping[str, int], seconds: float
    ) -> str | None:
        """Until the operator reports the generation stable and all tasks run.

        Args:
            error_before: the operator's error before the change, which it may keep for a while.

        Returns:
            A remark, where the job runs as wanted, but is not called stable in time.

        Raises:
            _NotBroughtAbout: they do not.
            _SomeoneElse: the spec was changed again.
        """
        until, read_s, state, reason = self._clock() + seconds, float("-inf"), "waiting", ""
        while True:
            missing = self._missing(wanted, intent.before)
            if self._clock() >= read_s + _READ_EVERY_S:
                read_s, (state, reason) = self._clock(), self._progress(intent, generation, error_before)
            if state == "failed":
                raise _NotBroughtAbout(reason)
            if missing is None and state == "stable":
                return None
            if self._clock() > until:
                if missing is None and state == "running":
                    return f"the operator did not call it stable within {seconds:g} s"
                raise _NotBroughtAbout(f"{missing or reason} after {seconds:g} s")
            self._beat()
            self._sleep(LOOK_EVERY_S)

    def _progress(self, intent: Intent, generation: int, error_before: str | None) -> tuple[str, str]:
        try:
            resource = self._read(intent)
        except SluiceError as error:  # it may answer later
            return "waiting", str(error)
        now = progress(resource, generation, error_before)
        if now.state == "overtaken":
            raise _SomeoneElse(_changed(resource))
        return now.state, now.reason

    def _missing(self, wanted: Mapping[str, int], former: Mapping[str, int]) -> str | None:
        """What Flink does not run as wanted yet."""
        try:
            running, what = awaited(self._rest, self._job, wanted)
        except SluiceError as error:  # the job has ended; the operator may deploy it again
            running, what = None, str(error)
        self._ran_s = None if what is not None else self._clock() if self._ran_s is None else self._ran_s
        if what is not None and running is not None and all(running.parallelism.get(v) == n for v, n in former.items()):
            self._up_s = self._clock()
        return what

    def _ended(self, done: CarriedDone, why: str | None, *, someone_else: bool = False) -> Carried:
        now_s = self._ran_s if done == "rescaled" and self._ran_s is not None else self._clock()
        downtime_s = now_s - self._up_s if done == "rescaled" else None
        return Carried(done, self._job, now_s - self._begun_s, downtime_s, why, None, someone_else)


def _changed(resource: FlinkDeployment) -> str:
    return f"somebody else has changed FlinkDeployment {resource.reference} meanwhile"


def _unchanged(error: SluiceError) -> str:
    return str(error) if _UNCHANGED in str(error) else f"{error}; {_UNCHANGED}"
