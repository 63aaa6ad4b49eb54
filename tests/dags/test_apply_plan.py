"""The DAG that applies plans: its tasks, and the plans it applies, against a fake Flink."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG, DagRunState, TaskInstanceState

from answering.hearing import heard
from flink.server import FakeFlink
from models.errors import InvalidInput, SluiceError
from on_kubernetes.deployed_repository import DeployedRepository, git
from pipelines.apply.record import recorded
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace
from sluice_airflow.approvals.plan import JOB_FILE, PlanApproval
from sluice_airflow.tasks import applying
from workspaces.operated_job import JOB, OperatedJob

NOTHING: dict[str, Any] = {"job": None, "version": None}
SOURCE, CHAIN = "a" * 32, "b" * 32


def test_steps_are_rehearsed_approved_and_applied(dags: dict[str, DAG]) -> None:
    dag = dags["apply_plan"]
    assert [asset.name for asset in dag.timetable.asset_condition.objects] == ["sluice-plan"]
    assert [task.task_id for task in dag.topological_sort()] == [
        "plans",
        "one_plan.rehearse",
        "one_plan.approve",
        "one_plan.merge",
        "one_plan.apply",
    ]
    assert dag.get_task("one_plan.apply").upstream_task_ids == {
        "one_plan.rehearse",
        "one_plan.approve",
        "one_plan.merge",
    }
    # Two plans must not change a job at once; a pending approval blocks no other plan.
    assert dag.get_task("one_plan.apply").max_active_tis_per_dag == 1
    assert dag.get_task("one_plan.merge").max_active_tis_per_dag is None, "a pending merge blocks no other plan either"
    assert dag.max_active_runs > 1


@pytest.fixture
def flink() -> Iterator[FakeFlink]:
    with FakeFlink() as made:
        yield made


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OperatedJob:
    """It has plan 1: one task of the source, three of the others."""
    monkeypatch.setenv("SLUICE_WORKSPACE", str(tmp_path / "workspace"))
    made = OperatedJob(tmp_path, Workspace())
    made.publish(3)
    return made


def _event(job: OperatedJob, version: int) -> dict[str, str]:
    return {"uri": PlanStore(job.workspace).uri(JOB, version)}


def test_plans_are_applied_where_the_jobs_file_allows_it(job: OperatedJob) -> None:
    assert applying.plans_to_apply(NOTHING, [_event(job, 1)]) == []
    job.apply(mode="approved", flink="http://127.0.0.1:1")
    assert applying.plans_to_apply(NOTHING, [_event(job, 1)]) == [_event(job, 1)["uri"]]
    assert applying.plans_to_apply({"job": JOB, "version": None}, []) == [_event(job, 1)["uri"]]
    job.publish(4)
    assert applying.plans_to_apply(NOTHING, [_event(job, 2), _event(job, 1)]) == [_event(job, 2)["uri"]]
    assert applying.plans_to_apply(NOTHING, [_event(job, 1)]) == []
    with pytest.raises(InvalidInput, match="wordcount@2 has taken its place"):
        applying.plans_to_apply({"job": JOB, "version": 1}, [])


def test_an_invalid_job_file_does_not_block_other_jobs(job: OperatedJob) -> None:
    job.file.write_text("name: [")
    assert applying.plans_to_apply(NOTHING, [_event(job, 1)]) == []


def test_a_person_is_asked_with_the_steps_and_the_reason(job: OperatedJob, flink: FakeFlink) -> None:
    job.apply(mode="approved", flink=flink.url, approval_s=3600)
    uri = applying.rehearse(_event(job, 1)["uri"])
    assert uri is not None
    asked = applying.question(uri)
    assert asked is not None
    assert (asked.subject, asked.patience_s) == ("Apply wordcount@1, for 1,500 records/s?", 3600)
    assert "| flatmap, count | 1 | 3 |" in asked.body
    assert "1. request flatmap -> count 1 -> 3" in asked.body
    job.apply(mode="alone", flink=flink.url)
    assert applying.question(uri) is None


@pytest.mark.parametrize(
    ("chosen", "who", "decided"),
    [
        ("Approve", {"id": "1", "name": "ann"}, "person:ann"),
        ("Reject", {"id": "1", "name": "ann"}, "rejected:ann"),
        ("Reject", None, "rejected:no answer in time"),
    ],
)
def test_the_answer_decides_and_rejected_steps_are_not_taken(
    job: OperatedJob, flink: FakeFlink, chosen: str, who: Any, decided: str
) -> None:
    job.apply(mode="approved", flink=flink.url)
    uri = applying.rehearse(_event(job, 1)["uri"])
    assert uri is not None
    asking = PlanApproval(task_id="approve", rehearsal_uri=uri)
    answered = {"chosen_options": [chosen], "params_input": {}, "responded_at": datetime.now(UTC)}
    decision = asking.execute_complete({"task": asking, "ti": None}, {**answered, "responded_by_user": who})
    assert decision == decided
    record = applying.apply_rehearsed(uri, decision)
    assert (record is None) == (chosen == "Reject") == (flink.put_bodies == [])


def test_a_plan_that_is_not_applied_is_told(
    job: OperatedJob, flink: FakeFlink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with heard(tmp_path, monkeypatch) as notices:
        job.apply(mode="alone", flink=flink.url)
        uri = applying.rehearse(_event(job, 1)["uri"])
        assert uri is not None and notices == []
        flink.refusal = (400, {"errors": ["the demand is odd"]})
        with pytest.raises(SluiceError, match="the demand is odd"):
            applying.apply_rehearsed(uri, JOB_FILE)
        flink.jobs = []
        with pytest.raises(SluiceError):
            applying.rehearse(_event(job, 1)["uri"])
    assert [one["kind"] for one in notices] == ["apply-failed", "apply-failed"]
    assert (
        notices[0]["text"].startswith(f"a plan of {JOB} was not applied: ")
        and "the demand is odd" in notices[0]["text"]
    )


def _store(name: str, **fields: str) -> None:
    """Store a connection in Airflow's database."""
    from airflow.models.connection import Connection
    from airflow.utils.session import create_session

    with create_session() as session:
        session.add(Connection(conn_id=name, **fields))


