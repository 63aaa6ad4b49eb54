"""Cells are computed once, kept as soon as they are done, and found again."""

import subprocess
import sys

import pyarrow as pa
import pytest

from models.errors import InvalidInput
from pipelines.arena import grid
from pipelines.arena.grid import cell_key, run_cells
from pipelines.arena.replays.cell import TRACE_SCHEMA, Cell
from pipelines.arena.replays.compute import run_cell
from pipelines.store.workspace import Workspace


@pytest.fixture
def workspace(tmp_path) -> Workspace:
    return Workspace(tmp_path)


@pytest.fixture
def replayed(monkeypatch) -> list[str]:
    """Policies of the cells that are computed, in order."""
    seen: list[str] = []

    def counted(cell: Cell):
        seen.append(cell.policy)
        return run_cell(cell)

    monkeypatch.setattr(grid, "run_cell", counted)
    return seen


def test_a_cell_repeats_and_a_seed_changes_it(cell):
    first, second, other = run_cell(cell()), run_cell(cell()), run_cell(cell(seed=7))
    assert first.outcome == second.outcome and first.trace.equals(second.trace)
    assert not first.trace.equals(other.trace)
    assert first.trace.schema == TRACE_SCHEMA and len(first.trace) == 48


def test_caps_places_what_is_deployed_on_workers_of_several_slots(cell):
    shared = {"name": "shared", "count": 3, "slots": 4, "cores": 2, "memory_mb": 8192}
    evenly, caps = (run_cell(cell("ds2", cluster=shared, placement=by)) for by in ("evenly", "caps"))
    assert caps.outcome.rescales > 0 and evenly.outcome.rescales > 0
    assert not caps.trace.equals(evenly.trace)


def test_a_cell_survives_json(cell):
    given = cell("flink", settings={"job.autoscaler.utilization.target": 0.6})
    assert Cell.model_validate_json(given.model_dump_json(by_alias=True)) == given


def test_results_are_found_again(cell, workspace, replayed):
    cells = [cell("ds2"), cell("hpa-cpu")]
    first = run_cells(cells, workspace, processes=1)
    again = run_cells([*cells, cell("dhalion")], workspace, processes=1)
    assert replayed == ["ds2", "hpa-cpu", "dhalion"]
    assert again[:2] == first
    assert first[0].trace(workspace).equals(run_cell(cells[0]).trace)


def test_a_run_that_was_killed_goes_on(cell, workspace, replayed, monkeypatch):
    cells = [cell("ds2"), cell("dhalion"), cell("hpa-cpu")]
    keep = grid.keep

    def killed_at_the_second(key, of, result, into):
        if of.policy == "dhalion":
            raise KeyboardInterrupt
        return keep(key, of, result, into)

    monkeypatch.setattr(grid, "keep", killed_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        run_cells(cells, workspace, processes=1)
    monkeypatch.setattr(grid, "keep", keep)
    finished = run_cells(cells, workspace, processes=1)
    assert replayed == ["ds2", "dhalion", "dhalion", "hpa-cpu"]
    assert [one.cell.policy for one in finished] == ["ds2", "dhalion", "hpa-cpu"]


@pytest.mark.parametrize("part", ["result.json", "trace.parquet"])
def test_what_is_half_there_or_damaged_is_made_again(cell, workspace, replayed, part):
    (first,) = run_cells([cell()], workspace)
    if part == "result.json":
        workspace.write_bytes(f"{first.key}/{part}", b"{")
    else:
        workspace.delete(f"{first.key}/{part}")
    assert run_cells([cell()], workspace) == [first]
    assert replayed == ["ds2", "ds2"]


def test_the_key_depends_on_inputs_and_code(cell, monkeypatch):
    key = cell_key(cell())
    assert cell_key(cell()) == key != cell_key(cell(seed=7))
    monkeypatch.setattr(grid, "code_digest", lambda: "other code")
    assert cell_key(cell()) != key


def test_a_cell_that_cannot_be_replayed_says_why(cell, workspace):
    with pytest.raises(InvalidInput, match="there is no policy 'guess'"):
        run_cells([cell("guess")], workspace)


@pytest.mark.slow
def test_processes_give_the_same_results(cell, workspace, tmp_path):
    cells = [cell(policy, seed=seed) for policy in ("ds2", "hpa-cpu") for seed in (1, 2)]
    alone = run_cells(cells, Workspace(tmp_path / "alone"), processes=1)
    together = run_cells(cells, workspace, processes=2)
    assert [one.outcome for one in together] == [one.outcome for one in alone]
    assert isinstance(together[0].trace(workspace), pa.Table)


PROGRAM = """
assert __name__ == "__main__", "the program was loaded again"
import sys
PROGRAM = 7
from pipelines.arena.replays.cell import Cell
from pipelines.arena.grid import run_cells
from pipelines.store.workspace import Workspace
cells = [Cell.model_validate_json(line) for line in open("cells.json")]
print(len(run_cells(cells, Workspace("kept"), processes=2)), sys.modules["__main__"].PROGRAM)
"""


@pytest.mark.slow
def test_processes_do_not_load_the_program_that_starts_them(cell, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    lines = [cell("ds2", seed=seed).model_dump_json(by_alias=True) for seed in (1, 2)]
    (tmp_path / "cells.json").write_text("\n".join(lines))
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout) == (0, "2 7\n"), done.stderr[-2000:]
