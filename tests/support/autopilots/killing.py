"""Autopilots that are killed at a chosen step, as SIGKILL does: nothing is cleaned up."""

from collections.abc import Callable
from typing import Any

from autopilots.flight import Flight
from pipelines.control.autopilot import Autopilot


class Killed(BaseException):
    """As SIGKILL does: nothing is cleaned up."""


class Death:
    """Ends a process before or after its n-th effect."""

    def __init__(self, at: int, *, after: bool) -> None:
        self.at, self.after, self.seen, self.happened = at, after, 0, False

    def of(self, effect: Callable[..., Any]) -> Callable[..., Any]:
        def mortal(*given: Any, **named: Any) -> Any:
            self.seen += 1
            if self.seen == self.at and not self.after:
                self.happened = True
                raise Killed
            done = effect(*given, **named)
            if self.seen == self.at:
                self.happened = True
                raise Killed
            return done

        return mortal


def fly_until_killed(flight: Flight, autopilot: Autopilot, seconds: float) -> None:
    try:
        flight.fly(autopilot, seconds)
    except Killed:
        return
