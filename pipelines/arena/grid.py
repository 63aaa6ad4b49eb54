"""Many cells: computed in parallel, each stored in the workspace as soon as it is done.

A cell is stored under a digest of its inputs and of the code that computes it, so that a killed run resumes, runs share
cells, and changed code computes them again.
"""

import functools
import logging
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Final

import pyarrow as pa

import models
import testbeds
from models.errors import SluiceError
from models.schema import Format
from pipelines.arena import replays
from pipelines.arena.replays.cell import Cell, CellResult, ReplayOutcome, RescaleRecord
from pipelines.arena.replays.compute import run_cell
from pipelines.progress import Progress, Quiet
from pipelines.store.digests import digest, digest_bytes
from pipelines.store.workspace import Damaged, Missing, Workspace

FOLDER: Final = "arena"
_logger = logging.getLogger(__name__)

Compute = Callable[[Mapping[str, Cell]], Iterator[tuple[str, CellResult]]]
"""Computes cells by key; yields results in any order, as soon as they are complete."""


class KeptResult(Format):
    """A cell's result without its trace, which is a separate table."""

    outcome: ReplayOutcome
    rescales: tuple[RescaleRecord, ...]


@dataclass(frozen=True)
class Finished:
    """A completed cell."""

    cell: Cell
    key: str
    """Key of its results in the workspace; `trace.parquet` is beside them."""
    outcome: ReplayOutcome
    rescales: tuple[RescaleRecord, ...]

    def trace(self, workspace: Workspace) -> pa.Table:
        """With `pipelines.arena.replays.cell.TRACE_SCHEMA`."""
        return workspace.read_table(_trace_key(self.key))


def run_cells(
    cells: Sequence[Cell],
    workspace: Workspace,
    progress: Progress | None = None,
    processes: int | None = None,
    compute: Compute | None = None,
) -> list[Finished]:
    """The results of all cells, in order; stored cells are not computed again.

    Args:
        processes: most processes at a time; one per core by default.
        compute: another way to compute than processes on this machine.

    Raises:
        InvalidInput, Infeasible: as `run_cell`; earlier results stay stored.
    """
    found = {key: kept for key, cell in _keys(cells).items() if (kept := _kept(key, cell, workspace)) is not None}
    missing = {key: cell for key, cell in _keys(cells).items() if key not in found}
    made = _computed(missing, processes) if compute is None else compute(missing)
    todo = (progress or Quiet()).track(made, "replaying", total=len(missing))
    for key, result in todo:
        found[key] = keep(key, missing[key], result, workspace)
    return [found[cell_key(cell)] for cell in cells]


def cell_key(cell: Cell) -> str:
    """Key of a cell's results, which depend on its inputs and on the code."""
    return f"{FOLDER}/cells/{digest([cell, code_digest()])[:32]}"


def keep(key: str, cell: Cell, result: CellResult, workspace: Workspace) -> Finished:
    """Store a cell's results under its key; the trace first, so that results that are found are complete."""
    workspace.write_table(_trace_key(key), result.trace)
    workspace.write(_result_key(key), KeptResult(outcome=result.outcome, rescales=result.rescales))
    return Finished(cell, key, result.outcome, result.rescales)


@functools.cache
def code_digest() -> str:
    """Digest of all modules that a replay executes."""
    folders = [Path(package.__path__[0]) for package in (models, testbeds, replays)]
    files = [path for folder in folders for path in sorted(folder.rglob("*.py"))]
    return digest([f"{path.name} {digest_bytes(path.read_bytes())}" for path in files])


def _keys(cells: Sequence[Cell]) -> dict[str, Cell]:
    return {cell_key(cell): cell for cell in cells}


def _result_key(key: str) -> str:
    return f"{key}/result.json"


def _trace_key(key: str) -> str:
    return f"{key}/trace.parquet"


def _kept(key: str, cell: Cell, workspace: Workspace) -> Finished | None:
    try:
        kept = workspace.read(_result_key(key), KeptResult)
    except Missing:
        return None
    except Damaged as error:
        _logger.warning("%s; replaying it again", error)
        return None
    if not workspace.exists(_trace_key(key)):
        return None
    return Finished(cell, key, kept.outcome, kept.rescales)


def _computed(cells: Mapping[str, Cell], processes: int | None) -> Iterator[tuple[str, CellResult]]:
    """Results as they complete; computed in this process if others would not be worth their start."""
    workers = min(processes or os.cpu_count() or 1, len(cells))
    if workers <= 1:
        yield from ((key, run_cell(cell)) for key, cell in cells.items())
        return
    pool = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"), initializer=_begin)
    try:
        with _hidden_main():
            futures = {pool.submit(run_cell, cell): key for key, cell in cells.items()}
        yield from ((futures[future], _result(future)) for future in as_completed(futures))
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _hidden_main() -> Iterator[None]:
    """Keep processes started meanwhile from loading this process's main program, which they do not need.

    In an Airflow task that program is Airflow itself, which cannot be loaded where tasks may not reach its database.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _begin() -> None:
    """Let a worker ignore Ctrl-C, which its parent handles, and end with its parent, even if that is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _result(future: "Future[CellResult]") -> CellResult:
    try:
        return future.result()
    except BrokenProcessPool as error:
        raise SluiceError(
            f"a process that replayed a cell ended unexpectedly: {error}; is there enough memory?"
        ) from None
