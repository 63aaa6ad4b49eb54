"""How a stage tells people what it is doing."""

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

from rich.console import Console
from rich.progress import track

Item = TypeVar("Item")


class Progress(Protocol):
    """Where a stage reports to; a terminal, a task log, or nowhere."""

    def say(self, message: str) -> None:
        """One remark, one line."""
        ...

    def track(self, items: Iterable[Item], description: str, total: int | None = None) -> Iterator[Item]:
        """Pass the items through and show how far along they are."""
        ...


class TerminalProgress:
    """Remarks and progress bars on standard error (or another console), so that standard output stays clean."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False)

    def say(self, message: str) -> None:
        self._console.print(message, soft_wrap=True)

    def track(self, items: Iterable[Item], description: str, total: int | None = None) -> Iterator[Item]:
        console, hidden = self._console, not self._console.is_terminal
        yield from track(items, description, total=total, console=console, transient=True, disable=hidden)


class Quiet:
    """No output at all."""

    def say(self, message: str) -> None:
        """Keep still."""

    def track(self, items: Iterable[Item], description: str, total: int | None = None) -> Iterator[Item]:
        yield from items
