"""Free memory and ports of this machine."""

import socket
from contextlib import suppress
from pathlib import Path
from random import SystemRandom
from typing import Final

from models.errors import Infeasible

LOOPBACK: Final = "127.0.0.1"
_MEMORY: Final = Path("/proc/meminfo")
_PORTS_OF_CONNECTIONS: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST_PORT: Final = 10_000
_MOST_TRIES: Final = 100


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
    """A free port of LOOPBACK, below those that Linux gives to connections, one of which might take it before the server does;
    where these leave no room below, any."""
    below = range(_LOWEST_PORT, int(_PORTS_OF_CONNECTIONS.read_text().split()[0]))
    for port in SystemRandom().sample(below, min(_MOST_TRIES, len(below))):
        with suppress(OSError):
            return _bound(port)
    return _bound(0)


def _bound(port: int) -> int:
    """The port that could be bound; 0 leaves the choice to Linux. Raises OSError."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, port))
        return int(probe.getsockname()[1])
