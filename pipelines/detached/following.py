"""Follows an attempt until it has ended."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from pipelines.detached.attempts import FOLLOW_EVERY_S, LOST_S, Attempt, AttemptState, Outcome
from pipelines.detached.attending import duration


@dataclass(frozen=True)
class News:
    """What is new since the last look."""

    lines: tuple[str, ...]
    outcome: Outcome | None
    """None while the process runs."""


class AttemptFollower:
    """Follows one attempt.

    Args:
        clock: monotonic, seconds.
    """

    def __init__(self, attempt: Attempt, clock: Callable[[], float] = time.monotonic) -> None:
        self._attempt, self._clock = attempt, clock
        self._seen: AttemptState | None = None
        self._seen_s, self._signed_s, self._lines = clock(), float("-inf"), 0

    def look(self) -> News:
        """Look once. A process whose state has not changed for LOST_S is given up."""
        now_s = self._clock()
        if now_s - self._signed_s >= FOLLOW_EVERY_S:
            self._attempt.follow()
            self._signed_s = now_s
        outcome = self._attempt.outcome  # read first: once there is one, no line is added
        state = self._attempt.state
        if state != self._seen:
            self._seen, self._seen_s = state, now_s
        elif outcome is None and now_s - self._seen_s > LOST_S:
            outcome = self._attempt.end(Outcome(kind="lost", text=self._lost()))
        lines: tuple[str, ...] = ()
        if state is not None and state.lines > self._lines:
            lines = self._attempt.progress.lines[self._lines :]
            self._lines += len(lines)
        return News(lines, outcome)

    def _lost(self) -> str:
        who = "its process has not started" if self._seen is None else f"{self._seen.holder} has given no sign of life"
        return f"{who} for {duration(LOST_S)}; what it had measured is kept"
