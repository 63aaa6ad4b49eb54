"""Cached folders that are made once per user, completely or not at all."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from models.errors import SluiceError


def cache_folder() -> Path:
    """The folder for everything that can be fetched or built again: SLUICE_CACHE, else `sluice` in the user's cache."""
    if named := os.environ.get("SLUICE_CACHE"):
        return Path(named).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sluice"


def made_once(folder: Path, make: Callable[[Path], None], whole: Callable[[Path], bool] = Path.is_dir) -> Path:
    """`folder`, filled by `make` if it is missing or not `whole`.

    `make` fills an empty folder beside it, which is then renamed. One process makes it, while others wait.

    Raises:
        SluiceError: the disk is full, or the folder cannot be written.
    """
    if whole(folder):
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locked(folder.with_name(f"{folder.name}.lock")):
            if not whole(folder):
                _replace(folder, make)
    except OSError as error:
        raise SluiceError(
            f"{folder} could not be made: {error.strerror or error}; free some space, or name another folder by the "
            f"environment variable SLUICE_CACHE"
        ) from error
    return folder


def _replace(folder: Path, make: Callable[[Path], None]) -> None:
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as partial:
        made = Path(partial) / "made"
        made.mkdir()
        make(made)
        if folder.exists():
            folder.rename(Path(partial) / "damaged")
        made.rename(folder)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock between processes; the system releases it when its holder dies."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def free_mb(folder: Path) -> float:
    """Free space on the disk of `folder` (or of its nearest existing parent), MiB."""
    there = next(path for path in (folder, *folder.parents) if path.exists())
    return shutil.disk_usage(there).free / 2**20
