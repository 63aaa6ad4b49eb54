"""Progress of tasks, on the terminal of `make plan` or in the task's log."""

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from pipelines.progress import LineProgress, Progress

_logger = logging.getLogger("sluice")
LOG: Final = LineProgress(lambda message: _logger.info("%s", message))
"""The log of the running task."""

_on_terminal: Progress | None = None


@contextmanager
def shown_on(progress: Progress) -> Iterator[None]:
    """Report the progress of tasks in this process, as `dag.test()` runs them, to `progress`."""
    global _on_terminal
    _on_terminal = progress
    try:
        yield
    finally:
        _on_terminal = None


def task_progress() -> Progress:
    """The progress of the running task."""
    return _on_terminal or LOG


def on_terminal() -> bool:
    """Whether tasks run in the process of a terminal, as in the embedded Airflow."""
    return _on_terminal is not None


@contextmanager
def reported(task: str) -> Iterator[None]:
    """Report the start, end, duration and error of a task."""
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
    task_progress().say(f"   Airflow retries it in {context['task'].retry_delay.total_seconds():g} s")
