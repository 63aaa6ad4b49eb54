"""Waiting for something to come, by polling."""

import time
from collections.abc import Callable
from typing import Final, TypeVar

from models.errors import SluiceError

T = TypeVar("T")
PAUSE_S: Final = 0.2
"""Between two looks, or two requests."""


class TimedOut(SluiceError):
    """The time limit of a wait has passed."""


def wait_for(look: Callable[[], T | None], seconds: float, what: str, pause_s: float = PAUSE_S) -> T:
    """Poll `look` until it returns something other than None; return that.

    Raises:
        TimedOut: it still returned None after `seconds`.
    """
    until = time.monotonic() + seconds
    while (found := look()) is None:
        if time.monotonic() > until:
            raise TimedOut(f"{what} did not come within {seconds:g} s; see the logs of the cluster")
        time.sleep(pause_s)
    return found
