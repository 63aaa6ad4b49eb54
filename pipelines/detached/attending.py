"""Keeps a process in touch with the workspace while its main thread runs the stage."""

import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import psutil

from models.closing import Closing
from models.errors import SluiceError
from pipelines.detached.attempts import BEAT_S, Attempt, Outcome, Sign
from testbeds.local.termination import EXIT_TERMINATED

LOOK_EVERY_S: Final = 1.0
UNFOLLOWED_S: Final = 1800.0
"""Time without a sign of a follower after which the process stops, seconds: a follower was killed, or its message was lost."""
CLOSE_S: Final = 120.0
"""Time in which the stage must close what it has opened once it shall stop, seconds."""
_logger = logging.getLogger(__name__)


class Attendant(Closing):
    """Stores beats and lines of progress, and ends the stage by SIGTERM when it shall stop."""

    def __init__(
        self,
        attempt: Attempt,
        limit_s: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        terminate: Callable[[], None] = lambda: os.kill(os.getpid(), signal.SIGTERM),
        kill: Callable[[], None] = lambda: _kill_all(),
    ) -> None:
        """
        Args:
            limit_s: time after which the stage is stopped, seconds.
            clock: monotonic, seconds.
            terminate: makes the main thread close what it has opened.
            kill: ends this process and all that it has started.
        """
        self._attempt, self._limit_s = attempt, limit_s
        self._clock, self._terminate, self._kill = clock, terminate, kill
        self._began_s = self._followed_s = clock()
        self._followed: Sign | None = None
        self._lines: tuple[str, ...] = ()
        self._stored, self._beat_s, self._stopped_s = 0, float("-inf"), float("inf")
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._attend, name="sluice: attendant", daemon=True)
        self.stopping: Outcome | None = None
        """Why the stage was stopped; None: it was not."""

    def start(self) -> None:
        self._thread.start()

    def say(self, line: str) -> None:
        """Add a line of progress."""
        print(line, flush=True)
        self._lines += (line,)

    def close(self) -> None:
        """Stop attending; the last lines are stored."""
        self._closed.set()
        if self._thread.is_alive():
            self._thread.join()
        self._keep(self._clock())

    def look(self) -> None:
        """Look once whether the stage shall stop, and show that this process is alive."""
        now_s = self._clock()
        if self.stopping is not None:
            if now_s - self._stopped_s > CLOSE_S:
                with suppress(SluiceError, OSError):
                    self._attempt.end(self.stopping)
                self._kill()
            self._keep(now_s)
            return
        if now_s - self._began_s > self._limit_s:
            self._stop("timed-out", f"it was stopped after {duration(self._limit_s)}, its time limit")
        self._keep(now_s)
        if self._attempt.is_to_stop:
            self._stop("stopped", "it was stopped on request")
        elif self._attempt.outcome is not None:
            self._stop("lost", "it was taken for dead, since it had halted")
        elif (followed := self._attempt.followed) != self._followed:
            self._followed, self._followed_s = followed, now_s
        elif now_s - self._followed_s > UNFOLLOWED_S:
            self._stop("stopped", f"nothing has followed it for {duration(UNFOLLOWED_S)}")

    def _stop(self, kind: str, text: str) -> None:
        if self.stopping is None:
            self.stopping = Outcome.model_validate({"kind": kind, "text": text})
            self._stopped_s = self._clock()
            self.say(f"stopping: {text}")
            self._terminate()

    def _keep(self, now_s: float) -> None:
        lines = self._lines
        if len(lines) > self._stored:
            self._attempt.say(lines)
        elif now_s - self._beat_s < BEAT_S:
            return
        self._attempt.beat(len(lines))
        self._stored, self._beat_s = len(lines), now_s

    def _attend(self) -> None:
        while not self._closed.wait(LOOK_EVERY_S):
            try:
                self.look()
            except (SluiceError, OSError) as error:  # the workspace may be out of reach for a while
                _logger.warning("%s", error)


def duration(seconds: float) -> str:
    """`6 h`, `0.5 h`, `90 s`: in hours where these are halves."""
    return f"{seconds / 3600:g} h" if seconds % 1800 == 0 else f"{seconds:g} s"


def _kill_all() -> None:
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            process.kill()
    os._exit(EXIT_TERMINATED)
