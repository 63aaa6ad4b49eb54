"""The server that the tasks of rated sources connect to: it sets their rates and receives their reports.

The protocol is described in `java/sluice/source/Order.java` and `Control.java`. Sources emit nothing while
they are not connected.
"""

import socketserver
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from models.closing import Closing
from models.errors import InvalidInput

_JOIN_S: Final = 5.0


@dataclass(frozen=True)
class SourceReport:
    """Progress of a source task, by its own count."""

    order: str
    """The order in force at the task."""
    seconds: float
    """Seconds since that order arrived."""
    emitted: int
    """Records since then."""
    pending: int
    """Records that were due and not emitted."""
    emitted_in_all: int
    """Records since the task was started."""
    heard_at: float
    """When the report arrived, `time.monotonic`."""


class SourceControl(Closing):
    """Sets the rates of all sources of a job; a server on one address, closed with its context."""

    def __init__(self, host: str = "127.0.0.1", lease_s: float | None = None) -> None:
        """
        Args:
            host: address to listen on; the TaskManagers must be able to reach it.
            lease_s: a task without a connection for this long fails, and with it the job; None: it waits.

        Raises:
            InvalidInput: `host` is not an address of this machine.
        """
        self._lease = None if lease_s is None else f"lease {lease_s!r}\n"
        self._lock = threading.Lock()
        self._orders: dict[str, str] = {}
        self._count = 0
        self._tasks: dict[tuple[str, int], _Connection] = {}
        self._reports: dict[tuple[str, int], SourceReport] = {}
        control = self

        class Connection(_Connection):
            owner = control

        try:
            self._server = _Server((host, 0), Connection)
        except OSError as error:
            raise InvalidInput(
                f"the server that sets the rates of sources must listen on an IPv4 address of this machine, but {host!r} is "
                f"none: {error.strerror}; give one that the TaskManagers reach as control_host in the cluster's file"
            ) from error
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), name="source-control", daemon=True
        )
        self._thread.start()

    @property
    def address(self) -> str:
        """HOST:PORT for the sources' option `control`."""
        host, port = self._server.server_address[:2]
        return f"{host!s}:{port}"

    def offer(self, rates: Mapping[str, float], shifts: Mapping[str, int] = MappingProxyType({})) -> str:
        """From now on offer these records/s to each source (all its tasks together); others stay as they are.

        Records due at the old rate are dropped.

        Args:
            shifts: events that a source skips, counted from the first; see `feeding.in_step`.

        Returns:
            The id of the order.
        """
        return self._send({s: f"{rate!r}{_shift(s, shifts)}" for s, rate in rates.items()}, "rate", rates)

    def fill(
        self,
        rates: Mapping[str, float],
        arrived: Mapping[str, float],
        shifts: Mapping[str, int] = MappingProxyType({}),
    ) -> str:
        """From now on these records/s arrive in each source's log, which holds `arrived` records already.

        Args:
            shifts: as for `offer`.

        Returns:
            The id of the order.
        """
        now_ms = round(time.time() * 1000)
        words = {s: f"{rate!r} {arrived[s]!r} {now_ms}{_shift(s, shifts)}" for s, rate in rates.items()}
        return self._send(words, "log", rates)

    def _send(self, words: Mapping[str, str], kind: str, rates: Mapping[str, float]) -> str:
        if wrong := next((name for name, rate in rates.items() if not 0 <= rate < float("inf")), None):
            raise InvalidInput(f"a rate must be 0 or more and finite, but source {wrong!r} was given {rates[wrong]!r}")
        with self._lock:
            self._count += 1
            order = str(self._count)
            for source, word in words.items():
                self._orders[source] = f"{kind} {order} {word}\n"
            for (source, _), connection in self._tasks.items():
                if source in words:
                    connection.send(self._orders[source])
        return order

    def tasks(self, source: str) -> int:
        """Number of connected tasks of a source."""
        with self._lock:
            return sum(name == source for name, _ in self._tasks)

    def reports(self, source: str) -> dict[int, SourceReport]:
        """The last report of each connected task of a source, by its number; they come five times a second."""
        with self._lock:
            return {task: report for (name, task), report in self._reports.items() if name == source}

    def close(self) -> None:
        """Cut all connections; the sources then emit nothing."""
        self._server.shutdown()
        with self._lock:
            connections = list(self._tasks.values())
        for connection in connections:
            connection.cut()
        self._server.server_close()
        self._thread.join(_JOIN_S)

    def _joined(self, task: tuple[str, int], connection: "_Connection") -> None:
        with self._lock:
            self._tasks[task] = connection
            if self._lease is not None:
                connection.send(self._lease)
            if task[0] in self._orders:
                connection.send(self._orders[task[0]])

    def _heard(self, task: tuple[str, int], connection: "_Connection", report: SourceReport) -> None:
        with self._lock:
            if self._tasks.get(task) is connection:
                self._reports[task] = report

    def _left(self, task: tuple[str, int], connection: "_Connection") -> None:
        """A restarted task may reconnect before the end of its old connection is noticed."""
        with self._lock:
            if self._tasks.get(task) is connection:
                del self._tasks[task]
                self._reports.pop(task, None)


def _shift(source: str, shifts: Mapping[str, int]) -> str:
    return f" {shifts[source]}" if source in shifts else ""


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


class _Connection(socketserver.StreamRequestHandler):
    """Serve one task; an invalid line ends the connection."""

    owner: SourceControl

    def handle(self) -> None:
        match self.rfile.readline().decode().rstrip("\n").split(" ", 3):
            case ["source", subtask, _, name] if subtask.isdigit():
                task = (name, int(subtask))
            case _:
                return
        self.owner._joined(task, self)
        try:
            with suppress(OSError):
                for line in self.rfile:
                    match line.decode().split():
                        case ["at", order, seconds, emitted, pending, in_all]:
                            counts = (int(emitted), int(pending), int(in_all))
                            report = SourceReport(order, float(seconds), *counts, heard_at=time.monotonic())
                            self.owner._heard(task, self, report)
                        case _:
                            return
        finally:
            self.owner._left(task, self)

    def send(self, line: str) -> None:
        """Failures are ignored here: the reading thread notices that the task is gone."""
        with suppress(OSError):
            self.wfile.write(line.encode())

    def cut(self) -> None:
        with suppress(OSError):
            self.connection.shutdown(2)
