"""`sluice plan` and `sluice replan` as people and machines call them."""

import json
import re
from pathlib import Path

import pytest
import yaml

from pipelines.cli import run
from pipelines.inputs.plan_request import PlanRequest
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace


def path_of(workspace: Workspace) -> str:
    return str(workspace.local_folder())


def arguments(request: PlanRequest, workspace: Workspace) -> list[str]:
    assert request.measurements is not None
    return [
        *("plan", request.job, "--rate", str(request.rate), "--testbed", "recorded"),
        *("--measurements", request.measurements, "--rows", "14", "--model", "log", "--memory", "65536"),
        *("--workspace", path_of(workspace)),
    ]


def test_json_is_one_document_on_standard_output(
    planned_workspace: Workspace, recorded_request: PlanRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*arguments(recorded_request, planned_workspace), "--json"]) == 0
    out, err = capsys.readouterr()
    plan = json.loads(out)
    assert (plan["job"], plan["task_slots"]) == ("nexmark-q5", 1079)
    assert "publish: plan nexmark-q5@" in err


def test_people_get_a_table_and_the_places_of_report_and_plan(
    planned_workspace: Workspace, recorded_request: PlanRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments(recorded_request, planned_workspace)) == 0
    out, err = capsys.readouterr()
    assert "count-window" in out
    report = next(line.split()[-1] for line in err.splitlines() if line.startswith("report:"))
    assert Path(report.removeprefix("file://")).is_file()


def test_a_replan_says_what_it_did(planned_workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["replan", "nexmark-q5", "--rate", "1500000", "--workspace", path_of(planned_workspace), "--json"]
    assert run(command) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["target_rate"] == 1_500_000
    assert plan["version"] == PlanStore(planned_workspace).current("nexmark-q5").version


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        (["plan", "nexmark-q55", "--rate", "1000"], 2, "nexmark-q5"),
        (["plan", "nexmark-q5", "--rate", "-1"], 2, "'--rate'"),
        (["plan", "nexmark-q5", "--rate", "nan"], 2, "'--rate'"),
        (["plan", "nexmark-q5", "--rate", "1e400"], 2, "'--rate'"),
        (["replan", "nexmark-q5", "--rate", "nan"], 2, "'--rate'"),
        (["replan", "nexmark-q5", "--rate", "0"], 2, "'--rate'"),
        (["plan", "nexmark-q5", "--rate", "1000", "--max-measurements", "2"], 2, "'--max-measurements'"),
        (["plan", "nexmark-q5", "--rate", "1000", "--testbed", "recorded"], 2, "'measurements'"),
        (["plan", "nexmark-q5", "--rate", "1000", "--testbed", "moon"], 2, "'--testbed'"),
        (
            ["plan", "nexmark-q5", "--rate", "1000", "--testbed", "recorded", "--measurements", "none.csv"],
            2,
            "none.csv",
        ),
        (["plan", "nexmark-q5", "--rate", "1000", "--cluster", "nowhere"], 2, "nowhere"),
        (["plan", "nexmark-q5", "--rate", "1000", "--max-slots", "3"], 3, "9 operators"),
        (
            ["plan", "nexmark-q5", "--rate", "1000", "--cluster", "capsys-4x4", "--memory", "32769"],
            2,
            "TaskManagers of 32,769 MiB were asked for, but worker",
        ),
        (["replan", "nexmark-q1", "--rate", "1000"], 2, "sluice plan"),
    ],
)
def test_wrong_requests_are_reported_in_words(
    command: list[str], code: int, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*command, "--workspace", str(tmp_path)]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert "Traceback" not in err


def test_a_rate_beyond_the_cluster_is_infeasible(
    planned_workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["replan", "nexmark-q5", "--rate", "3000000", "--workspace", path_of(planned_workspace)]
    assert run(command) == 3
    assert "2048" in capsys.readouterr().err


@pytest.mark.slow
def test_a_job_that_was_planned_from_a_path_is_replanned_by_its_name_from_anywhere(
    tracked_workspace: Workspace,
    recorded_request: PlanRequest,
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    here.mkdir()
    elsewhere.mkdir()
    document = yaml.safe_load((root / "jobs" / "nexmark-q5.yaml").read_text()) | {"name": "my-job", "sql": None}
    (here / "mine.yaml").write_text(yaml.safe_dump(document))
    monkeypatch.chdir(here)
    request = recorded_request.model_copy(update={"job": "./mine.yaml"})
    assert run(arguments(request, tracked_workspace)) == 0, capsys.readouterr().err
    capsys.readouterr()
    monkeypatch.chdir(elsewhere)
    command = ["replan", "my-job", "--rate", "2000000", "--workspace", path_of(tracked_workspace), "--json"]
    assert run(command) == 0, capsys.readouterr().err
    plan = json.loads(capsys.readouterr().out)
    assert (plan["job"], plan["version"], plan["target_rate"]) == ("my-job", 2, 2e6)
    (here / "mine.yaml").unlink()
    assert run(command) == 2 and "mine.yaml" in capsys.readouterr().err


@pytest.mark.slow
def test_what_was_measured_for_a_rate_out_of_reach_serves_another(
    tracked_workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = [
        "plan",
        "wordcount",
        "--max-slots",
        "12",
        "--max-measurements",
        "3",
        "--workspace",
        path_of(tracked_workspace),
    ]
    assert run([*asked, "--rate", "1e8"]) == 3
    named = re.search(r"the measurements are stored: repeat with --run (\w+) and", capsys.readouterr().err)
    assert named is not None
    written = _written(tracked_workspace)
    assert run([*asked, "--rate", "30000", "--run", named.group(1)]) == 0
    assert "for 30,000 records/s" in capsys.readouterr().out
    assert len(written) >= 8 and _written(tracked_workspace) == written


def _written(workspace: Workspace) -> dict[str, int]:
    """When each measurement was kept, nanoseconds."""
    run_of = Path(path_of(workspace)) / "runs" / "wordcount"
    return {
        path.name: path.stat().st_mtime_ns
        for path in [*run_of.glob("*/observations/*"), *run_of.glob("*/profile.json")]
    }
