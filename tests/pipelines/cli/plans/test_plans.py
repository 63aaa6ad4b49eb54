"""`sluice plans`, as a user or a program calls it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from models.plan.content import Plan, PlanContent
from pipelines.cli import run
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace

DATA = Path(__file__).parents[3] / "data" / "plans"
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """Two versions of the plan of nexmark-q5."""
    monkeypatch.setenv("SLUICE_WORKSPACE", str(tmp_path))
    workspace = Workspace()
    for version in (1, 2):
        plan = Plan.model_validate_json((DATA / f"nexmark-q5-v{version}.json").read_text())
        content = PlanContent(**{name: getattr(plan, name) for name in PlanContent.model_fields})
        PlanStore(workspace).publish(content, plan.created_at)
    return workspace


@pytest.fixture
def sluice(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> Call:
    """Runs a command; returns exit code, standard output and standard error."""

    def call(*arguments: str) -> tuple[int, str, str]:
        code = run(["plans", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def ok(result: tuple[int, str, str]) -> str:
    code, out, err = result
    assert code == 0, err
    return out


def ok_json(result: tuple[int, str, str]) -> Any:
    return json.loads(ok(result))


def break_file(workspace: Workspace, version: int) -> None:
    key = f"plans/nexmark-q5/v{version:06d}.json"
    workspace.write_bytes(key, workspace.read_bytes(key)[:-50])


def test_list_has_a_line_for_each_version(sluice: Call) -> None:
    out = ok(sluice("list"))
    assert "nexmark-q5@1" in out and "nexmark-q5@2" in out and "1,000,000" in out
    rows = ok_json(sluice("list", "nexmark-q5", "--json"))["plans"]
    assert [(row["version"], row["task_slots"], row["tasks_moved"]) for row in rows] == [(1, 32, None), (2, 41, 11)]
    assert all(len(row["digest"]) == 64 for row in rows)


def test_list_shows_a_damaged_version_as_damaged(sluice: Call, workspace: Workspace) -> None:
    break_file(workspace, 1)
    code, out, err = sluice("list")
    assert code == 0 and "damaged" in out and "v000001.json" in err
    rows = ok_json(sluice("list", "--json"))["plans"]
    assert "v000001.json" in rows[0]["damaged"] and rows[1]["task_slots"] == 41


def test_list_of_an_empty_workspace_is_empty(sluice: Call, tmp_path: Path) -> None:
    assert ok_json(sluice("list", "--workspace", str(tmp_path / "empty"), "--json")) == {"plans": []}
    assert "no plans in" in sluice("list", "--workspace", str(tmp_path / "empty"))[2]


def test_show_prints_the_plan_that_is_stored(sluice: Call, workspace: Workspace) -> None:
    shown = Plan.model_validate(ok_json(sluice("show", "nexmark-q5", "--json")))
    assert shown == PlanStore(workspace).get("nexmark-q5", 2)
    assert ok_json(sluice("show", "nexmark-q5@v1", "--json"))["version"] == 1


def test_show_prints_operators_reasons_placement_and_lineage(sluice: Call) -> None:
    out = ok(sluice("show", "nexmark-q5"))
    for expected in ("window", "38", "256", "80%", "[skewed", "tm-11", "window 2, sink 2", "0.1250", "0.2000"):
        assert expected in out
    for expected in ("1,100,000", "models:/nexmark-q5/2", "11 tasks", "log has the lowest error"):
        assert expected in out


def test_show_uses_the_last_good_version_and_says_so(
    sluice: Call, workspace: Workspace, caplog: pytest.LogCaptureFixture
) -> None:
    break_file(workspace, 2)
    assert ok_json(sluice("show", "nexmark-q5", "--json"))["version"] == 1
    assert "version 1 of the plan of nexmark-q5 is used instead" in caplog.text
    code, out, err = sluice("show", "nexmark-q5@2")
    assert (code, out) == (1, "") and "v000002.json" in err


@pytest.mark.parametrize("pair", [("nexmark-q5",), ("nexmark-q5@1",), ("nexmark-q5@1", "nexmark-q5@2")])
def test_diff_compares_two_versions_however_they_are_named(sluice: Call, pair: tuple[str, ...]) -> None:
    document = ok_json(sluice("diff", *pair, "--json"))
    assert (document["from_version"], document["to_version"]) == (1, 2)
    assert document["difference"]["tasks_moved"] == 11
    assert {"worker": "tm-12", "operator": "sink", "before": 0, "after": 1} in document["placement"]
    assert "30 -> 38" in ok(sluice("diff", *pair))


def test_diff_goes_backwards_too(sluice: Call) -> None:
    change = ok_json(sluice("diff", "nexmark-q5@2", "nexmark-q5@1", "--json"))["difference"]
    assert (change["tasks_moved"], change["tasks_stopped"]) == (2, 11)


def test_diff_needs_two_versions_of_one_job(sluice: Call, tmp_path: Path) -> None:
    code, _, err = sluice("diff", "nexmark-q5@1", "nexmark-q8@2")
    assert code == 2 and "'nexmark-q5' and 'nexmark-q8'" in err
    store = PlanStore(Workspace(tmp_path / "one"))
    store.publish(PlanStore(Workspace(tmp_path)).get("nexmark-q5", 1), "2026-01-01T00:00:00+00:00")
    code, _, err = sluice("diff", "nexmark-q5", "--workspace", str(tmp_path / "one"))
    assert code == 2 and "only version 1" in err


def test_rollback_adds_a_version(sluice: Call, workspace: Workspace) -> None:
    plan = ok_json(sluice("rollback", "nexmark-q5@1", "--json"))
    assert (plan["version"], plan["task_slots"], plan["lineage"]["trigger"]) == (3, 32, "rollback")
    assert "nexmark-q5@4 deploys what nexmark-q5@2 did" in ok(sluice("rollback", "nexmark-q5@2"))
    assert PlanStore(workspace).versions("nexmark-q5") == [1, 2, 3, 4]


def test_a_rollback_pins_and_unpin_releases(sluice: Call, workspace: Workspace) -> None:
    ok(sluice("rollback", "nexmark-q5@1", "--by", "Ada", "--reason", "lag grew"))
    _, _, err = sluice("list")
    assert "nexmark-q5 is pinned to version 3 of its plan by Ada since" in err and "lag grew" in err
    assert [row["pinned"] for row in ok_json(sluice("list", "--json"))["plans"]] == [False, False, True]
    assert "pinned to version 3" in sluice("show", "nexmark-q5")[2]
    assert run(["replan", "nexmark-q5", "--rate", "1e6"]) == 2
    released = ok_json(sluice("unpin", "nexmark-q5", "--json"))["released"]
    assert (released["version"], released["by"]) == (3, "Ada")
    assert ok_json(sluice("unpin", "nexmark-q5", "--json")) == {"job": "nexmark-q5", "released": None}
    assert "was not pinned" in ok(sluice("unpin", "nexmark-q5"))
    code, _, err = sluice("unpin", "nexmark-q9")
    assert code == 2 and "nexmark-q9" in err


@pytest.mark.parametrize("arguments", [("nexmark-q5",), ("nexmark-q5@2",), ("nexmark-q5@9",)])
def test_rollback_needs_an_older_version(sluice: Call, workspace: Workspace, arguments: tuple[str, ...]) -> None:
    code, out, err = sluice("rollback", *arguments)
    assert (code, out) == (2, "") and "version" in err
    assert PlanStore(workspace).versions("nexmark-q5") == [1, 2]


@pytest.mark.parametrize("form", ["overrides", "requirements", "flinkdeployment", "placement"])
def test_export_keeps_standard_output_for_the_export(sluice: Call, form: str) -> None:
    code, out, err = sluice("export", "nexmark-q5@1", "--format", form)
    assert code == 0
    assert "note: operator names stand in place of Flink's job vertex ids" in err
    parsed = yaml.safe_load(out)
    assert parsed and "note" not in out
    document = ok_json(sluice("export", "nexmark-q5@1", "--format", form, "--json"))
    assert (document["format"], document["content"], document["version"]) == (form, out, 1)


def test_export_takes_vertex_ids_and_writes_to_a_file(sluice: Call, tmp_path: Path) -> None:
    vertices, target = tmp_path / "v.json", tmp_path / "patch.yaml"
    vertices.write_text(json.dumps({"source": "a" * 32, "window": "b" * 32, "sink": "c" * 32}))
    arguments = ("--format", "flinkdeployment", "--vertices", str(vertices), "--output", str(target))
    code, out, err = sluice("export", "nexmark-q5", *arguments)
    assert (code, out) == (0, "") and "wrote" in err and "vertex ids" not in err
    patch = yaml.safe_load(target.read_text())
    assert f"{'b' * 32}:38" in patch["spec"]["flinkConfiguration"]["pipeline.jobvertex-parallelism-overrides"]


def test_export_into_a_folder_that_is_not_there_is_refused(sluice: Call, tmp_path: Path) -> None:
    code, _, err = sluice("export", "nexmark-q5", "--format", "overrides", "--output", str(tmp_path / "no" / "file"))
    assert code == 2 and "does not exist" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("show", "nexmark-q7"), "jobs with plans: nexmark-q5"),
        (("show", "nexmark-q5@9"), "its versions: 1, 2"),
        (("list", "nexmark-q7"), "jobs with plans: nexmark-q5"),
        (("export", "nexmark-q7", "--format", "overrides"), "jobs with plans: nexmark-q5"),
        (("show", "../nexmark-q5"), "JOB or JOB@VERSION"),
        (("show", "nexmark-q5@latest"), "JOB or JOB@VERSION"),
        (("show", "nexmark-q5@0"), "its versions: 1, 2"),
        (("export", "nexmark-q5", "--format", "xml"), "is not one of 'overrides'"),
        (("export", "nexmark-q5", "--format", "overrides", "--vertices", "/no/such"), "does not exist"),
        (("list", "--workspace", "nosuch://x"), "nosuch"),
    ],
)
def test_what_cannot_be_used_is_exit_2_with_what_exists(sluice: Call, arguments: tuple[str, ...], message: str) -> None:
    code, out, err = sluice(*arguments)
    assert (code, out) == (2, "")
    assert message in err and "Traceback" not in err
