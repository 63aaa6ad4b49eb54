"""The DAGs, run for real: simulator, Spark, Great Expectations, MLflow and plan store, in one Airflow process."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG, DagRunState, TaskInstanceState

from pipelines.plan_store import PlanStore
from pipelines.workspace import Workspace

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
    assert _states(planned) == dict.fromkeys(dags["capacity_plan"].task_ids, TaskInstanceState.SUCCESS)
    plan = store.current(JOB)
    assert (plan.version, plan.target_rate, plan.lineage.trigger) == (1, SMALL["rate"], "plan")


def test_tasks_hand_on_uris_of_the_workspace_and_nothing_else(planned: Any, workspace_folder: Path) -> None:
    returned = _returned(planned)
    assert set(returned) == set(_states(planned))
    for task, uri in returned.items():
        assert isinstance(uri, str) and uri.startswith(("file://", "models:/")), task
        if uri.startswith("file://"):
            assert Path(uri.removeprefix("file://")).is_relative_to(workspace_folder), task
            assert Path(uri.removeprefix("file://")).exists(), task


def test_each_asset_gets_an_event_that_says_what_and_for_which_request(planned: Any) -> None:
    returned, events = _returned(planned), _asset_events(planned)
    made_by = {"samples": "check", "features": "check_features", "model": "review", "plan": "publish"}
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


def test_an_event_makes_the_scheduler_replan_and_the_new_plan_gets_its_thresholds(
    planned: Any, running_airflow: Any, store: PlanStore, workspace_folder: Path
) -> None:
    airflow, before, rate = running_airflow, store.versions(JOB), 3 * SMALL["rate"]

    def finished(dag: str) -> Any:
        runs = airflow.call("GET", f"/api/v2/dags/{dag}/dagRuns")["dag_runs"]
        return [run for run in runs if run["state"] in ("success", "failed")]

    for dag in ("replan", "threshold_table"):
        airflow.wait_for(lambda dag=dag: airflow.call("GET", f"/api/v2/dags/{dag}"))
        airflow.call("PATCH", f"/api/v2/dags/{dag}", {"is_paused": False})
    assets = airflow.call("GET", "/api/v2/assets?name_pattern=sluice-rate-change")["assets"]
    event = {"asset_id": assets[0]["id"], "extra": {"job": JOB, "rate": rate}}
    airflow.call("POST", "/api/v2/assets/events", event)
    (run,) = airflow.wait_for(lambda: finished("replan"))
    assert (run["state"], run["run_type"]) == ("success", "asset_triggered")
    assert store.versions(JOB) == [*before, before[-1] + 1]
    assert store.current(JOB).target_rate == rate

    (run,) = airflow.wait_for(lambda: finished("threshold_table"))
    assert (run["state"], run["run_type"]) == ("success", "asset_triggered")
    workspace = Workspace(workspace_folder)
    rates = [workspace.read_table(row)["rate"][0].as_py() for row in workspace.list(f"thresholds/{JOB}")]
    assert max(rates) > 1.5 * rate
