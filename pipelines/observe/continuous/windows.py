"""Readings of a running job, stored one by one until the window that they belong to is over.

    observing/JOB/WINDOW/READING.json.gz    a reading; times are UTC and begin at multiples of their length
    observing/JOB/WINDOW/finished.json      the window's samples are stored

A reading is created exclusively and a window finished once, so that a process that was killed resumes where it was, and two
processes that observe the same job do not count anything twice. The last reading of a window stays until the next window is
finished: what tasks did between the two belongs to the later one, so that nothing between windows, or while no process ran,
is lost.
"""

import gzip
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Final, Literal

from pydantic import Field, TypeAdapter

from models.capacity.observed.counters.counts import JobCounts
from models.schema import SCHEMA_VERSION, Format, Name
from pipelines.store.workspace import Missing, Workspace, to_json

FOLDER: Final = "observing"
_FINISHED: Final = "finished.json"
_READING: Final = ".json.gz"
_TIME: Final = "%Y%m%dT%H%M%SZ"
_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class KeptReading:
    """One reading of a job's counters."""

    job: str
    """Flink's id: another one once the job was deployed again."""
    operators: dict[str, str] | None
    """Operator of the job's file by vertex id; None where the file does not fit the job."""
    counts: JobCounts
    """Dated by the time of day, seconds since the epoch."""


class FinishedWindow(Format):
    """A window of a job that is over, and what is stored of it."""

    schema_version: Literal[1] = Field(SCHEMA_VERSION, description="Version of this format.")
    job: Name = Field(description="Job that was observed.")
    began: datetime = Field(description="ISO 8601, UTC.")
    samples: str | None = Field(description="Workspace key; null where no task ran from one reading to the next.")
    observed: str | None = Field(description="Workspace key of what was seen; null where the job had ended.")


@dataclass(frozen=True)
class Windows:
    """The windows of one job."""

    workspace: Workspace
    job: str

    def has(self, window_s: float, at_s: float) -> bool:
        """Whether there is a reading of this time."""
        return self.workspace.exists(self._key(window_s, at_s))

    def keep(self, window_s: float, at_s: float, reading: KeptReading) -> bool:
        """Store a reading; False if another process was faster.

        Args:
            at_s: the time that it is the reading of, a multiple of the time between two.
        """
        try:
            content = gzip.compress(_adapter().dump_json(reading), compresslevel=1)
            self.workspace.create_bytes(self._key(window_s, at_s), content)
        except FileExistsError:
            return False
        return True

    def overdue(self, window_s: float, now_s: float) -> list[str]:
        """Names of the windows that are over and not finished, in the order of time."""
        current = _name(now_s - now_s % window_s)
        return [
            name for name, keys in self._all() if name < current and f"{self._folder(name)}/{_FINISHED}" not in keys
        ]

    def readings(self, window: str) -> list[KeptReading]:
        """Those of a window, and the last one before it; damaged ones are logged, and covered by the next.

        Raises:
            Missing: another process is finishing it.
        """
        before = [key for name, keys in self._all() if name < window for key in keys if key.endswith(_READING)]
        own = [key for name, keys in self._all() if name == window for key in keys if key.endswith(_READING)]
        found = (self._read(key) for key in (*before[-1:], *own))
        return sorted((one for one in found if one is not None), key=lambda reading: reading.counts.time_s)

    def finish(self, window: str, finished: FinishedWindow) -> bool:
        """Mark a window, and remove readings that no later window needs; False if another process was faster."""
        try:
            self.workspace.create_bytes(f"{self._folder(window)}/{_FINISHED}", to_json(finished))
            first = True
        except FileExistsError:
            first = False
        own = [key for name, keys in self._all() if name == window for key in keys if key.endswith(_READING)]
        older = [key for name, keys in self._all() if name < window for key in keys]
        # Marks are removed last: a window without one is finished again.
        for key in (*own[:-1], *sorted(older, key=lambda key: key.endswith(_FINISHED))):
            self.workspace.delete(key)
        return first

    @staticmethod
    def began(window: str) -> datetime:
        """When a window began."""
        return datetime.strptime(window, _TIME).replace(tzinfo=UTC)

    def _all(self) -> Iterator[tuple[str, list[str]]]:
        """Windows in the order of time, with their keys."""
        found: dict[str, list[str]] = {}
        for key in self.workspace.list(f"{FOLDER}/{self.job}"):
            found.setdefault(key.split("/")[2], []).append(key)
        yield from sorted(found.items())

    def _read(self, key: str) -> KeptReading | None:
        try:
            return _adapter().validate_json(gzip.decompress(self.workspace.read_bytes(key)))
        except Missing:
            raise
        except (OSError, EOFError, ValueError) as error:
            _logger.warning("the reading %s is damaged and left out: %.200s", self.workspace.uri(key), error)
            return None

    def _key(self, window_s: float, at_s: float) -> str:
        return f"{self._folder(_name(at_s - at_s % window_s))}/{_name(at_s)}{_READING}"

    def _folder(self, window: str) -> str:
        return f"{FOLDER}/{self.job}/{window}"


@cache
def _adapter() -> TypeAdapter[KeptReading]:
    return TypeAdapter(KeptReading)


def _name(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime(_TIME)
