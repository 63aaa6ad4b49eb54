"""The task that proposes a plan and waits for its merge, with a real git repository."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import TaskDeferred

from answering.hearing import heard
from flink.server import FakeFlink
from models.errors import InvalidInput, SluiceError
from on_kubernetes.deployed_repository import FILE, MANIFEST, DeployedRepository
from pipelines.apply.record import recorded
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace
from sluice_airflow.merging.task import PlanMerge
from sluice_airflow.merging.trigger import MergeTrigger
from sluice_airflow.tasks import applying
from workspaces.operated_job import JOB, OperatedJob

SOURCE, CHAIN, OTHER, BRANCH = "a" * 32, "b" * 32, "c" * 32, f"sluice/{JOB}-1"


@pytest.fixture
def flink() -> Iterator[FakeFlink]:
    with FakeFlink() as made:
        yield made


@pytest.fixture
def deployed(tmp_path: Path) -> DeployedRepository:
    return DeployedRepository(tmp_path)


@pytest.fixture
def job(tmp_path: Path, flink: FakeFlink, deployed: DeployedRepository, monkeypatch: pytest.MonkeyPatch) -> OperatedJob:
    """It has plan 1: one task of the source, three of the others; a person approves plans."""
    monkeypatch.setenv("SLUICE_WORKSPACE", str(tmp_path / "workspace"))
    made = OperatedJob(tmp_path, Workspace())
    made.publish(3)
    made.apply(mode="approved", flink=flink.url, repository=deployed.block(look_every_s=1, deploy_s=1))
    return made


@pytest.fixture(autouse=True)
def no_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is none that a task could resume too early for."""
    monkeypatch.setattr("sluice_airflow.merging.trigger.SETTLED_S", 0.0)


def _rehearsed(job: OperatedJob) -> str:
    uri = applying.rehearse(PlanStore(job.workspace).uri(JOB, 1))
    assert uri is not None
    return uri


def _task(uri: str, approved_by: str = "person:ann") -> PlanMerge:
    with DAG("applying", schedule=None):
        return PlanMerge(task_id="merge", rehearsal_uri=uri, approved_by=approved_by)


def _deferred(task: PlanMerge) -> MergeTrigger:
    with pytest.raises(TaskDeferred) as raised:
        task.execute({})
    trigger = raised.value.trigger
    assert isinstance(trigger, MergeTrigger)
    return MergeTrigger(**trigger.serialize()[1])


def _fired(trigger: MergeTrigger) -> Any:
    async def first() -> Any:
        return (await anext(trigger.run())).payload

    return asyncio.run(asyncio.wait_for(first(), timeout=20))


def test_a_person_sees_the_change_of_the_file(job: OperatedJob) -> None:
    asked = applying.question(_rehearsed(job))
    assert asked is not None
    assert f"+    pipeline.jobvertex-parallelism-overrides: {SOURCE}:1,{CHAIN}:3" in asked.body
    assert f"1. write {JOB}@1 to {FILE} in the branch {BRANCH} of " in asked.body


def test_a_merged_plan_is_followed_and_recorded_with_who_approved_it(
    job: OperatedJob, flink: FakeFlink, deployed: DeployedRepository
) -> None:
    uri = _rehearsed(job)
    trigger = _deferred(_task(uri))
    deployed.merge(BRANCH)
    event = _fired(trigger)
    assert event["state"] == "merged"
    assert _task(uri).execute_complete({}, event) == trigger.proposal_uri
    flink.tasks = {SOURCE: 1, CHAIN: 3}
    from sluice_airflow.tasks.merging import apply_merged

    assert apply_merged(trigger.proposal_uri).endswith("v000001-applied-000001.json")
    (applied,) = recorded(job.workspace, JOB, 1)
    assert (applied.outcome, applied.approved_by, flink.put_bodies) == ("applied", "ann", [])
    assert applied.repository == f"{deployed.url} main:{FILE}"
    assert applying.rehearse(PlanStore(job.workspace).uri(JOB, 1)) is None, "nothing is left to do"


