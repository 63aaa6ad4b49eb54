"""Free memory and ports of this machine."""

import socket
from pathlib import Path
from typing import Final

from models.errors import Infeasible

LOOPBACK: Final = "127.0.0.1"
_MEMORY: Final = Path("/proc/meminfo")


def check_memory(needed_mb: float, needed_by: str, remedy: str) -> None:
    """
    Args:
        needed_by: what is about to start, named in the error.
        remedy: what to do where it does not fit.

    Raises:
        Infeasible: less than `needed_mb` MiB is available.
    """
    available = next(line for line in _MEMORY.read_text().splitlines() if line.startswith("MemAvailable:"))
    available_mb = int(available.split()[1]) / 1024
    if needed_mb > available_mb:
        raise Infeasible(
            f"{needed_by} needs {needed_mb:.0f} MiB, but {available_mb:.0f} are available on this machine; {remedy}"
        )


def free_port() -> int:
    """A free port of LOOPBACK."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])
