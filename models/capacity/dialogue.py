"""A decision that is taken step by step: it says what to do, and gets what came of it."""

from collections.abc import Generator
from typing import Generic, TypeVar

from models.errors import SluiceError

Asked = TypeVar("Asked")
Seen = TypeVar("Seen")


class Dialogue(Generic[Asked, Seen]):
    """State machine: `next()` says what to do, `observe()` takes what came of it.

    It has no effects and is deterministic, so a new one fed with the same observations resumes from the last of them.
    """

    def __init__(self, steps: Generator[Asked, Seen, None]) -> None:
        """
        Args:
            steps: yields what to do, and is sent what came of it.
        """
        self._steps = steps
        self._pending: Asked | None = next(steps, None)

    def next(self) -> Asked | None:
        """What to do now; None when it has ended. The same until `observe` was called."""
        return self._pending

    def observe(self, seen: Seen) -> None:
        """Take what came of it.

        Raises:
            SluiceError: it has ended.
        """
        self._check_open()
        try:
            self._pending = self._steps.send(seen)
        except StopIteration:
            self._pending = None

    def _check_open(self) -> None:
        if self._pending is None:
            raise SluiceError(
                f"observe() must follow a next() that said what to do, but {type(self).__name__} has ended"
            )