@pytest.mark.slow
def test_a_job_that_allows_it_is_changed_without_approval_and_only_once(
    run_dag: Callable[..., Any], job: OperatedJob, flink: FakeFlink
) -> None:
    _store("stored_flink", conn_type="sluice_flink", host=flink.url, password="a-token-of-this-test")
    job.apply(mode="alone", flink="connection:stored_flink")
    done = run_dag("apply_plan", job=JOB)
    assert done.state == DagRunState.SUCCESS
    assert flink.tasks == {SOURCE: 1, CHAIN: 3}
    (applied,) = recorded(job.workspace, JOB, 1)
    assert (applied.outcome, applied.approved_by) == ("applied", None)
    kept = [path for path in Path(job.workspace.url.removeprefix("file://")).rglob("*") if path.is_file()]
    assert kept and not any(b"a-token-of-this-test" in path.read_bytes() for path in kept)

    again = run_dag("apply_plan", job=JOB)
    assert again.state == DagRunState.SUCCESS
    assert {t.task_id: t.state for t in again.get_task_instances()}["one_plan.apply"] == TaskInstanceState.SKIPPED
    assert len(flink.put_bodies) == 1


@pytest.mark.slow
def test_a_job_that_is_deployed_from_a_repository_is_changed_by_the_merge_alone(
    run_dag: Callable[..., Any], job: OperatedJob, flink: FakeFlink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sluice_airflow.merging.trigger.SETTLED_S", 0.0)
    deployed = DeployedRepository(tmp_path)
    job.apply(mode="alone", flink=flink.url, repository=deployed.block(look_every_s=1, deploy_s=30))

    def person_and_deployer() -> None:
        while f"sluice/{JOB}-1" not in deployed.branches:
            time.sleep(0.1)
        deployed.merge(f"sluice/{JOB}-1", "squash", delete=True)
        time.sleep(1)
        flink.tasks = {SOURCE: 1, CHAIN: 3}

    with ThreadPoolExecutor(1) as pool:
        others = pool.submit(person_and_deployer)
        done = run_dag("apply_plan", job=JOB)
        others.result()
    assert done.state == DagRunState.SUCCESS
    (applied,) = recorded(job.workspace, JOB, 1)
    assert (applied.outcome, applied.method, flink.put_bodies) == ("applied", "merge", [])
    assert applied.commit == git(deployed.bare, "rev-parse", "main")
