"""Tables fit terminals of 80 columns: each row on one line, dates and figures whole."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import RenderableType

from models.plan.content import Plan
from models.plan.differences import difference
from pipelines.terminal.plan_tables import difference_view, list_view, plan_view
from pipelines.terminal.tables import UncroppedConsole, table

COLUMNS = 80
LONG_JOB = "nexmark-q11"


def lines_of(shown: RenderableType, columns: int = COLUMNS) -> list[str]:
    written = io.StringIO()
    UncroppedConsole(width=columns, file=written).print(shown)
    return [line.rstrip() for line in written.getvalue().splitlines()]


def printed(*arguments: str) -> list[str]:
    """What the installed command prints on a terminal of 80 columns."""
    sluice = Path(sys.executable).with_name("sluice")
    environment = {**os.environ, "COLUMNS": str(COLUMNS)}
    done = subprocess.run([sluice, *arguments], capture_output=True, text=True, env=environment, check=True)
    return [line.rstrip() for line in done.stdout.splitlines()]


@pytest.fixture
def plan(root: Path) -> Plan:
    files = sorted((root / "tests" / "data" / "plans").glob("*.json"))
    return Plan.model_validate_json(files[0].read_text())


def row(**fields: Any) -> dict[str, Any]:
    made = {"job": LONG_JOB, "version": 12, "created_at": "2026-11-23T05:39:01+00:00", "trigger": "rollback"}
    return {**made, "target_rate": 12_500_000.0, "predicted_mst": 13_750_376.0, "task_slots": 1347, **fields}


def test_a_listed_plan_is_one_line_with_its_whole_date() -> None:
    lines = lines_of(list_view([row(tasks_moved=1347), row(version=1, tasks_moved=None)]))
    first = next(line for line in lines if f"{LONG_JOB}@12" in line)
    assert first.split() == [
        *(f"{LONG_JOB}@12", "2026-11-23", "05:39", "rollback", "12,500,000", "13,750,376", "1,347", "1347")
    ]
    assert len(lines) == 4 and max(map(len, lines)) <= COLUMNS


def test_a_shown_plan_has_one_line_for_each_operator(plan: Plan) -> None:
    lines = lines_of(plan_view(plan))
    assert max(map(len, lines)) <= COLUMNS
    start = next(number for number, line in enumerate(lines) if line.startswith("operator")) + 2
    listed = lines[start : start + len(plan.operators)]
    for line, operator in zip(listed, plan.operators, strict=True):
        assert line.split()[:2] == [operator.name, str(operator.parallelism)]


def test_a_difference_fits(plan: Plan) -> None:
    changed = plan.model_copy(update={"version": plan.version + 1})
    assert max(map(len, lines_of(difference_view(plan, changed, difference(plan, changed))))) <= COLUMNS


@pytest.mark.parametrize(("command", "key"), [("jobs", "jobs"), ("clusters", "clusters")])
def test_each_entry_of_the_catalogue_is_one_line(command: str, key: str) -> None:
    entries = json.loads("\n".join(printed(command, "list", "--json")))[key]
    lines = printed(command, "list")
    assert [line.split()[0] for line in lines[2:]] == [entry["name"] for entry in entries]
    assert max(map(len, lines)) <= COLUMNS


def test_a_shown_cluster_fits() -> None:
    assert max(map(len, printed("clusters", "show", "production"))) <= COLUMNS


def test_only_columns_that_may_wrap_do() -> None:
    shown = table("name", "made", "why", text=("made",), wrap=("why",))
    shown.add_row("x" * 20, "2026-11-23 05:39", "because " * 10)
    lines = lines_of(shown)
    assert lines[2].startswith("x" * 20) and "2026-11-23 05:39" in lines[2]
    assert len(lines) > 3 and max(map(len, lines)) <= COLUMNS


@pytest.mark.parametrize("columns", [60, 40, 10])
def test_in_a_narrow_terminal_no_digit_is_lost(columns: int) -> None:
    shown = table("operator", "tasks", "records/s", "why", wrap=("why",))
    shown.add_row("count-window", "12", "2,500,000", "because " * 10)
    line = lines_of(shown, columns)[2]
    assert line.split()[:4] == ["count-window", "12", "2,500,000", "because"]
