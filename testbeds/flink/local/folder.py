"""The folder and control groups of a local cluster, and the removal of those left by killed processes."""

import fcntl
import shutil
import tempfile
from pathlib import Path
from typing import IO, Final

from flink_client.rest import wait_for
from testbeds.flink.lab.cpu import CpuGroup, cpu_groups
from testbeds.flink.local.cache import cache_folder

_REMOVED_S: Final = 5.0


def own_folder() -> tuple[Path, IO[str]]:
    """A new folder, and a file in it that stays locked for as long as this process lives."""
    clusters = cache_folder() / "flink-clusters"
    clusters.mkdir(parents=True, exist_ok=True)
    with (clusters / "lock").open("w") as all_of_them:
        fcntl.flock(all_of_them, fcntl.LOCK_EX)
        for left in (path for path in clusters.iterdir() if path.is_dir()):
            _remove_if_left(left)
        folder = Path(tempfile.mkdtemp(dir=clusters))
        owner = (folder / "owner").open("w")
        fcntl.flock(owner, fcntl.LOCK_EX)
    return folder, owner


def _remove_if_left(folder: Path) -> None:
    """Remove the files and control groups left by a killed process."""
    with (folder / "owner").open("a") as owner:
        try:
            fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        for group in cpu_groups(f"sluice-{folder.name}-"):
            remove_group(group)
        shutil.rmtree(folder, ignore_errors=True)


def remove_group(group: CpuGroup) -> None:
    """Remove a group, waiting: the kernel needs a moment after its last process has ended."""

    def removed() -> bool | None:
        try:
            group.remove()
            return True
        except OSError:
            return None

    wait_for(removed, _REMOVED_S, f"the control group {group.folder} without processes", pause_s=0.02)
