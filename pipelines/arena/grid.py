"""Many cells: in parallel over the cores, each kept in the workspace as soon as it is done.

A cell is kept under a digest of its inputs and of the code that computes it, so that a run that was killed goes on, another
run shares what it has in common with it, and changed code computes again.
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
"""Computes cells by key somewhere; results in any order, each as soon as it is there."""


class KeptResult(Format):
    """A cell's result beside its trace, which is a table of its own."""

    outcome: ReplayOutcome
    rescales: tuple[RescaleRecord, ...]


@dataclass(frozen=True)
class Finished:
    """A cell that is done."""

    cell: Cell
    key: str
    """Of its results in the workspace; `trace.parquet` lies beside them."""
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
    """The results of all cells, in their order; those that are kept are not computed again.

    Args:
        processes: most that work at the same time; as many as there are cores by default.
        compute: where, if not in processes on this machine.

    Raises:
        InvalidInput, Infeasible: as `run_cell`; what was done before is kept.
    """
    found = {key: kept for key, cell in _keys(cells).items() if (kept := _kept(key, cell, workspace)) is not None}
    missing = {key: cell for key, cell in _keys(cells).items() if key not in found}
    made = _computed(missing, processes) if compute is None else compute(missing)
    todo = (progress or Quiet()).track(made, "replaying", total=len(missing))
    for key, result in todo:
        found[key] = keep(key, missing[key], result, workspace)
    return [found[cell_key(cell)] for cell in cells]


def cell_key(cell: Cell) -> str:
    """Key under which a cell's results are kept: they depend on its inputs and on the code."""
    return f"{FOLDER}/cells/{digest([cell, code_digest()])[:32]}"


def keep(key: str, cell: Cell, result: CellResult, workspace: Workspace) -> Finished:
    """Store a cell's results under its key; the trace first, so that what is found is whole."""
    workspace.write_table(_trace_key(key), result.trace)
    workspace.write(_result_key(key), KeptResult(outcome=result.outcome, rescales=result.rescales))
    return Finished(cell, key, result.outcome, result.rescales)


@functools.cache
def code_digest() -> str:
    """Of all modules that a replay runs through."""
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
        _logger.warning("%s; it is replayed again", error)
        return None
    if not workspace.exists(_trace_key(key)):
        return None
    return Finished(cell, key, kept.outcome, kept.rescales)


def _computed(cells: Mapping[str, Cell], processes: int | None) -> Iterator[tuple[str, CellResult]]:
    """Results as they come; in this process where others would not pay."""
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
    """Processes that are started meanwhile do not load the program that runs here, of which they need nothing.

    An Airflow task's program is Airflow itself, which cannot be loaded where tasks may not reach its database.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _begin() -> None:
    """A worker leaves Ctrl-C to the process that started it, and ends when that one does, even if it was killed."""
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
            f"a process that replayed a cell ended on its own: {error}; is there enough memory?"
        ) from None
