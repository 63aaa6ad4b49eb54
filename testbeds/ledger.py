"""What a measurement puts on a user's cluster, on record before it is put there.

A process that ends in order removes it all, and its record. After `kill -9` the record stays, without the lock that only a
living process holds; who next uses the cluster removes what is on it.
"""

import fcntl
import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TextIO

from models.closing import Closing

Entry = Mapping[str, str]
"""What was put there: its kind in `kind`, and what tells it from others."""


class Ledger(Closing):
    """The record of this process for one cluster; a file from the first entry on."""

    def __init__(self, cluster: str) -> None:
        """
        Args:
            cluster: what tells the cluster from others.
        """
        self._cluster = cluster
        self._path: Path | None = None
        self._file: TextIO | None = None

    def note(self, entry: Entry) -> None:
        """Record what will be put on the cluster; it is on the disk when this returns."""
        if self._file is None:
            self._file = self._begun()
        self._file.write(json.dumps(dict(entry)) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self, *, removed: bool = True) -> None:
        """May be called twice.

        Args:
            removed: whether nothing is left on the cluster; if not, the record stays for the next process.
        """
        if self._file is not None and self._path is not None:
            if removed:
                self._path.unlink(missing_ok=True)
            self._file.close()
        self._file = self._path = None

    def _begun(self) -> TextIO:
        """A new file; it gets the name that others look for once it is locked."""
        folder = _folder()
        folder.mkdir(parents=True, exist_ok=True)
        token = secrets.token_hex(8)
        partial = folder / f".{token}"
        file = partial.open("w")
        fcntl.flock(file, fcntl.LOCK_EX)
        self._path = partial.rename(folder / f"{_key(self._cluster)}-{token}.jsonl")
        return file


def abandoned(cluster: str) -> Iterator[tuple[Entry, ...]]:
    """The records of processes that have ended; each is forgotten when the next one is asked for."""
    for path in sorted(_folder().glob(f"{_key(cluster)}-*.jsonl")):
        try:
            found = path.open()
        except FileNotFoundError:  # its process has ended meanwhile, and left nothing
            continue
        with found as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            # What a line that is cut off would have said has not been done.
            yield tuple(json.loads(line) for line in file if line.endswith("\n"))
            path.unlink(missing_ok=True)


def _folder() -> Path:
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "sluice" / "on-clusters"


def _key(cluster: str) -> str:
    return hashlib.sha256(cluster.encode()).hexdigest()[:16]