@pytest.mark.slow
def test_a_merged_plan_that_is_not_deployed_fails_and_is_recorded(
    job: OperatedJob, deployed: DeployedRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trigger = _deferred(_task(_rehearsed(job)))
    deployed.merge(BRANCH)
    assert _fired(trigger)["state"] == "merged"
    from sluice_airflow.tasks.merging import apply_merged

    with (
        heard(tmp_path, monkeypatch) as notices,
        pytest.raises(SluiceError, match="wordcount@1 failed: main has the plan"),
    ):
        apply_merged(trigger.proposal_uri)
    (applied,) = recorded(job.workspace, JOB, 1)
    assert (applied.outcome, [one["kind"] for one in notices]) == ("failed", ["apply-failed"])
    assert "but 'flatmap -> count' still has 1 tasks and not 3 1 s later; check what deploys from" in applied.reason


@pytest.mark.slow
def test_a_merged_plan_that_makes_the_job_worse_is_notified_with_the_branch_that_returns_from_it(
    job: OperatedJob, flink: FakeFlink, deployed: DeployedRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployed.write(FILE, MANIFEST)
    repository = deployed.block(look_every_s=1, deploy_s=1)
    job.apply(mode="approved", flink=flink.url, repository=repository, observe_s=1)
    uri = _rehearsed(job)
    trigger = _deferred(_task(uri))
    deployed.merge(BRANCH)
    assert _fired(trigger)["state"] == "merged"
    flink.tasks, flink.emitted_per_s, flink.backpressure = {SOURCE: 1, CHAIN: 3}, 600.0, 0.5
    from sluice_airflow.tasks.merging import apply_merged

    with heard(tmp_path, monkeypatch) as notices:
        for _ in range(2):  # the second try is one that was killed before it ended
            with pytest.raises(
                SluiceError, match="wordcount@1 failed: the plan made it worse: 600 records/s after 1,500"
            ):
                apply_merged(trigger.proposal_uri)
    first, second = recorded(job.workspace, JOB, 1)
    assert first.proposed_return is not None and second.proposed_return == first.proposed_return
    branch = first.proposed_return.branch
    assert sorted(deployed.branches) == ["main", BRANCH, branch]
    assert deployed.read(branch) == MANIFEST.replace(f"{CHAIN}:1,{OTHER}:5", f"{CHAIN}:1,{OTHER}:5,{SOURCE}:1")
    assert [one["kind"] for one in notices] == ["apply-failed", "apply-failed"]
    assert f"merge the branch {branch} of {deployed.url} into main" in notices[0]["text"]
    assert (first.approved_by, flink.put_bodies) == ("ann", [])


def test_a_deleted_branch_fails_the_task_and_is_recorded(job: OperatedJob, deployed: DeployedRepository) -> None:
    uri = _rehearsed(job)
    trigger = _deferred(_task(uri))
    deployed.delete(BRANCH)
    with pytest.raises(SluiceError, match=f"wordcount@1 not-merged: the branch {BRANCH} was deleted"):
        _task(uri).execute_complete({}, _fired(trigger))
    (applied,) = recorded(job.workspace, JOB, 1)
    assert (applied.outcome, applied.flink_job, applied.commit) == ("not-merged", None, None)


def test_a_task_that_is_run_again_waits_for_the_same_branch(job: OperatedJob, deployed: DeployedRepository) -> None:
    uri = _rehearsed(job)
    _deferred(_task(uri))
    before = deployed.read(BRANCH)
    second = _deferred(_task(uri))
    assert deployed.read(BRANCH) == before
    deployed.merge(BRANCH)
    assert _fired(second)["state"] == "merged"
    again = _task(uri).execute({})
    assert again is not None and again.endswith("-proposed-000003.json"), "nothing is awaited"


def test_a_newer_plan_ends_the_wait(job: OperatedJob) -> None:
    trigger = _deferred(_task(_rehearsed(job)))
    job.publish(4)
    event = _fired(trigger)
    assert event["state"] == "ended" and "wordcount@2 has taken its place" in event["sentence"]


@pytest.mark.slow
def test_a_job_file_that_cannot_be_read_for_a_while_does_not_end_the_wait(
    job: OperatedJob, deployed: DeployedRepository
) -> None:
    trigger = _deferred(_task(_rehearsed(job)))
    job.file.write_text("name: [")
    watch = trigger._watch()
    assert watch.look().state == "waiting"
    deployed.merge(BRANCH)
    assert _fired(trigger)["state"] == "merged"


def test_without_an_approval_or_a_repository_nothing_is_written(
    job: OperatedJob, flink: FakeFlink, deployed: DeployedRepository
) -> None:
    uri = _rehearsed(job)
    assert _task(uri, "rejected:ann").execute({}) is None
    with pytest.raises(InvalidInput, match="must be approved by a person, but was not"):
        _task(uri, "the job's file").execute({})
    flink.tasks = {SOURCE: 1, CHAIN: 2}
    with pytest.raises(InvalidInput, match="the running job has changed since the steps"):
        _task(uri).execute({})
    flink.tasks = {SOURCE: 1, CHAIN: 1}
    job.apply(mode="approved", flink=flink.url)
    assert _task(uri).execute({}) is None
    with pytest.raises(InvalidInput, match="for another value of 'repository' in the job's file"):
        applying.apply_rehearsed(uri, "person:ann")
    by_rest = _rehearsed(job)
    job.apply(mode="approved", flink=flink.url, repository=deployed.block())
    with pytest.raises(InvalidInput, match="for another value of 'repository' in the job's file"):
        _task(by_rest).execute({})
    assert (deployed.branches, flink.put_bodies) == (["main"], [])
