"""The DAGs, run for real: simulator, Spark, Great Expectations, MLflow and plan store, in one Airflow process."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG, DagRunState, TaskInstanceState

from answering.hearing import heard
from pipelines.inputs.catalogue import load_job
from pipelines.planning.gathering import sustained_in_production
from pipelines.run import PipelineRun
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace
from sluice_airflow.tasks.drift import keep_reprofile_request
from testbeds.protocol import Configuration
from testbeds.simulator import Simulator
from testbeds.simulator.simulator import streambed_cluster

pytestmark = pytest.mark.slow

JOB = "nexmark-q1"
SMALL = {"job": JOB, "rate": 400_000.0, "max_measurements": 3, "max_task_slots": 12}


@pytest.fixture(scope="module")
def planned(run_dag: Callable[..., Any]) -> Any:
    """The DAG run of a small plan."""
    return run_dag("capacity_plan", **SMALL)


@pytest.fixture(scope="module")
def store(workspace_folder: Path) -> PlanStore:
    return PlanStore(Workspace(workspace_folder))


def _states(dag_run: Any) -> dict[str, str]:
    return {task.task_id: task.state for task in dag_run.get_task_instances()}


def _returned(dag_run: Any) -> dict[str, Any]:
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session

    with create_session() as session:
        query = XComModel.get_many(run_id=dag_run.run_id, dag_ids=dag_run.dag_id)
        return {value.task_id: XComModel.deserialize_value(value) for value in session.scalars(query)}


def _asset_events(dag_run: Any) -> dict[str, dict[str, Any]]:
    from airflow.models.asset import AssetEvent
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        query = select(AssetEvent).where(AssetEvent.source_run_id == dag_run.run_id)
        return {event.asset.name: dict(event.extra) for event in session.scalars(query)}


def _measured(workspace: Path) -> dict[str, int]:
    """When each measurement was written."""
    files = [*workspace.glob("samples/**/*.parquet"), *workspace.glob("runs/*/*/observations/*.json")]
    return {str(file): file.stat().st_mtime_ns for file in files}


def test_every_stage_succeeds_and_a_plan_is_published(dags: dict[str, DAG], planned: Any, store: PlanStore) -> None:
    assert planned.state == DagRunState.SUCCESS
    states = _states(planned)
    assert states.pop("ask_again") == TaskInstanceState.SKIPPED, "no other job needs new measurements"
    assert states == dict.fromkeys(set(dags["capacity_plan"].task_ids) - {"ask_again"}, TaskInstanceState.SUCCESS)
    plan = store.current(JOB)
    assert (plan.version, plan.target_rate, plan.lineage.trigger) == (1, SMALL["rate"], "plan")


def test_tasks_hand_on_uris_of_the_workspace_and_nothing_else(planned: Any, workspace_folder: Path) -> None:
    returned = _returned(planned)
    assert returned.pop("jobs") == []
    assert set(returned) == set(_states(planned)) - {"jobs", "ask_again"}
    for task, uri in returned.items():
        assert isinstance(uri, str) and uri.startswith(("file://", "models:/")), task
        if uri.startswith("file://"):
            assert Path(uri.removeprefix("file://")).is_relative_to(workspace_folder), task
            assert Path(uri.removeprefix("file://")).exists(), task


def test_each_asset_gets_an_event_that_says_what_and_for_which_request(planned: Any) -> None:
    returned, events = _returned(planned), _asset_events(planned)
    made_by = {"samples": "check", "features": "check_features", "model": "approve", "plan": "publish"}
    assert events == {
        f"sluice-{asset}": {"request": returned["request"], "uri": returned[task]} for asset, task in made_by.items()
    }


def test_the_same_request_again_measures_nothing_and_makes_no_second_plan(
    planned: Any, run_dag: Callable[..., Any], store: PlanStore, workspace_folder: Path
) -> None:
    before = _measured(workspace_folder)
    assert before
    again = run_dag("capacity_plan", **SMALL)
    assert again.state == DagRunState.SUCCESS
    assert _returned(again) == _returned(planned)
    assert _measured(workspace_folder) == before
    assert store.versions(JOB) == [1]


def test_a_request_that_cannot_be_met_fails_at_once_where_it_was_found(run_dag: Callable[..., Any]) -> None:
    failed = run_dag("capacity_plan", job="no-such-job", rate=1.0)
    assert failed.state == DagRunState.FAILED
    states = _states(failed)
    assert states.pop("request") == TaskInstanceState.FAILED
    done, skipped = TaskInstanceState.SUCCESS, TaskInstanceState.SKIPPED
    assert (states.pop("jobs"), states.pop("ask_again")) == (done, skipped)
    assert set(states.values()) == {TaskInstanceState.UPSTREAM_FAILED}
    assert [task.try_number for task in failed.get_task_instances() if task.task_id == "request"] == [1]


def test_replanning_by_hand_makes_the_next_version_and_measures_nothing(
    planned: Any, run_dag: Callable[..., Any], store: PlanStore, workspace_folder: Path
) -> None:
    before, measured = store.versions(JOB), _measured(workspace_folder)
    replanned = run_dag("replan", job=JOB, rate=2 * SMALL["rate"])
    assert replanned.state == DagRunState.SUCCESS
    plan = store.current(JOB)
    assert store.versions(JOB) == [*before, before[-1] + 1]
    assert (plan.target_rate, plan.lineage.trigger) == (2 * SMALL["rate"], "replan")
    assert _returned(replanned)["plan_again"] == store.uri(JOB, plan.version)
    assert _measured(workspace_folder) == measured


def test_replanning_for_the_rate_that_is_planned_for_is_skipped(
    planned: Any, run_dag: Callable[..., Any], store: PlanStore
) -> None:
    run_dag("replan", job=JOB, rate=500_000.0)
    before = store.versions(JOB)
    again = run_dag("replan", job=JOB, rate=500_000.0)
    assert again.state == DagRunState.SUCCESS
    assert _states(again)["plan_again"] == TaskInstanceState.SKIPPED
    assert store.versions(JOB) == before


def test_replanning_without_a_job_and_a_rate_fails_at_once(run_dag: Callable[..., Any]) -> None:
    failed = run_dag("replan")
    assert failed.state == DagRunState.FAILED
    assert _states(failed)["changes"] == TaskInstanceState.FAILED


def _sampled_in_production(workspace: Workspace, parallelism: dict[str, int], window: str, dearer: float) -> None:
    """A window of production samples of q1, whose operator calc costs `dearer` times the CPU."""
    job = load_job(JOB)
    calc = job.operator("calc")
    costlier = calc.model_copy(update={"cost": calc.cost.model_copy(update={"cpu_s": dearer * calc.cost.cpu_s})})
    changed = job.model_copy(update={"operators": tuple(costlier if o is calc else o for o in job.operators)})
    with Simulator(streambed_cluster()).deploy(
        changed, Configuration(parallelism, memory_mb=8192.0), run=window, seed=len(window)
    ) as deployed:
        deployed.inject(0.5 * SMALL["rate"], 20.0, "warmup")
        observed = deployed.inject(0.5 * SMALL["rate"], 30.0, "observe")
    workspace.write_table(f"production/{JOB}/{window}.parquet", observed.samples)


def test_drift_in_production_asks_once_for_a_new_plan_and_names_the_operator(
    planned: Any, run_dag: Callable[..., Any], store: PlanStore, workspace_folder: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    workspace = Workspace(workspace_folder)
    plan = store.current(JOB)
    parallelism = {o.name: o.parallelism for o in plan.operators}
    for hour in range(3):
        _sampled_in_production(workspace, parallelism, f"day-1-{'x' * hour}", dearer=1.0)
    quiet = run_dag("watch_drift", job=JOB)
    assert quiet.state == DagRunState.SUCCESS
    assert (_states(quiet)["watch"], _asset_events(quiet)) == (TaskInstanceState.SKIPPED, {})
    run = PipelineRun.open(workspace, f"runs/{JOB}/{plan.lineage.run}/request.json")
    (taken,) = sustained_in_production(run)
    assert (taken.plan_version, taken.task_slots) == (plan.version, plan.task_slots)
    assert taken.rate == pytest.approx(0.5 * SMALL["rate"], rel=0.05), "as it was offered"

    for hour in range(3):
        _sampled_in_production(workspace, parallelism, f"day-2/{'x' * hour}y", dearer=1.3)
    with heard(tmp_path, monkeypatch) as notices:
        drifted = run_dag("watch_drift", job=JOB, samples=f"production/{JOB}/day-2")
    assert drifted.state == DagRunState.SUCCESS
    (event,) = _asset_events(drifted)["sluice-reprofile"]["requests"]
    assert notices == [
        {"kind": "drift-found", "text": f"production of {JOB} differs from its measurements: {event['reason']}"}
    ]
    assert (event["job"], event["rate"]) == (JOB, plan.target_rate)
    assert event["request"] == workspace.uri(f"runs/{JOB}/{plan.lineage.run}/request.json")
    assert re.search(
        r"calc: CPU time per record is \d+ ns \(\+\d+%\), and \d+ ns to \d+ ns was expected", event["reason"]
    )
    assert "sink" not in event["reason"] and "source:" not in event["reason"]

    repeated = PipelineRun.open(workspace, tasks_key(keep_reprofile_request(event, "repeated"), workspace))
    assert (repeated.run_id, repeated.request.job, repeated.request.rate) == ("repeated", JOB, plan.target_rate)
    assert repeated.request.max_task_slots == SMALL["max_task_slots"], "the rest of the request is unchanged"

    again = run_dag("watch_drift", job=JOB, samples=f"production/{JOB}/day-2/xxy.parquet")
    states = _states(again)
    assert (states["watch"], states["ask"]) == (TaskInstanceState.SKIPPED,) * 2, "it was asked for before"


def tasks_key(uri: str, workspace: Workspace) -> str:
    """The workspace key behind a URI."""
    return uri.removeprefix(f"{workspace.url.rstrip('/')}/")


def test_a_threshold_table_is_made_by_hand_and_a_second_time_tunes_nothing(
    planned: Any, run_dag: Callable[..., Any], workspace_folder: Path
) -> None:
    asked = {"job": JOB, "rate": SMALL["rate"], "lowest": 0.9, "highest": 1.1}
    made = run_dag("threshold_table", **asked)
    assert made.state == DagRunState.SUCCESS
    (table,) = workspace_folder.glob(f"thresholds/{JOB}/*")
    uri = f"file://{table}"
    assert _asset_events(made) == {"sluice-thresholds": {"job": JOB, "uri": uri}}
    before = {row.name: row.stat().st_mtime_ns for row in table.iterdir()}
    assert before
    assert run_dag("threshold_table", **asked).state == DagRunState.SUCCESS
    assert {row.name: row.stat().st_mtime_ns for row in table.iterdir()} == before


def test_a_threshold_table_without_a_job_fails_at_once(run_dag: Callable[..., Any]) -> None:
    failed = run_dag("threshold_table")
    assert failed.state == DagRunState.FAILED
    assert _states(failed)["jobs"] == TaskInstanceState.FAILED
