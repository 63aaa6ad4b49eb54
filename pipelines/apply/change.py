"""The two ways to change a running job's parallelism; each can be undone."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol

from flink_client.jobs.restart import Restart
from flink_client.jobs.running import has_ended
from flink_client.rest.client import FlinkRest
from flink_client.rest.jobs import resource_requirements
from flink_client.rest.waiting import wait_for
from models.errors import SluiceError
from pipelines.apply.preparation import Preparation
from testbeds.flink.placement_hook import write_placement

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
    """By a savepoint and a restart."""

    def __init__(self, rest: FlinkRest, preparation: Preparation, restart: Restart) -> None:
        self._rest, self._job, self._restart = rest, preparation.job, restart
        self._wanted = self._job.parallelism | dict(preparation.wanted)
        self._savepoint: str | None = None
        self._id = self._job.id

    def make(self, reached: Reached) -> str:
        self._savepoint = self._rest.savepoint(self._id, self._restart.savepoints, cancel=True)
        self._wait_until_ended()
        self._id = self._restart.run(self._rest, self._wanted, self._savepoint)
        return self._id

    def undo_beside_flink(self) -> None:
        pass

    def undo(self) -> str:
        """A job whose savepoint failed keeps running unchanged."""
        if self._savepoint is not None:
            with suppress(SluiceError):  # the job that was started may have ended by itself
                self._rest.cancel(self._id)
            self._wait_until_ended()
            try:
                self._id = self._restart.run(self._rest, self._job.parallelism, self._savepoint)
            except SluiceError as error:
                raise SluiceError(f"{error}; its savepoint is {self._savepoint}") from error
        return self._id

    def _wait_until_ended(self) -> None:
        wait_for(lambda: has_ended(self._rest, self._id) or None, 60.0, f"the end of job {self._id}")
