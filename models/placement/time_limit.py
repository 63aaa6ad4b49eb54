"""The time limit of one computation, by a clock that is passed in."""

from collections.abc import Callable
from dataclasses import dataclass, field

Clock = Callable[[], float]
"""Seconds from any fixed moment, for example `time.monotonic`."""


@dataclass
class TimeLimit:
    """The time limit of one computation, shared by all its parts; `seconds` is unknown without a clock."""

    clock: Clock | None = None
    time_limit_s: float | None = None
    nodes: int = field(default=0, init=False)
    """Nodes of search trees visited so far."""
    _started: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        if self.clock is not None:
            self._started = self.clock()

    @property
    def seconds(self) -> float | None:
        """Seconds since the start; None without a clock."""
        return None if self.clock is None else self.clock() - self._started

    @property
    def left(self) -> float | None:
        """Seconds left, not below 0; None without a clock or a limit."""
        seconds = self.seconds
        return None if seconds is None or self.time_limit_s is None else max(0.0, self.time_limit_s - seconds)

    @property
    def spent(self) -> bool:
        """Whether no time is left."""
        return self.left == 0.0
