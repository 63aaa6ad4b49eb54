"""Runs of a benchmark side by side, each on its own core, with a progress bar."""

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from types import TracebackType
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import Progress

Result = TypeVar("Result")


class Pool:
    """A pool of processes; it runs module-level functions with picklable arguments."""

    def __init__(self, processes: int, console: Console) -> None:
        # Spawned, not forked: the compiled kernels and Arrow have threads of their own.
        self._executor = ProcessPoolExecutor(processes, mp_context=get_context("spawn"))
        self._console = console

    def __enter__(self) -> "Pool":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._executor.shutdown(cancel_futures=error is not None)

    def map(self, function: Callable[..., Result], calls: Sequence[Sequence[Any]], label: str) -> list[Result]:
        """The results of `function` for each of the calls, in order."""
        futures = [self._executor.submit(function, *call) for call in calls]
        with Progress(console=self._console, transient=True) as progress:
            bar = progress.add_task(label, total=len(futures))
            for future in as_completed(futures):
                future.result()  # the first failure ends the benchmark
                progress.advance(bar)
        return [future.result() for future in futures]
