"""The two ways to change a running job's parallelism; each can be undone."""

import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, Protocol

from flink_client.jobs.restart import Missing, Restart
from flink_client.jobs.running import has_ended
from flink_client.rest.client import FlinkRest
from flink_client.rest.jobs import resource_requirements
from flink_client.rest.snapshots import SnapshotFailed
from flink_client.rest.waiting import wait_for
from models.errors import SluiceError
from pipelines.apply.preparation import Preparation
from testbeds.flink.placement_hook import write_placement

SAVEPOINT_S: Final = 660.0
"""Longest wait for a savepoint that is not complete when the change is undone: by default Flink gives up after ten minutes."""
STEP_S: Final = 60.0
Reached = Callable[[str, Mapping[str, int]], None]
"""Waits until a job runs with these tasks by vertex id; raises SluiceError if it does not."""


class Change(Protocol):
    """`make` and `undo` return Flink's id of the job afterwards, which may not run yet."""

    def make(self, reached: Reached) -> str: ...

    def undo(self) -> str: ...

    def undo_beside_flink(self) -> None:
        """Undo what was prepared in files, where Flink has accepted no change."""


def change_for(rest: FlinkRest, preparation: Preparation) -> Change:
    if preparation.restart is not None:
        return _Restarted(rest, preparation, preparation.restart)
    return _Rescaled(rest, preparation)


class _Rescaled:
    """Through resource requirements, while the job runs (adaptive scheduler)."""

    def __init__(self, rest: FlinkRest, preparation: Preparation) -> None:
        self._rest, self._wanted, self._move = rest, preparation.wanted, preparation.move
        self._id = preparation.job.id
        self._path = f"/jobs/{self._id}/resource-requirements"
        self._before: dict[str, Any] = rest.get(self._path)
        self._placement_before = "" if self._move is None else self._move.file.read_text(encoding="utf-8")

    def make(self, reached: Reached) -> str:
        if self._move is not None:
            write_placement(self._move.file, self._move.lines)
            if self._move.detour is not None:
                self._require(self._move.detour)
                reached(self._id, self._move.detour)
        self._require(self._wanted)
        return self._id

    def undo_beside_flink(self) -> None:
        if self._move is not None:
            write_placement(self._move.file, self._placement_before)

    def undo(self) -> str:
        self.undo_beside_flink()
        self._rest.put(self._path, self._before)
        return self._id

    def _require(self, tasks: Mapping[str, int]) -> None:
        self._rest.put(self._path, self._before | resource_requirements(tasks))


class _Restarted:
    """By a savepoint and a restart.

    The savepoint's request and the jobs have ids of their own, by which is found what Flink did where its answer was lost or
    nothing waited for it: a savepoint ends the job whenever it completes.
    """

    def __init__(self, rest: FlinkRest, preparation: Preparation, restart: Restart) -> None:
        self._rest, self._job, self._restart = rest, preparation.job, restart
        self._wanted = self._job.parallelism | dict(preparation.wanted)
        self._trigger, self._new, self._former = (secrets.token_hex(16) for _ in range(3))
        self._savepoint: str | None = None

    def make(self, reached: Reached) -> str:
        self._savepoint = self._rest.savepoint(
            self._job.id, self._restart.savepoints, cancel=True, trigger=self._trigger
        )
        self._wait_until_ended(self._job.id)
        self._start(self._new, self._wanted, self._savepoint)
        return self._new

    def undo_beside_flink(self) -> None:
        pass

    def undo(self) -> str:
        """A job whose savepoint failed keeps running unchanged."""
        savepoint = self._savepoint or self._late_savepoint()
        if savepoint is None:
            return self._job.id
        try:
            self._wait_until_ended(self._job.id)
            self._end(self._new)
            self._start(self._former, self._job.parallelism, savepoint)
            self._end(self._new)  # it may have been started since
        except SluiceError as error:
            raise SluiceError(f"{error}; its savepoint is {savepoint}") from error
        return self._former

    def _late_savepoint(self) -> str | None:
        """The savepoint that was asked for and is not complete yet; None if Flink took none."""
        path = f"/jobs/{self._job.id}/savepoints/{self._trigger}"
        if self._rest.get_if_there(path) is None:
            return None
        try:
            return self._rest.savepoint_of(path, SAVEPOINT_S)
        except SnapshotFailed:
            return None

    def _start(self, job: str, tasks: Mapping[str, int], savepoint: str) -> None:
        def until(missing: Missing) -> None:
            wait_for(
                lambda: True if missing() is None else None, STEP_S, f"job {job}, whose program was to be started,"
            )

        self._restart.start(self._rest, tasks, savepoint, job, until)

    def _end(self, job: str) -> None:
        """Cancel the job if Flink knows it."""
        if self._rest.get_if_there(f"/jobs/{job}") is not None:
            with suppress(SluiceError):  # it may end by itself
                self._rest.cancel(job)
            self._wait_until_ended(job)

    def _wait_until_ended(self, job: str) -> None:
        wait_for(lambda: has_ended(self._rest, job) or None, STEP_S, f"the end of job {job}")
