"""State size of each task of a running job."""

import time
from collections.abc import Mapping
from typing import Final

import numpy as np

from flink_client.rest.answers import Vertex, flinks_answers
from flink_client.rest.client import FlinkRest
from flink_client.rest.snapshots import snapshot_result
from flink_client.rest.waiting import TimedOut, wait_for

_FIRST_S: Final = 60.0
_LATER_S: Final = 2.0
_LISTED_S: Final = 10.0
_REST_SHARE: Final = 20.0
"""Pause before the next savepoint, as a multiple of the duration of the last one."""


class StateMeter:
    """The live state of a running job's tasks, from savepoints taken during the measurement and removed afterwards.

    A checkpoint would cost less, but contains RocksDB's files: compressed, and with overwritten values. Savepoints of ForSt
    do, too: a fifth of the size of the values or less.
    """

    def __init__(self, rest: FlinkRest, job: str, vertices: Mapping[str, Vertex]) -> None:
        """
        Args:
            vertices: of the operators with state; if empty, no savepoint is taken.
        """
        self._rest, self._job, self._vertices = rest, job, dict(vertices)
        self._request: str | None = None
        self._asked = self._not_before = 0.0
        self._bytes: dict[str, np.ndarray] = {}

    def ask(self, *, at_once: bool = False) -> None:
        """Request a savepoint, unless one is under way or the last one is too recent."""
        now = time.monotonic()
        if self._vertices and self._request is None and (at_once or now >= self._not_before):
            self._asked = now
            self._request = self._rest.trigger_savepoint(self._job, canonical=True)

    def read(self, *, patience_s: float | None = None) -> dict[str, np.ndarray]:
        """By operator: bytes of each task by the last savepoint, float64[tasks].

        A savepoint of a backpressured job takes long; until it is complete, the one before counts, if any.

        Raises:
            SluiceError: the savepoint failed, or is the first and was not complete in time.
        """
        if (request := self._request) is None:
            return self._bytes
        what = f"a savepoint of job {self._job}"
        patience_s = patience_s or (_LATER_S if self._bytes else _FIRST_S)
        try:
            done = wait_for(lambda: self._rest.outcome(request), patience_s, what, pause_s=0.05)
        except TimedOut:
            if not self._bytes:
                raise
            return self._bytes
        self._request = None
        self._not_before = time.monotonic() + _REST_SHARE * (time.monotonic() - self._asked)
        location = snapshot_result(done, what, "location")
        with flinks_answers(self._rest.url):
            self._bytes = self._sizes(str(location))
        self._rest.post("/savepoint-disposal", {"savepoint-path": location})
        return self._bytes

    def now(self) -> dict[str, np.ndarray]:
        """As `read`, from a new savepoint."""
        self.ask(at_once=True)
        return self.read(patience_s=_FIRST_S)

    def _sizes(self, location: str) -> dict[str, np.ndarray]:
        # Flink may answer with the statistics of some time ago (web.refresh-interval).
        number = wait_for(lambda: self._number_of(location), _LISTED_S, f"the statistics of savepoint {location}", 0.05)
        found = {}
        for name, vertex in self._vertices.items():
            found[name] = np.zeros(vertex.parallelism)
            details = self._rest.get(f"/jobs/{self._job}/checkpoints/details/{number}/subtasks/{vertex.id}")
            for task in details["subtasks"]:
                found[name][task["index"]] = task.get("state_size", 0)
        return found

    def _number_of(self, location: str) -> int | None:
        newest = self._rest.get(f"/jobs/{self._job}/checkpoints")["latest"]["savepoint"]
        return int(newest["id"]) if newest is not None and newest["external_path"] == location else None
