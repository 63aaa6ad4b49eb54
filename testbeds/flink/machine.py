"""What this machine has free for a local cluster: memory and ports."""

import socket
from pathlib import Path
from typing import Final

from models.errors import Infeasible, SluiceError

LOOPBACK: Final = "127.0.0.1"
_MEMORY: Final = Path("/proc/meminfo")


def check_memory(needed_mb: float) -> None:
    """
    Raises:
        Infeasible: less than `needed_mb` MiB is available.
    """
    available = next(line for line in _MEMORY.read_text().splitlines() if line.startswith("MemAvailable:"))
    available_mb = int(available.split()[1]) / 1024
    if needed_mb > available_mb:
        raise Infeasible(
            f"the Flink cluster needs {needed_mb:.0f} MiB, but {available_mb:.0f} are available on this machine; ask for "
            f"fewer or smaller TaskManagers"
        )


def free_port() -> int:
    """A port of LOOPBACK that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def checked_port(port: int) -> int:
    """The port itself.

    Raises:
        SluiceError: somebody listens on it, or this user may not.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            raise SluiceError(
                f"port {port} of {LOOPBACK} cannot be used ({error.strerror}); name another, or none to take one that is free"
            ) from error
    return port
