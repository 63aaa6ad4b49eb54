"""A progress that keeps what is said."""

from collections.abc import Iterable, Iterator
from typing import Any


class Transcript:
    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, message: str) -> None:
        self.said.append(message)

    def track(self, items: Iterable[Any], description: str, total: int | None = None) -> Iterator[Any]:
        yield from items
