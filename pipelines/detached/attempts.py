"""The files of the attempts at a stage. An attempt is one process that runs it.

    runs/J/R/attempts/STAGE/000001/attempt.json    created exclusively by who starts the process
                                   state.json      rewritten by the process every BEAT_S seconds
                                   progress.json   its lines for people, written before the state that counts them
                                   followed.json   rewritten by a follower every FOLLOW_EVERY_S seconds
                                   stop.json       asks the process to stop
                                   outcome.json    created exclusively: how it ended

An attempt is open until it has an outcome or is asked to stop; the next one can begin only then. Most outcomes are the
process's own. A follower that sees the state unchanged for LOST_S seconds of its own clock gives it the outcome `lost`;
a process that was only halted finds that outcome and stops. The lock of the run keeps two processes from measuring at
the same time even then.
"""

import re
import secrets
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final, Literal, TypeVar

from pydantic import Field

from models.schema import SCHEMA_VERSION, Format, Label, Positive
from pipelines.store.locks import this_process
from pipelines.store.workspace import Missing, Workspace, to_json

BEAT_S: Final = 5.0
LOST_S: Final = 60.0
FOLLOW_EVERY_S: Final = 60.0
_NUMBER: Final = re.compile(r"(\d{6,})/attempt\.json")

File = TypeVar("File", bound=Format)
Kind = Literal["done", "refused", "failed", "timed-out", "stopped", "lost"]


class AttemptRecord(Format):
    """An attempt, as it was begun."""

    schema_version: Literal[1] = SCHEMA_VERSION
    begun_at: datetime
    limit_s: Positive = Field(description="Time after which the process stops itself, seconds.")


class AttemptState(Format):
    """The newest state of a process."""

    schema_version: Literal[1] = SCHEMA_VERSION
    holder: Label = Field(description="Process and host.")
    beat: str = Field(description="Another text at each renewal.")
    lines: int = Field(ge=0, description="Lines of progress so far.")


class ProgressLines(Format):
    """What a process has said."""

    schema_version: Literal[1] = SCHEMA_VERSION
    lines: tuple[str, ...] = ()


class Sign(Format):
    """A sign of a follower, or of who asks the process to stop."""

    schema_version: Literal[1] = SCHEMA_VERSION
    by: Label
    beat: str


class Outcome(Format):
    """How an attempt ended."""

    schema_version: Literal[1] = SCHEMA_VERSION
    kind: Kind = Field(description="`refused`: an error that Sluice raises deliberately, and would raise again.")
    text: str = Field(description="URI of the stage's output if it is done, else what happened.")


class Attempt:
    """One attempt at a stage.

    Args:
        folder: workspace key of its folder.
    """

    def __init__(self, workspace: Workspace, folder: str, number: int) -> None:
        self._workspace, self.number = workspace, number
        self._folder = f"{folder}/{number:06d}"

    @property
    def record(self) -> AttemptRecord:
        return self._workspace.read(self._key("attempt"), AttemptRecord)

    @property
    def state(self) -> AttemptState | None:
        """None until the process has started."""
        return self._read("state", AttemptState)

    @property
    def outcome(self) -> Outcome | None:
        """None while it runs."""
        return self._read("outcome", Outcome)

    @property
    def progress(self) -> ProgressLines:
        return self._read("progress", ProgressLines) or ProgressLines()

    @property
    def followed(self) -> Sign | None:
        """The last sign of a follower."""
        return self._read("followed", Sign)

    @property
    def is_to_stop(self) -> bool:
        return self._workspace.exists(self._key("stop"))

    @property
    def is_open(self) -> bool:
        """Whether it may be followed: it has not ended, and shall not."""
        return self.outcome is None and not self.is_to_stop

    def begin(self, limit_s: float) -> None:
        """Raises FileExistsError: someone else has begun it."""
        record = AttemptRecord(begun_at=datetime.now(UTC), limit_s=limit_s)
        self._workspace.create_bytes(self._key("attempt"), to_json(record))

    def beat(self, lines: int) -> None:
        state = AttemptState(holder=this_process(), beat=secrets.token_hex(8), lines=lines)
        self._workspace.write(self._key("state"), state)

    def say(self, lines: tuple[str, ...]) -> None:
        """Store all lines so far."""
        self._workspace.write(self._key("progress"), ProgressLines(lines=lines))

    def follow(self) -> None:
        """Let the process know that it is followed."""
        self._workspace.write(self._key("followed"), _sign())

    def stop(self) -> None:
        """Ask the process to stop, wherever it runs."""
        self._workspace.write(self._key("stop"), _sign())

    def end(self, outcome: Outcome) -> Outcome:
        """Record how it ended, unless that is on record; returns what is."""
        with suppress(FileExistsError):
            self._workspace.create_bytes(self._key("outcome"), to_json(outcome))
        return self._workspace.read(self._key("outcome"), Outcome)

    def _read(self, name: str, kind: type[File]) -> File | None:
        try:
            return self._workspace.read(self._key(name), kind)
        except Missing:
            return None

    def _key(self, name: str) -> str:
        return f"{self._folder}/{name}.json"


class Attempts:
    """All attempts at a stage of one run.

    Args:
        request_uri: URI of the run's request.
    """

    def __init__(self, request_uri: str, stage: str) -> None:
        root, _, key = request_uri.rpartition("/runs/")
        self._workspace = Workspace(root)
        self._folder = f"runs/{key.rpartition('/')[0]}/attempts/{stage}"

    def of(self, number: int) -> Attempt:
        return Attempt(self._workspace, self._folder, number)

    def newest(self) -> Attempt | None:
        """None before the first."""
        keys = self._workspace.list(self._folder)
        numbers = [int(match[1]) for key in keys if (match := _NUMBER.fullmatch(key[len(self._folder) + 1 :]))]
        return self.of(max(numbers)) if numbers else None


def _sign() -> Sign:
    return Sign(by=this_process(), beat=secrets.token_hex(8))
