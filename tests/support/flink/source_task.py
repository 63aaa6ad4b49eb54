"""A task of a rated source, on its connection."""

import socket

from models.closing import Closing
from testbeds.feeding.control import SourceControl


class SourceTask(Closing):
    """Says what a source task would, until its context is left: who drops its connection is taken for gone."""

    def __init__(self, control: SourceControl, source: str, number: int, tasks: int) -> None:
        host, port = control.address.split(":")
        self._socket = socket.create_connection((host, int(port)), timeout=10)
        self._say(f"source {number} {tasks} {source}")

    def reports(self, order: str, seconds: float, emitted: int, pending: int, in_all: int) -> None:
        self._say(f"at {order} {seconds} {emitted} {pending} {in_all}")

    def close(self) -> None:
        self._socket.close()

    def _say(self, line: str) -> None:
        self._socket.sendall(f"{line}\n".encode())
