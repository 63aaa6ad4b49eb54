"""Writes a plan into a `FlinkDeployment`, follows the operator, and restores the former spec if it fails."""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from flink_client.jobs.running import awaited
from flink_client.kubernetes.progress import progress
from flink_client.kubernetes.resource import FlinkDeployment
from flink_client.rest.client import FlinkRest
from models.errors import SluiceError
from pipelines.apply.application import without_password
from pipelines.apply.applied import Applied, Effect, Outcome, compared
from pipelines.apply.effect import BEFORE_S, observed
from pipelines.apply.export import annotations
from pipelines.apply.kubernetes.preparing import ResourcePreparation
from pipelines.store.digests import digest

_LOOK_EVERY_S: Final = 1.0
_BACK_S: Final = 60.0
"""Shortest time limit for the former spec to be stable again."""


class ResourceApi(Protocol):
    """What applying takes of the API server; `flink_client.kubernetes.api` is it."""

    def read(self, namespace: str, name: str) -> FlinkDeployment: ...

    def patch(
        self,
        resource: FlinkDeployment,
        spec: Mapping[str, Any],
        annotations: Mapping[str, str | None],
        *,
        dry_run: bool = False,
    ) -> FlinkDeployment: ...


def rehearse_on(api: ResourceApi, prepared: ResourcePreparation) -> None:
    """Have the API server validate and admit the change without storing it.

    Raises:
        SluiceError: it would refuse the change.
    """
    if prepared.change.spec:
        api.patch(prepared.resource, prepared.change.spec, annotations(prepared.plan), dry_run=True)


