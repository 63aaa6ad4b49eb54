"""Runs the loops of many jobs in one process, each at its own pace, a few at a time."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, Protocol

from models.errors import InvalidInput, SluiceError
from pipelines.control.keeping.lease import LeaseLost
from pipelines.control.record import AutopilotDecision

ASKED_S: Final = 0.5
"""How long before a round Flink is asked to fetch metrics."""
MOST_AT_A_TIME: Final = 16
TICK_S: Final = 0.05
SEEK_EVERY_S: Final = 2.0
"""Time between two attempts to get a lease that another process holds."""
_logger = logging.getLogger(__name__)


class Loop(Protocol):
    """What is called again and again: an autopilot."""

    @property
    def every_s(self) -> float: ...

    @property
    def waits_for(self) -> str | None: ...

    def ask(self) -> None: ...

    def round(self) -> AutopilotDecision | None: ...

    def close(self) -> None: ...


@dataclass
class _Turn:
    """The next call of a loop."""

    loop: Loop
    due_s: float
    asked: bool = False
    call: "Future[AutopilotDecision | None] | None" = None
    said: str | None = None

    def begin(self, pool: ThreadPoolExecutor, now_s: float) -> None:
        """Call what is due, if nothing of this loop is under way."""
        if self.call is not None or now_s < self.due_s - (0.0 if self.asked else ASKED_S):
            return
        self.call = pool.submit(self.loop.round if self.asked else self._ask)
        if self.asked:
            pause_s = self.loop.every_s if self.loop.waits_for is None else SEEK_EVERY_S
            self.due_s = max(self.due_s + pause_s, now_s + ASKED_S)
        self.asked = not self.asked

    def _ask(self) -> None:
        self.loop.ask()


def fly(
    loops: Sequence[Loop],
    stored: Callable[[AutopilotDecision], None],
    stop: threading.Event,
    *,
    most_at_a_time: int = MOST_AT_A_TIME,
    say: Callable[[str], None] = _logger.warning,
) -> None:
    """Run loops until `stop` is set, or all of them have ended; a slow job delays its own rounds alone.

    Args:
        stored: called with each decision that was stored, by one thread.
        say: called with remarks for people: which process a loop waits for, and why one ended.

    Raises:
        SluiceError: why the last loop ended by itself.
    """
    began_s = time.monotonic()
    # Spread over an interval, so that the rounds of many jobs do not fall together.
    turns = [_Turn(one, began_s + ASKED_S + one.every_s * n / len(loops)) for n, one in enumerate(loops)]
    try:
        with ThreadPoolExecutor(most_at_a_time, thread_name_prefix="autopilot") as pool:
            while turns and not stop.wait(TICK_S):
                for turn in list(turns):
                    turn.begin(pool, time.monotonic())
                    if turn.call is None or not turn.call.done():
                        continue
                    call, turn.call = turn.call, None
                    try:
                        _finish(call, turn, stored, say)
                    except (LeaseLost, InvalidInput):
                        turns.remove(turn)
                        turn.loop.close()
                        if not turns:
                            raise
    finally:
        for one in loops:
            _close(one, say)


def _finish(
    call: "Future[AutopilotDecision | None]",
    turn: _Turn,
    stored: Callable[[AutopilotDecision], None],
    say: Callable[[str], None],
) -> None:
    """Raises LeaseLost or InvalidInput: the loop has ended."""
    try:
        decision = call.result()
    except (LeaseLost, InvalidInput) as error:
        say(f"an autopilot has ended: {error}")
        raise
    except (SluiceError, OSError) as error:
        say(f"a round failed, and is tried again: {error}")
        return
    if decision is not None:
        stored(decision)
    waits = turn.loop.waits_for
    if waits is not None and waits != turn.said and not turn.asked:
        say(f"another autopilot acts on the job, and is waited for: {waits}")
        turn.said = waits


def _close(loop: Loop, say: Callable[[str], None]) -> None:
    try:
        loop.close()
    except (SluiceError, OSError) as error:
        say(f"a lease was not released, and ends by itself: {error}")
