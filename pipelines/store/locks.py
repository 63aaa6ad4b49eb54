"""Locks by name in the workspace, across processes; a holder that dies loses its lock.

In a local folder the name is a file under an exclusive `flock`, which the kernel releases with the process that holds it,
on this machine at once, on a network file system when its server notices. Elsewhere the name is a lease: a numbered file
that is created exclusively, and rewritten by its holder every `BEAT_S` seconds. A waiter that sees the newest file
unchanged for `LEASE_S` seconds of its own clock creates the next one, which only one waiter can. A lease is weaker than a
`flock`: a holder that stalls for longer than `LEASE_S` keeps working beside its successor; even then versions of plans
are created exclusively.
"""

import fcntl
import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from pipelines.store.backends import LocalStore, Store, room_needed

BEAT_S: Final = 5.0
LEASE_S: Final = 30.0
LOOK_EVERY_S: Final = 0.2
RELEASED: Final = b"released"
_logger = logging.getLogger(__name__)


@contextmanager
def held(store: Store, name: str, say: Callable[[str], None], lease_s: float = LEASE_S) -> Iterator[None]:
    """Hold the name while the block runs, after waiting for its holder if there is one.

    Args:
        name: a path of the store that is not used otherwise.
        say: called once, with a remark for people, if another process holds the name.
    """
    with _flock(store.root / name, say) if isinstance(store, LocalStore) else _lease(store, name, say, lease_s):
        yield


def this_process() -> str:
    """Its id and its host, for people."""
    return f"process {os.getpid()} on {socket.gethostname()}"


@contextmanager
def _flock(path: Path, say: Callable[[str], None]) -> Iterator[None]:
    with room_needed(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(_waiting(os.pread(descriptor, 200, 0).decode(errors="replace") or "another process"))
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        with suppress(OSError):  # for the remark of waiting processes; a full disk must not stop the run here
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, this_process().encode(), 0)
        yield
    finally:
        os.close(descriptor)  # releases the lock; the file stays, since others may wait for it


@contextmanager
def _lease(store: Store, name: str, say: Callable[[str], None], lease_s: float) -> Iterator[None]:
    own = _acquired(store, name, say, lease_s)
    ended = threading.Event()
    beats = threading.Thread(target=_beat, args=(store, own, ended, lease_s * BEAT_S / LEASE_S), daemon=True)
    beats.start()
    try:
        yield
    finally:
        ended.set()
        beats.join()
        store.write(own, RELEASED)


def _acquired(store: Store, name: str, say: Callable[[str], None], lease_s: float) -> str:
    """The path of the lease acquired by this process."""
    seen, since, said = b"", time.monotonic(), False
    while True:
        leases = sorted(store.files(name))
        newest = leases[-1] if leases else None
        try:
            content = store.read(newest) if newest else RELEASED
        except FileNotFoundError:
            continue
        if content != seen:
            seen, since = content, time.monotonic()
        if content == RELEASED or time.monotonic() - since > lease_s:
            number = int(newest.rpartition("/")[2]) + 1 if newest else 1
            own = f"{name}/{number:012d}"
            try:
                store.create(own, _content())
            except FileExistsError:
                continue
            for old in leases[:-1]:
                store.delete(old)
            return own
        if not said:
            said = True
            say(_waiting(content.decode(errors="replace").partition("\n")[0]))
        time.sleep(LOOK_EVERY_S)


def _beat(store: Store, own: str, ended: threading.Event, every_s: float) -> None:
    while not ended.wait(every_s):
        try:
            store.write(own, _content())
        except Exception as error:  # stores raise errors of their own; the next beat may still come in time
            _logger.warning("the lease %s could not be renewed: %s", own, error)


def _content() -> bytes:
    return f"{this_process()}\n{secrets.token_hex(8)}".encode()


def _waiting(holder: str) -> str:
    return f"{holder} makes the same run; waiting for its results"
