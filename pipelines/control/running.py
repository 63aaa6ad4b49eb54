"""Runs the loop of an autopilot at its own pace."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Final, Protocol

from models.errors import InvalidInput, SluiceError
from pipelines.control.keeping.lease import LeaseLost
from pipelines.control.record import AutopilotDecision

ASKED_S: Final = 0.5
"""How long before a round Flink is asked to fetch metrics."""
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


def take_round(loop: Loop, sleep: Callable[[float], object]) -> AutopilotDecision | None:
    """One round with metrics that are fetched for it. Raises what a round raises."""
    loop.ask()
    sleep(ASKED_S)
    return loop.round()


def pause_s(loop: Loop) -> float:
    """From the begin of a round to that of the next, seconds."""
    return loop.every_s if loop.waits_for is None else SEEK_EVERY_S


def fly(
    loop: Loop,
    stored: Callable[[AutopilotDecision], None],
    stop: threading.Event,
    *,
    say: Callable[[str], None] = _logger.warning,
) -> None:
    """Run a loop until `stop` is set; it is closed then.

    Args:
        stored: called with each decision that was stored.
        say: called with remarks for people: which process the loop waits for, and what failed.

    Raises:
        LeaseLost, InvalidInput: why the loop has ended by itself.
    """
    due_s, said = time.monotonic(), None
    try:
        while not stop.wait(max(due_s - time.monotonic(), 0.0)):
            try:
                if (decision := take_round(loop, time.sleep)) is not None:
                    stored(decision)
            except (LeaseLost, InvalidInput):
                raise
            except (SluiceError, OSError) as error:
                say(f"a round failed, and is tried again: {error}")
            if (waits := loop.waits_for) is not None and waits != said:
                say(f"another autopilot acts on the job, and is waited for: {waits}")
                said = waits
            due_s = max(due_s + pause_s(loop), time.monotonic())
    finally:
        try:
            loop.close()
        except (SluiceError, OSError) as error:
            say(f"a lease was not released, and ends by itself: {error}")
