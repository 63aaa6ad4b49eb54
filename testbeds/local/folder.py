"""The folder of a server's files for as long as its owner lives, and the removal of those left by killed owners."""

import fcntl
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

from testbeds.local.cache import cache_folder


def own_folder(kind: str, clean_up: Callable[[Path], None] = lambda left: None) -> tuple[Path, IO[str]]:
    """A new folder, and a file in it that stays locked for as long as this process lives.

    Args:
        kind: name of the folder in the user's cache that holds all of its kind.
        clean_up: called with each folder that a killed process left, before it is removed.
    """
    folders = cache_folder() / kind
    folders.mkdir(parents=True, exist_ok=True)
    with (folders / "lock").open("w") as all_of_them:
        fcntl.flock(all_of_them, fcntl.LOCK_EX)
        for left in (path for path in folders.iterdir() if path.is_dir()):
            _remove_if_left(left, clean_up)
        folder = Path(tempfile.mkdtemp(dir=folders))
        owner = (folder / "owner").open("w")
        fcntl.flock(owner, fcntl.LOCK_EX)
    return folder, owner


def _remove_if_left(folder: Path, clean_up: Callable[[Path], None]) -> None:
    with (folder / "owner").open("a") as owner:
        try:
            fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        clean_up(folder)
        shutil.rmtree(folder, ignore_errors=True)
