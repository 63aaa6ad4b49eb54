"""`sluice plans apply` against a server that answers as Flink does, or late, or not at all."""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from flink_client.jobs.running import sql_vertices
from flink_client.rest.client import FlinkRest
from models.plan.content import PlanContent
from pipelines.apply.applied import Applied
from pipelines.apply.record import recorded
from pipelines.cli import run
from pipelines.inputs.catalogue import load_job
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace
from workspaces.operated_job import JOB, OperatedJob

Call = Callable[..., tuple[int, str, str]]
JOB_ID = "1" * 32
SOURCE, CHAIN = "a" * 32, "b" * 32


@pytest.fixture
def workspace(tmp_path: Path, make_plan: Callable[..., PlanContent]) -> Workspace:
    """A plan with one source task and three of the chain."""
    workspace = Workspace(tmp_path)
    PlanStore(workspace).publish(make_plan({"tm1": {"source": 1, "flatmap": 3, "count": 3}}), "2026-01-01T00:00:00Z")
    return workspace


@pytest.fixture
def sluice(workspace: Workspace, flink: Any, capsys: pytest.CaptureFixture[str]) -> Call:
    """Applies the plan; returns exit code, standard output and standard error."""

    def call(*arguments: str) -> tuple[int, str, str]:
        command = ["plans", "apply", "wordcount", "--flink", flink.url, "--workspace", workspace.url]
        code = run([*command, "--observe", "0", "--timeout", "1", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests are repeated for a moment only."""
    defaults = {**(FlinkRest.__init__.__kwdefaults__ or {}), "timeout_s": 0.5, "patience_s": 0.3}
    monkeypatch.setattr(FlinkRest.__init__, "__kwdefaults__", defaults)


def bounds(tasks: int) -> dict[str, dict[str, int]]:
    return {"parallelism": {"lowerBound": tasks, "upperBound": tasks}}


def test_a_plan_that_flink_follows_is_applied_and_recorded(sluice: Call, flink: Any, workspace: Workspace) -> None:
    code, out, err = sluice("--json")
    assert code == 0, err
    applied = Applied.model_validate_json(out)
    assert (applied.outcome, applied.method, applied.placement) == ("applied", "rescale", "advice")
    assert flink.put_bodies == [{SOURCE: bounds(1), CHAIN: bounds(3)}]
    assert recorded(workspace, "wordcount", 1) == [applied]
    assert PlanStore(workspace).versions("wordcount") == [1]
    assert applied.changes[1].operators == ("flatmap", "count") and applied.advice[0].startswith("placement: ")
    code, out, _ = sluice()
    assert code == 0 and "unchanged" in out and len(flink.put_bodies) == 1
    assert [one.outcome for one in recorded(workspace, "wordcount", 1)] == ["applied", "unchanged"]


def test_a_rehearsal_changes_nothing(sluice: Call, flink: Any, workspace: Workspace) -> None:
    code, out, _ = sluice("--dry-run")
    assert code == 0 and "1. request flatmap -> count 1 -> 3" in out and "placement: the cluster has no" in out
    code, out, _ = sluice("--dry-run", "--json")
    document = json.loads(out)
    assert [(c["before"], c["after"]) for c in document["changes"]] == [(1, 1), (1, 3)] and len(document["steps"]) == 2
    assert flink.put_bodies == [] and recorded(workspace, "wordcount", 1) == []


def test_a_bounded_side_input_that_was_read_is_done_and_keeps_its_tasks(
    sluice: Call, flink: Any, workspace: Workspace
) -> None:
    flink.add_done_source(tasks=4)
    flink.slots = 1 + 3 + 1
    code, out, err = sluice("--json", "--observe", "1")
    assert code == 0, err
    applied = Applied.model_validate_json(out)
    assert (applied.outcome, applied.method) == ("applied", "rescale")
    # What Flink had for it, one to four tasks, is put back as it was.
    (body,) = flink.put_bodies
    assert (body[SOURCE], body[CHAIN]) == (bounds(1), bounds(3))
    assert body["c" * 32] == {"parallelism": {"lowerBound": 1, "upperBound": 4}}
    assert "'Source: rules' is done and keeps its tasks" in applied.advice
    assert applied.effect is not None and applied.effect.rate == pytest.approx(1500.0)
    flink.slots, flink.tasks[CHAIN] = 4, 1
    code, _, err = sluice()
    assert code == 3 and "needs 5 slots, but the cluster has 4" in err


def test_a_plan_that_flink_does_not_follow_is_rolled_back(sluice: Call, flink: Any, workspace: Workspace) -> None:
    flink.obeys = False
    code, out, err = sluice()
    assert code == 1 and "still has 1 tasks and not 3 after 1 s" in err and "rolled-back" in out
    assert flink.put_bodies[-1] == {v: {"parallelism": {"lowerBound": 1, "upperBound": 1}} for v in (SOURCE, CHAIN)}
    assert [one.outcome for one in recorded(workspace, "wordcount", 1)] == ["rolled-back"]


def test_restoring_may_take_longer_than_the_plan(sluice: Call, flink: Any) -> None:
    def restarted() -> None:
        flink.state = "RESTARTING"
        if len(flink.put_bodies) == 2:
            threading.Timer(1.0, lambda: setattr(flink, "state", "RUNNING")).start()

    flink.after_put = restarted
    code, out, err = sluice("--timeout", "0.2")
    assert code == 1 and "is restarting" in err and "after 0.2 s" in err
    assert "rolled-back" in out and "restoring the previous state failed" not in err


def test_a_job_that_fails_is_reported_and_not_waited_for(sluice: Call, flink: Any) -> None:
    flink.after_put = lambda: setattr(flink, "state", "FAILED")
    code, out, err = sluice("--json", "--timeout", "60")
    assert code == 1 and "is failed: RuntimeException: boom" in err and "last checkpoint or savepoint" in err
    assert Applied.model_validate_json(out).outcome == "failed"


def test_a_refused_demand_is_reported_in_flinks_words(sluice: Call, flink: Any) -> None:
    flink.refusal = (400, {"errors": ["the demand is odd"]})
    code, _, err = sluice()
    assert code == 1 and "the demand is odd" in err


def test_a_cluster_that_is_away_for_a_moment_is_waited_for(sluice: Call, flink: Any, impatient: None) -> None:
    def away() -> None:
        flink.faults = [(503, {"errors": ["leader election"]})] * 4 + [(200, "<html>proxy</html>")]

    flink.after_put = away
    code, _, err = sluice("--timeout", "10")
    assert code == 0, err


@pytest.mark.parametrize(
    ("break_it", "code", "message"),
    [
        ({"jobs": []}, 2, "no job named 'wordcount' runs"),
        ({"jobs": [{"jid": str(i) * 32, "name": "wordcount", "state": "RUNNING"} for i in (1, 2)]}, 2, "2 jobs named"),
        ({"state": "RESTARTING"}, 1, "is restarting, and not all of its tasks run"),
        ({"names": {SOURCE: "Source: source", CHAIN: "split -> count"}}, 2, "the plan has source, flatmap, count"),
        ({"slots": 3}, 3, "needs 4 slots, but the cluster has 3"),
        ({"settings": {}}, 2, f"{SOURCE}:1,{CHAIN}:3"),
        ({"settings": {"scheduler-mode": "reactive"}}, 2, "reactive mode"),
        ({"faults": [(200, "<html>")]}, 1, "does not answer as Flink's REST interface does"),
        ({"faults": [(200, [])]}, 1, "does not answer as Flink's REST interface does"),
        ({"faults": [(404, {"errors": ["Unable to load"]})]}, 1, "404 to GET /jobs/overview"),
        ({"faults": [(500, {"errors": ["broken"]})] * 9}, 1, "500 to GET /jobs/overview"),
        ({"pause_s": 1.0}, 1, "does not answer"),
    ],
)
def test_what_cannot_be_applied_is_refused_before_anything_is_changed(
    sluice: Call, flink: Any, impatient: None, break_it: dict[str, object], code: int, message: str
) -> None:
    for name, value in break_it.items():
        setattr(flink, name, value)
    got, out, err = sluice()
    assert (got, out) == (code, "") and message in err and "Traceback" not in err
    assert flink.put_bodies == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--flink", "localhost:8081"), "such as http://host:8081"),
        (("--job-id", "../x"), "32 hexadecimal digits"),
        (("--job-id", "f" * 32), f"'wordcount' ({JOB_ID})"),
        (("--program", "/no/such"), "does not exist"),
    ],
)
def test_wrong_arguments_are_reported(sluice: Call, arguments: tuple[str, ...], message: str) -> None:
    code, out, err = sluice(*arguments)
    assert (code, out) == (2, "") and message in err


def test_chained_operators_that_differ_in_tasks_are_refused(
    sluice: Call, workspace: Workspace, make_plan: Callable[..., PlanContent]
) -> None:
    PlanStore(workspace).publish(make_plan({"tm1": {"source": 1, "flatmap": 1, "count": 3}}), "2026-01-02T00:00:00Z")
    code, _, err = sluice()
    assert code == 2 and "{'flatmap': 1, 'count': 3}" in err


def test_vertices_can_be_named(sluice: Call, flink: Any, tmp_path: Path) -> None:
    flink.names = {SOURCE: "Custom Source", CHAIN: "Flat Map -> Keyed Aggregation"}
    file = tmp_path / "vertices.yaml"
    file.write_text(yaml.safe_dump({"source": SOURCE, "flatmap": CHAIN, "count": CHAIN}))
    assert sluice("--vertices", str(file))[0] == 0
    file.write_text(yaml.safe_dump({"source": SOURCE, "flatmap": "c" * 32, "count": "c" * 32}))
    code, _, err = sluice("--vertices", str(file))
    assert code == 2 and f"'flatmap' is mapped to vertex {'c' * 32}, but the job runs 'Custom Source'" in err


def test_a_job_that_was_planned_from_a_path_may_name_its_vertices_there(
    flink: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And not in the catalogue, which has another job of that name."""
    job = OperatedJob(tmp_path, Workspace(tmp_path / "workspace"))
    job.publish(3)
    flink.names = {SOURCE: "Source: card transactions", CHAIN: "Flat Map -> Keyed Aggregation"}
    job.call_in_flink({"source": "card transactions", "flatmap": "Flat Map", "count": "Keyed Aggregation"})
    job.operate(None)
    command = ["plans", "apply", JOB, "--flink", flink.url, "--workspace", job.workspace.url, "--observe", "0"]
    code = run(command)
    assert code == 0, capsys.readouterr().err
    assert flink.tasks == {SOURCE: 1, CHAIN: 3}
    job.file.unlink()
    code = run(command)
    err = capsys.readouterr().err
    assert code == 2 and "operators are found by their own names, since the job's file cannot be read" in err
    assert "operator 'source' of the plan is in no vertex" in err


def test_operators_of_a_sql_job_are_found_by_its_dataflow(flink: Any, root: Path) -> None:
    """The plan of nexmark-q1 as Flink 1.20.5 gives it, without the fields' types."""
    scan = "[1]:TableSourceScan(table=[[default_catalog, default_database, events]], fields=[bid, dateTime])<br/>"
    calc = "[2]:Calc(select=[bid.auction AS auction], where=[(event_type = 2)])<br/>"
    steps = [(SOURCE, scan, []), (CHAIN, calc, [SOURCE]), ("c" * 32, "converted_bids[3]: Writer<br/>", [CHAIN])]
    nodes = [
        {
            "id": id_,
            "description": text,
            "parallelism": 1,
            "inputs": [{"id": up, "ship_strategy": "REBALANCE"} for up in inputs],
        }
        for id_, text, inputs in steps
    ]
    flink.plan = {"nodes": nodes}
    q1 = load_job(root / "jobs" / "nexmark-q1.yaml")
    with FlinkRest(flink.url) as rest:
        found = sql_vertices(rest, JOB_ID, ["source", "calc", "sink"], q1)
        assert found == {"source": SOURCE, "calc": CHAIN, "sink": "c" * 32}
        named_by_flink = sql_vertices(rest, JOB_ID, ["events", "calc", "converted_bids"], None)
        assert list((named_by_flink or {}).values()) == [SOURCE, CHAIN, "c" * 32]
        assert sql_vertices(rest, JOB_ID, ["source", "map", "sink"], q1) is None
        flink.plan = {"nodes": [{**nodes[0], "description": f"{scan}+- {calc}"}]}
        assert sql_vertices(rest, JOB_ID, ["source", "calc", "sink"], q1) is None


def test_memory_is_advised(
    sluice: Call, flink: Any, workspace: Workspace, make_plan: Callable[..., PlanContent]
) -> None:
    plan = make_plan({"tm1": {"source": 1, "flatmap": 3, "count": 3}}, memory_mb=4096.0)
    PlanStore(workspace).publish(plan, "2026-01-02T00:00:00Z")
    advice = json.loads(sluice("--dry-run", "--json")[1])["advice"]
    assert "taskmanager.memory.process.size: 4096m" in advice[1] and "tm1: 900" in advice[1]


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ({"jar": "unknown.jar", "entry_class": "a.B"}, "uploaded are known.jar"),
        ({"jar": "known.jar", "entry_class": "a.B"}, "no execution.checkpointing.savepoint-dir"),
        ({"jar": "known.jar"}, "entry_class"),
    ],
)
def test_a_restart_needs_a_jar_and_a_folder(
    sluice: Call, flink: Any, tmp_path: Path, program: dict[str, str], message: str
) -> None:
    flink.settings = {}
    file = tmp_path / "program.yaml"
    file.write_text(yaml.safe_dump(program))
    code, _, err = sluice("--program", str(file))
    assert code == 2 and message in err


