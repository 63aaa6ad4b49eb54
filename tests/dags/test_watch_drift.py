"""The drift DAG, run for real in one Airflow process; samples that were compared before need no Spark."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DagRunState, TaskInstanceState

from answering.hearing import heard
from pipelines.drift.request import request_reprofile
from pipelines.store.workspace import Workspace
from sluice_airflow.tasks.drift import newest_of_each_job
from workspaces.watched_jobs import keep_report, plan_job, sample_production

pytestmark = pytest.mark.slow

DONE, SKIPPED, FAILED = TaskInstanceState.SUCCESS, TaskInstanceState.SKIPPED, TaskInstanceState.FAILED


@pytest.fixture(scope="module")
def workspace(workspace_folder: Path) -> Workspace:
    """Samples of three planned jobs; two were compared, of which one had drifted, and one cannot be."""
    made = Workspace(workspace_folder / "workspace")
    for job in ("broken", "dearer", "steady"):
        plan_job(made, job)
        sample_production(made, job)
    keep_report(made, "dearer", drifted=True)
    keep_report(made, "steady", drifted=False)
    made.delete("runs/broken/measured/features.parquet")
    return made


@pytest.fixture
def watched(workspace: Workspace, run_dag: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """Runs the DAG for all jobs; returns the run's state, its tasks' states, and the contents of its events."""
    monkeypatch.setenv("SLUICE_WORKSPACE", workspace.url)

    def run() -> tuple[str, dict[str, str], list[dict[str, Any]]]:
        dag_run = run_dag("watch_drift")
        states = {task.task_id: task.state for task in dag_run.get_task_instances() if task.task_id != "batches"}
        return dag_run.state, states, _events(dag_run)

    return run


def _events(dag_run: Any) -> list[dict[str, Any]]:
    from airflow.models.asset import AssetEvent
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        query = select(AssetEvent).where(AssetEvent.source_run_id == dag_run.run_id)
        return [dict(event.extra) for event in session.scalars(query)]


def test_requests_are_sent_once_whatever_becomes_of_other_jobs_and_of_processes(
    workspace: Workspace, watched: Callable[[], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with heard(tmp_path, monkeypatch) as notices:
        state, states, (event,) = watched()
    assert state == DagRunState.FAILED, "a job could not be checked"
    assert states == {"watch": FAILED, "ask": DONE, "checked": TaskInstanceState.UPSTREAM_FAILED}
    (asked,) = newest_of_each_job([event])
    assert (asked["job"], asked["reason"]) == ("dearer", "records of dearer cost more")
    assert [notice["text"] for notice in notices] == [
        "production of dearer differs from its measurements: records of dearer cost more"
    ]

    keep_report(workspace, "broken", drifted=False)
    state, states, events = watched()
    assert (state, events) == (DagRunState.SUCCESS, []), "the event was sent before"
    assert states == {"watch": DONE, "ask": SKIPPED, "checked": DONE}

    # A process that is killed keeps a request and sends nothing; the next check finds the job as it was measured.
    lost = request_reprofile(workspace, keep_report(workspace, "steady", drifted=True), datetime.now(UTC))
    assert lost is not None
    keep_report(workspace, "steady", drifted=False)
    state, states, events = watched()
    assert (state, events) == (DagRunState.SUCCESS, [{"requests": [lost.model_dump(mode="json")]}])

    plan_job(workspace, "dearer", run="measured-again")
    keep_report(workspace, "dearer", drifted=False)
    state, states, events = watched()
    assert (state, events) == (DagRunState.SUCCESS, [])
    assert states == {"watch": SKIPPED, "ask": SKIPPED, "checked": DONE}
