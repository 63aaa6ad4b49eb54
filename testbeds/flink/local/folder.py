"""The folder and control groups of a local cluster, and the removal of those left by killed processes."""

from pathlib import Path
from typing import IO, Final

from flink_client.rest.waiting import wait_for
from testbeds.flink.lab.cpu import CpuGroup, cpu_groups
from testbeds.local.folder import own_folder

_REMOVED_S: Final = 5.0


def cluster_folder() -> tuple[Path, IO[str]]:
    """A new folder for a cluster, and a file in it that stays locked for as long as this process lives."""
    return own_folder("flink-clusters", _remove_groups)


def _remove_groups(left: Path) -> None:
    for group in cpu_groups(f"sluice-{left.name}-"):
        remove_group(group)


def remove_group(group: CpuGroup) -> None:
    """Remove a group, waiting: the kernel needs a moment after its last process has ended."""

    def removed() -> bool | None:
        try:
            group.remove()
            return True
        except OSError:
            return None

    wait_for(removed, _REMOVED_S, f"the control group {group.folder} without processes", pause_s=0.02)
