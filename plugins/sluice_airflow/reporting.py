"""Where tasks report their progress: the terminal of `make plan`, or the task's log."""

import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from pipelines.progress import Progress

Item = TypeVar("Item")

_logger = logging.getLogger("sluice")
_on_terminal: Progress | None = None


class LogProgress:
    """Remarks as lines of the task's log; a long loop reports each tenth of the way."""

    def say(self, message: str) -> None:
        _logger.info("%s", message)

    def track(self, items: Iterable[Item], description: str, total: int | None = None) -> Iterator[Item]:
        known = total if total is not None else _length(items)
        step = max(1, (known or 10) // 10)
        for done, item in enumerate(items, start=1):
            yield item
            if done % step == 0:
                _logger.info("%s: %d of %s", description, done, known if known is not None else "?")


def _length(items: object) -> int | None:
    try:
        return len(items)  # type: ignore[arg-type]
    except TypeError:
        return None


@contextmanager
def shown_on(progress: Progress) -> Iterator[None]:
    """Tasks that run in this process, as `dag.test()` runs them, report to `progress`."""
    global _on_terminal
    _on_terminal = progress
    try:
        yield
    finally:
        _on_terminal = None


def task_progress() -> Progress:
    """What the running task reports to."""
    return _on_terminal or LogProgress()


def on_terminal() -> bool:
    """Whether tasks run in the process of a terminal, as in the embedded Airflow."""
    return _on_terminal is not None


@contextmanager
def reported(task: str) -> Iterator[None]:
    """Say when the task begins, and when and how it ends."""
    progress, began = task_progress(), time.monotonic()
    progress.say(f"== {task}")
    try:
        yield
    except Exception as error:
        progress.say(f"   failed after {time.monotonic() - began:.1f} s: {error or type(error).__name__}")
        raise
    progress.say(f"   done in {time.monotonic() - began:.1f} s")


def say_retry(context: Mapping[str, Any]) -> None:
    """Airflow's `on_retry_callback`."""
    task_progress().say(f"   Airflow tries it again in {context['task'].retry_delay.total_seconds():g} s")
