"""Carrying out an intent by a savepoint and a restart, for schedulers that cannot rescale a running job.

The savepoint's request and the jobs have ids that the intent fixes, so that each step may be repeated. Where an answer is lost,
what was asked for is looked for until it shows: a savepoint ends the job, and a program that is being started may run later.
"""

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from flink_client.jobs.restart import Restart
from flink_client.jobs.running import NotRunning
from flink_client.rest.answers import ENDED
from flink_client.rest.client import FlinkRest
from flink_client.rest.snapshots import SnapshotFailed, snapshot_result
from flink_client.rest.transport import Refused
from flink_client.rest.waiting import TimedOut
from models.errors import InvalidInput, SluiceError
from pipelines.control.actions.carrying import BACK_S, Carried, Carrying
from pipelines.control.actions.intents import SAVEPOINT, TAKING_BACK, Intent, IntentJournal, IntentStep

CLOCKS_DIFFER: Final = timedelta(minutes=1)
"""More than Flink's clock and that of this machine differ by."""


class RestartActuator:
    """Carries out the intents of one job that take a restart."""

    def __init__(
        self, rest: FlinkRest, journal: IntentJournal, restart: Restart, carrying: Carrying, *, timeout_s: float
    ) -> None:
        """
        Args:
            restart: the program.
            timeout_s: for the savepoint, for the program to be started, and for the wanted tasks to run.
        """
        self._rest, self._journal, self._restart, self._carrying = rest, journal, restart, carrying
        self._timeout_s = timeout_s

    def carry_out(self, intent: Intent) -> Carried:
        """Bring an intent to its end, from wherever it stands.

        Raises:
            SluiceError: Flink did not answer, the savepoint is not complete, or `beat` ended it; it can be carried out later.
        """
        carrying = self._carrying
        carrying.begin()
        if (step := self._journal.marked(intent.number, TAKING_BACK)) is not None:
            return self._start_former(intent, self._savepoint(intent), step.said)
        try:
            savepoint = self._savepoint(intent)
        except SnapshotFailed as error:
            if carrying.state(intent.flink_job) in ENDED:
                return carrying.ended("failed", intent.flink_job, f"{error}; the job has ended")
            return carrying.ended("refused", intent.flink_job, f"no savepoint: {error}; the job runs on")
        try:
            self._start(intent.new_job, intent.wanted, savepoint)
            carrying.until_runs(intent.new_job, intent.wanted, {}, self._timeout_s)
        except (NotRunning, TimedOut, InvalidInput) as error:
            self._journal.mark(intent.number, TAKING_BACK, IntentStep(at=datetime.now(UTC), said=str(error)))
            return self._start_former(intent, savepoint, str(error))
        return carrying.ended("rescaled", intent.new_job, None)

    def _savepoint(self, intent: Intent) -> str:
        """The savepoint, taken if it was not yet; the job has ended then.

        Raises:
            SnapshotFailed: Flink takes none.
            SluiceError: whether Flink takes one is not known yet, or the job still runs.
        """
        if (step := self._journal.marked(intent.number, SAVEPOINT)) is not None:
            savepoint = step.said
        else:
            savepoint = self._taken(intent)
            self._journal.mark(intent.number, SAVEPOINT, IntentStep(at=datetime.now(UTC), said=savepoint))
        self._until_ended(intent.flink_job)
        return savepoint

    def _taken(self, intent: Intent) -> str:
        """Asked for, unless it was; as it ends the job whenever it completes, a wait in vain decides nothing."""
        job, trigger = intent.flink_job, intent.savepoint_trigger
        path, what = f"/jobs/{job}/savepoints/{trigger}", f"the savepoint of job {job}"
        if self._rest.get_if_there(path) is None:
            if self._carrying.state(job) in ENDED:
                return self._of_ended(intent)
            try:
                self._rest.trigger_savepoint(job, self._restart.savepoints, cancel=True, trigger=trigger)
            except Refused as error:
                raise SnapshotFailed(str(error)) from error
        outcome: dict[str, Any] = {}

        def missing() -> str | None:
            outcome.update(self._rest.outcome(path) or {})
            return None if outcome else f"{what} is not complete"

        try:
            self._carrying.until(missing, self._timeout_s)
        except (TimedOut, Refused) as error:
            raise SluiceError(str(error)) from error
        return str(snapshot_result(outcome, what, "location"))

    def _of_ended(self, intent: Intent) -> str:
        """The savepoint with which the job was cancelled, that Flink remembers with it."""
        latest = (self._rest.get_if_there(f"/jobs/{intent.flink_job}/checkpoints") or {}).get("latest") or {}
        found = latest.get("savepoint") or {}
        earliest_ms = 1000 * (intent.intended_at - CLOCKS_DIFFER).timestamp()
        if not found.get("external_path") or found.get("trigger_timestamp", 0) < earliest_ms:
            raise SnapshotFailed(f"job {intent.flink_job} has ended without a savepoint of this action")
        return str(found["external_path"])

    def _start(self, job: str, tasks: Mapping[str, int], savepoint: str) -> None:
        self._restart.start(
            self._rest, tasks, savepoint, job, lambda missing: self._carrying.until(missing, self._timeout_s)
        )

    def _start_former(self, intent: Intent, savepoint: str, why: str) -> Carried:
        carrying = self._carrying
        try:
            self._end(intent.new_job)
            self._start(intent.former_job, intent.before, savepoint)
            carrying.until_runs(intent.former_job, intent.before, {}, max(self._timeout_s, BACK_S))
            self._end(intent.new_job)  # it may have been started since
        except (NotRunning, TimedOut, InvalidInput) as error:
            said = f"{why}; starting the former tasks failed, too: {error}; its savepoint is {savepoint}"
            return carrying.ended("failed", intent.former_job, said)
        return carrying.ended("rolled-back", intent.former_job, why)

    def _end(self, job: str) -> None:
        """Cancel the job if Flink knows it."""
        if self._carrying.state(job) in (None, *ENDED):
            return
        with suppress(SluiceError):  # it may end by itself
            self._rest.cancel(job)
        self._until_ended(job)

    def _until_ended(self, job: str) -> None:
        ended = (None, *ENDED)
        try:
            self._carrying.until(
                lambda: None if self._carrying.state(job) in ended else f"job {job} still runs", BACK_S
            )
        except TimedOut as error:  # nothing may be started beside it
            raise SluiceError(str(error)) from error