def apply_to_resource(
    api: ResourceApi,
    prepared: ResourcePreparation,
    *,
    rest: FlinkRest | None,
    timeout_s: float,
    observe_s: float,
    say: Callable[[str], None] = lambda what: None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Applied:
    """Make the operator run the plan, or restore the former spec if that fails.

    Args:
        rest: the Flink that the resource deploys: its tasks are verified, and the job is observed; None: neither.
        timeout_s: for the operator; restoring the former spec gets as much time, and at least a minute.
        observe_s: how long the job is observed afterwards, and up to 15 s before; 0: not at all. A plan that makes the
            job worse is then not noticed.
        say: called with each step.

    Returns:
        The outcome; failures after the change was written are recorded in it, not raised.

    Raises:
        SluiceError: the API server refused the change; nothing was changed.
        KeyboardInterrupt: it was stopped; the former spec was written again.
    """
    return _ResourceApplication(api, prepared, rest, timeout_s, observe_s, say, clock, sleep).applied()


@dataclass(frozen=True)
class _Ended:
    outcome: Outcome
    reason: str
    advice: tuple[str, ...] = ()
    effect: Effect | None = None


class _NotReached(SluiceError):
    """The operator did not get there."""


class _Overtaken(SluiceError):
    """Somebody else has changed the resource since."""


class _ResourceApplication:
    def __init__(
        self,
        api: ResourceApi,
        prepared: ResourcePreparation,
        rest: FlinkRest | None,
        timeout_s: float,
        observe_s: float,
        say: Callable[[str], None],
        clock: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> None:
        self._api, self._prepared, self._rest = api, prepared, rest
        self._timeout_s, self._observe_s = timeout_s, observe_s
        self._say, self._clock, self._sleep = say, clock, sleep
        self._begin, self._last = clock(), prepared.resource

    def applied(self) -> Applied:
        started_at = datetime.now(UTC).isoformat(timespec="seconds")
        ended, prepared = self._end(), self._prepared
        return Applied(
            job=prepared.plan.job,
            version=prepared.plan.version,
            plan_digest=digest(prepared.plan),
            flink_url=None if self._rest is None else without_password(self._rest.url),
            resource=prepared.resource.reference,
            flink_job=self._last.job_id,
            started_at=started_at,
            seconds=round(self._clock() - self._begin, 3),
            method=prepared.method,
            placement="advice",
            outcome=ended.outcome,
            reason=ended.reason,
            changes=prepared.changes,
            advice=(*prepared.advice, *ended.advice),
            effect=ended.effect,
        )

    def _end(self) -> _Ended:
        prepared = self._prepared
        if prepared.method == "none":
            return _Ended("unchanged", f"FlinkDeployment {prepared.resource.reference} states the plan already")
        before, effect = self._observed(min(self._observe_s, BEFORE_S)), None
        written = self._api.patch(prepared.resource, prepared.change.spec, annotations(prepared.plan))
        self._say(f"patched FlinkDeployment {written.reference}, generation {written.generation}")
        try:
            advice = self._follow(written, prepared.wanted, prepared.resource.error, self._timeout_s)
            effect, worse = compared(before, self._observed(self._observe_s), prepared.plan.source_rates)
            if worse is not None:
                return self._roll_back(written, worse, effect)
        except _Overtaken as error:
            return _Ended("failed", f"{error}; the resource is left as it is now")
        except SluiceError as error:
            return self._roll_back(written, str(error))
        except KeyboardInterrupt:
            with suppress(SluiceError):
                self._restore(written)
            raise
        return _Ended("applied", "the operator runs the plan", advice, effect)

    def _follow(
        self, written: FlinkDeployment, wanted: Mapping[str, int], error_before: str | None, seconds: float
    ) -> tuple[str, ...]:
        """Wait for the operator and, where it is known, for Flink. Returns advice."""
        until, said = self._clock() + seconds, ""
        while True:
            try:
                self._last = self._api.read(written.namespace, written.name)
            except SluiceError as error:  # it may answer later
                state, reason = "waiting", str(error)
            else:
                now = progress(self._last, written.generation, error_before)
                state, reason = now.state, now.reason
            if state == "overtaken":
                raise _Overtaken(reason)
            if state == "failed":
                raise _NotReached(reason)
            if state in ("running", "stable") and (missing := self._missing(wanted)) is not None:
                state, reason = "waiting", f"{reason}, but {missing}"
            if reason != said:
                self._say(reason)
                said = reason
            if state == "stable":
                return ()
            if self._clock() >= until:
                if state == "running":
                    return (f"the operator did not call it stable within {seconds:g} s",)
                raise _NotReached(f"{reason} after {seconds:g} s")
            self._sleep(_LOOK_EVERY_S)

    def _missing(self, wanted: Mapping[str, int]) -> str | None:
        """What Flink does not run as wanted yet; None where it does, or is not known."""
        if self._rest is None or self._last.job_id is None:
            return None
        return awaited(self._rest, self._last.job_id, wanted)[1]

    def _roll_back(self, written: FlinkDeployment, why: str, effect: Effect | None = None) -> _Ended:
        self._say(f"rolling back, since {why}")
        before = {c.vertex: c.before for c in self._prepared.changes if c.before is not None}
        try:
            restored = self._restore(written)
            error_before = restored.error
            self._follow(restored, before, error_before, max(self._timeout_s, _BACK_S))
        except SluiceError as error:
            return _Ended("failed", f"{why}; restoring the former spec failed, too: {error}", effect=effect)
        return _Ended("rolled-back", f"{why}; the former spec is restored, and the job runs by it", effect=effect)

    def _restore(self, written: FlinkDeployment) -> FlinkDeployment:
        """Write the former values over ours, unless the spec was changed since; the status may have."""
        now = self._api.read(written.namespace, written.name)
        if now.generation != written.generation:
            raise _Overtaken(f"{now.reference} was changed again by somebody else meanwhile")
        before = self._prepared.resource.annotations
        notes = {name: before.get(name) for name in annotations(self._prepared.plan)}
        return self._api.patch(now, self._prepared.change.undo, notes)

    def _observed(self, seconds: float) -> Effect | None:
        if self._rest is None:
            return None
        return observed(self._rest, self._prepared, self._last.job_id, seconds, self._say)