def test_a_rehearsed_restart_lists_its_steps(sluice: Call, flink: Any, tmp_path: Path) -> None:
    flink.settings = {"state.savepoints.dir": "file:///savepoints"}
    file = tmp_path / "program.yaml"
    file.write_text(yaml.safe_dump({"jar": "known.jar", "entry_class": "a.B"}))
    document = json.loads(sluice("--program", str(file), "--dry-run", "--json")[1])
    assert document["method"] == "restart" and "file:///savepoints" in document["steps"][0]
    assert "start a.B from it with flatmap -> count 1 -> 3" in document["steps"][1]


@pytest.mark.parametrize(
    ("version", "refused"), [("1.20.5", False), ("2.0.1", True), ("2.3.0", True), ("2.4-SNAPSHOT", False)]
)
def test_no_restart_where_flink_ignores_the_overrides_of_a_program(
    sluice: Call, flink: Any, tmp_path: Path, version: str, refused: bool
) -> None:
    """FLINK-38770: Flink 2 overrides the parallelism of job graphs only, and a program submits a stream graph."""
    flink.settings, flink.version = {"state.savepoints.dir": "file:///savepoints"}, version
    file = tmp_path / "program.yaml"
    file.write_text(yaml.safe_dump({"jar": "known.jar", "entry_class": "a.B"}))
    code, _, err = sluice("--program", str(file), "--dry-run")
    assert code == (2 if refused else 0)
    assert (f"Flink {version} ignores pipeline.jobvertex-parallelism-overrides" in err) is refused
    assert not flink.put_bodies
