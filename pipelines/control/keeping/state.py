"""Keeps the state of an autopilot for readers, and for the process after it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from models.scaling.control.guard import ActionHistory
from pipelines.apply.application import without_password
from pipelines.control.files import AutopilotFiles, AutopilotState, Phase
from pipelines.control.keeping.lease import Lease
from pipelines.control.record import AutopilotDecision
from pipelines.control.request import AutopilotRequest, Clocks

WRITE_EVERY_S: Final = 5.0


class StateKeeper:
    """Of one autopilot."""

    def __init__(
        self, files: AutopilotFiles, request: AutopilotRequest, lease: Lease, clocks: Clocks, every_s: float
    ) -> None:
        self._files, self._request, self._lease = files, request, lease
        self._clocks, self._every_s = clocks, every_s
        self._started_at: datetime = clocks.now()
        self._newest: AutopilotDecision | None = None
        self._history = ActionHistory()
        self._phase: Phase = "observing"
        self._written_s = float("-inf")
        self.required: Mapping[str, int] | None = None
        self.flink_job: str | None = None

    def keep(self, newest: AutopilotDecision, history: ActionHistory) -> None:
        """After a decision."""
        news = self._newest is None or (newest.done, newest.held) != (self._newest.done, self._newest.held)
        self._newest, self._history = newest, history
        self._phase = "stopped" if newest.held == "stopped" else "observing"
        self._write(always=news)

    def acting(self, history: ActionHistory) -> None:
        """Before an action."""
        self._phase, self._history = "acting", history
        self._write(always=True)

    def beat(self) -> None:
        """Something happens still."""
        self._write()

    def end(self, history: ActionHistory) -> None:
        self._phase, self._history = "ended", history
        self._write(always=True)

    def _write(self, *, always: bool = False) -> None:
        if not always and self._clocks.monotonic() - self._written_s < WRITE_EVERY_S:
            return
        self._written_s = self._clocks.monotonic()
        now, limits, request = self._clocks.now(), self._request.limits, self._request
        self._files.keep_state(
            AutopilotState(
                job=request.job,
                flink_url=without_password(request.flink_url),
                flink_name=request.flink_name,
                flink_job=self.flink_job,
                resource=None if request.deployment is None else request.deployment.reference,
                policy=request.policy,
                settings=request.settings,
                dry_run=request.dry_run,
                limits=limits,
                phase=self._phase,
                fence=self._lease.number,
                holder=self._lease.holder,
                started_at=self._started_at,
                beat_at=now,
                every_s=self._every_s,
                required=None if self.required is None else dict(self.required),
                rescales_in_a_day=self._history.in_a_day(now),
                rolled_back_in_a_day=self._history.failed_in_a_day(now),
                backing_off_until=_ahead(self._history.backs_off_until(limits), now),
                respects_until=_ahead(self._history.respects_until(limits), now),
                newest=self._newest,
            )
        )


def _ahead(until: datetime | None, now: datetime) -> datetime | None:
    return until if until is not None and until > now else None
