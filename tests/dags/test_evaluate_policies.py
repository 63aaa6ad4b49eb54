"""The DAG of evaluations, run for real on short workloads: replays, page, MLflow, and the policy of each job."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DagRunState, TaskInstanceState

from models.errors import InvalidInput
from pipelines.arena.choice import latest_choice
from pipelines.store.workspace import Workspace
from sluice_airflow.tasks import evaluation

SMALL = {
    "jobs": "nexmark-q1,nexmark-q2",
    "workloads": "cosine",
    "policies": ["ds2", "hpa-cpu"],
    "minutes": 3,
    "burn_in_minutes": 0,
}


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setenv("SLUICE_WORKSPACE", str(tmp_path))
    return Workspace()


def test_lists_and_texts_with_commas_are_the_same_request(workspace: Workspace) -> None:
    uri = evaluation.keep_request({**SMALL, "spark": True})
    assert evaluation.keep_request({**SMALL, "jobs": ["nexmark-q1", "nexmark-q2"]}) == uri
    assert evaluation.keep_request({**SMALL, "minutes": 4}) != uri
    assert evaluation.jobs(uri) == ["nexmark-q1", "nexmark-q2"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"jobs": "no-such-job"}, "no job 'no-such-job'"), ({"policies": "ds2,"}, "no policy ''"), ({"sed": 1}, "sed")],
)
def test_what_cannot_be_evaluated_is_refused_before_anything_is_replayed(
    workspace: Workspace, wrong: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        evaluation.keep_request({**SMALL, **wrong})
    assert workspace.list() == []


def _events(dag_run: Any) -> list[dict[str, Any]]:
    from airflow.models.asset import AssetEvent
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        query = select(AssetEvent).where(AssetEvent.source_run_id == dag_run.run_id)
        return sorted((dict(event.extra) for event in session.scalars(query)), key=lambda extra: str(extra["job"]))


def _files(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.glob("arena/cells/*/*")}


@pytest.mark.slow
def test_each_job_gets_a_policy_and_the_same_again_replays_and_chooses_nothing(
    run_dag: Callable[..., Any], workspace_folder: Path
) -> None:
    done = run_dag("evaluate_policies", **SMALL)
    assert done.state == DagRunState.SUCCESS
    workspace = Workspace(workspace_folder)
    choices = [latest_choice(workspace, job) for job in ("nexmark-q1", "nexmark-q2")]
    events = _events(done)
    assert [(e["job"], e["policy"], e["version"], e["reason"]) for e in events] == [
        (c.job, c.policy, 1, c.reason) for c in choices
    ]
    assert all(Path(e["uri"].removeprefix("file://")).exists() for e in events)
    assert len(list(workspace_folder.glob("arena/evaluations/*/report.html"))) == 1
    assert len(list(workspace_folder.glob("mlflow/artifacts/*/*/artifacts/results.parquet"))) == 2
    before = _files(workspace_folder)
    assert len(before) == 8
    again = run_dag("evaluate_policies", **SMALL)
    assert again.state == DagRunState.SUCCESS
    assert _files(workspace_folder) == before
    assert [e["version"] for e in _events(again)] == [1, 1]


@pytest.mark.slow
def test_an_unknown_job_fails_at_once_where_it_was_found(run_dag: Callable[..., Any]) -> None:
    failed = run_dag("evaluate_policies", **{**SMALL, "jobs": "no-such-job"})
    assert failed.state == DagRunState.FAILED
    states = {task.task_id: task.state for task in failed.get_task_instances()}
    assert states["request"] == TaskInstanceState.FAILED
    assert states["replay"] == TaskInstanceState.UPSTREAM_FAILED
