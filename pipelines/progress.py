"""Progress of stages and commands: on a terminal, as lines of text, or not at all."""

from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Protocol, TypeVar

from rich.console import Console
from rich.progress import track

Item = TypeVar("Item")


class Progress(Protocol):
    """Receives the progress of a stage: a terminal, a task log, or nothing."""

    def say(self, message: str) -> None:
        """Print a remark as one line."""
        ...

    def track(self, items: Iterable[Item], description: str, total: int | None = None) -> Iterator[Item]:
        """Pass the items through and show the progress."""
        ...


class LineProgress:
    """Progress as lines of text; a long loop reports every tenth of its items."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self.say = write

    def track(self, items: Iterable[Item], description: str, total: int | None = None) -> Iterator[Item]:
        known = len(items) if total is None and isinstance(items, Sized) else total
        step = max(1, (known or 10) // 10)
        for done, item in enumerate(items, start=1):
            yield item
            if done % step == 0:
                self.say(f"{description}: {done} of {'?' if known is None else known}")


class TerminalProgress:
    """Remarks and progress bars on standard error (or another console); lines instead of bars if it is piped."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False)

    def say(self, message: str) -> None:
        self._console.print(message, soft_wrap=True)

    def track(self, items: Iterable[Item], description: str, total: int | None = None) -> Iterator[Item]:
        if self._console.is_terminal:
            yield from track(items, description, total=total, console=self._console, transient=True)
        else:
            yield from LineProgress(self.say).track(items, description, total)


class Quiet:
    """No output at all."""

    def say(self, message: str) -> None:
        """Print nothing."""

    def track(self, items: Iterable[Item], description: str, total: int | None = None) -> Iterator[Item]:
        yield from items
