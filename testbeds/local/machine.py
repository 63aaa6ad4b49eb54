"""Free memory and ports of this machine."""

import socket
from pathlib import Path
from random import SystemRandom
from typing import Final

from models.errors import Infeasible, SluiceError

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
    """A free port of LOOPBACK, below those that Linux gives to connections: one of them might take it before the server does.

    Raises:
        SluiceError: none was found.
    """
    below = range(_LOWEST_PORT, int(_PORTS_OF_CONNECTIONS.read_text().split()[0]))
    for port in SystemRandom().sample(below, min(_MOST_TRIES, len(below))):
        with socket.socket() as probe:
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
            return port
    raise SluiceError(
        f"no free port of {LOOPBACK} was found from {below.start} on and below {below.stop}, where those of connections begin; "
        f"end what listens there, or let these begin later ({_PORTS_OF_CONNECTIONS})"
    )
