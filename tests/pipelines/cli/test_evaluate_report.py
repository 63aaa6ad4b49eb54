"""The outputs of `sluice evaluate` besides the printed table."""

import json
from pathlib import Path

import pytest

from pipelines.cli import EXIT_USAGE, run

SHORT = ("--minutes", "3", "--burn-in-minutes", "0")


@pytest.fixture
def evaluate(tmp_path: Path):
    def call(*options: str) -> int:
        given = ["--job", "nexmark-q1", "--workload", "cosine", "--policy", "ds2", *SHORT, "--no-log"]
        return run(["evaluate", *given, "--processes", "1", "--workspace", str(tmp_path / "workspace"), *options])

    return call


@pytest.mark.slow
def test_a_report_lies_in_the_workspace_and_where_it_was_asked_for(capsys, evaluate, tmp_path):
    assert evaluate() == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("report: ")]
    kept = Path(line.removeprefix("report: file://"))
    assert kept.is_relative_to(tmp_path / "workspace")
    assert evaluate("--json", "--report", str(tmp_path / "page.html")) == 0
    assert json.loads(capsys.readouterr().out)["report"] == f"file://{tmp_path}/page.html"
    assert (tmp_path / "page.html").read_bytes() == kept.read_bytes()


def test_a_report_in_no_folder_is_refused_before_anything_is_replayed(capsys, evaluate, tmp_path):
    assert evaluate("--report", str(tmp_path / "absent" / "page.html")) == EXIT_USAGE
    assert "--report must be a file in a folder that exists" in capsys.readouterr().err
    assert not (tmp_path / "workspace" / "arena").exists()


def test_an_evaluation_is_logged_once(capsys, tracked_workspace):
    options = ["--workload", "cosine", "--policy", "ds2", *SHORT, "--processes", "1"]
    command = ["evaluate", "--job", "nexmark-q1", *options, "--workspace", tracked_workspace.url, "--json"]
    logged = []
    for _ in range(2):
        assert run(command) == 0
        logged.append(json.loads(capsys.readouterr().out)["mlflow_runs"])
    assert logged[0] == logged[1] and list(logged[0]) == ["nexmark-q1"]
