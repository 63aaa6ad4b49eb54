"""A running Airflow: people answer through its REST API, events and requests start runs, and runs wait for one another.

A server of the tests answers as Flink does. Jobs are measured by what was published, so that runs take seconds.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flink.observed import COUNT, SINK, SOURCE, ObservedFlink
from flink.server import FakeFlink
from on_kubernetes.deployed_repository import DeployedRepository
from pipelines.apply.record import recorded
from pipelines.drift.production import find_samples
from pipelines.inputs.plan_request import PlanRequest
from pipelines.observe.continuous.windows import Windows
from pipelines.registry.models import list_versions
from pipelines.registry.tracking import open_tracking
from pipelines.run import PipelineRun
from pipelines.stages import run_all
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace
from servers.airflow import RunningAirflow
from workspaces.operated_job import JOB as APPLIED
from workspaces.operated_job import OperatedJob
from workspaces.reviewed_job import JOB as REVIEWED
from workspaces.reviewed_job import RATE, approved_job

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]
APPLIED_SOURCE, APPLIED_CHAIN = "a" * 32, "b" * 32
OTHER = "nexmark-q1"


@pytest.fixture(scope="module")
def workspace(workspace_folder: Path) -> Workspace:
    return Workspace(workspace_folder)


@pytest.fixture(scope="module")
def planned(workspace: Workspace, root: Path) -> dict[str, Any]:
    """What a job was planned for; the same request again finds all of it."""
    asked = {"job": OTHER, "rate": 5e6, "testbed": "recorded", "measurement_rows": 24}  # the others judge the model
    asked["measurements"] = str(root / "tests" / "data" / "streambed" / "search_q1.csv")
    run_all(PipelineRun(PlanRequest.model_validate(asked), workspace))
    return asked


@pytest.fixture
def flink() -> Iterator[FakeFlink]:
    with FakeFlink() as made:
        yield made


def test_an_event_makes_the_scheduler_replan_and_the_new_plan_gets_its_thresholds(
    running_airflow: RunningAirflow, workspace: Workspace, planned: dict[str, Any]
) -> None:
    airflow, rate = running_airflow, 7e6
    airflow.unpause("replan", "threshold_table")
    run = airflow.started_by_event("replan", "sluice-rate-change", {"job": OTHER, "rate": rate})
    assert airflow.end("replan", run) == "success"
    assert PlanStore(workspace).versions(OTHER) == [1, 2]
    assert PlanStore(workspace).current(OTHER).target_rate == rate

    (table,) = airflow.wait_for(lambda: airflow.runs("threshold_table"))
    assert airflow.end("threshold_table", table["dag_run_id"]) == "success"
    rates = [workspace.read_table(row)["rate"][0].as_py() for row in workspace.list(f"thresholds/{OTHER}")]
    assert max(rates) > 1.5 * rate
    airflow.pause("threshold_table")


def test_changes_that_come_at_once_are_all_planned_for_though_airflow_starts_a_run_for_the_first_alone(
    running_airflow: RunningAirflow, workspace: Workspace, planned: dict[str, Any]
) -> None:
    airflow, plans = running_airflow, PlanStore(workspace)
    airflow.unpause("replan")
    before = plans.versions(OTHER)
    (asset,) = airflow.call("GET", "/api/v2/assets?name_pattern=sluice-rate-change")["assets"]
    for job, rate in (("unplanned", 1e6), (OTHER, 8e6), (OTHER, 9e6)):
        sent = {"asset_id": asset["id"], "extra": {"job": job, "rate": rate}}
        airflow.call("POST", "/api/v2/assets/events", sent)
    airflow.wait_for(lambda: plans.versions(OTHER) != before)
    assert plans.versions(OTHER) == [*before, before[-1] + 1]
    assert plans.current(OTHER).target_rate == 9e6


def test_a_replan_requested_through_the_rest_api_stores_a_version(
    running_airflow: RunningAirflow, workspace: Workspace, planned: dict[str, Any]
) -> None:
    before = PlanStore(workspace).versions(OTHER)
    running_airflow.unpause("replan")
    run = running_airflow.start("replan", {"job": OTHER, "rate": 6e6})
    assert running_airflow.end("replan", run) == "success"
    assert PlanStore(workspace).versions(OTHER) == [*before, before[-1] + 1]
    plan = PlanStore(workspace).current(OTHER)
    assert (plan.target_rate, plan.lineage.trigger) == (6e6, "replan")


@pytest.fixture(scope="module")
def requested(
    running_airflow: RunningAirflow, workspace: Workspace, root: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """A request for new measurements of the reviewed job, as drift in production makes it; the job has a champion."""
    measurements = root / "tests" / "data" / "streambed" / "search_q5.csv"
    before = approved_job(root, tmp_path_factory.mktemp("jobs"), workspace, measurements)
    running_airflow.unpause_without_its_schedule("capacity_plan")
    reason = "count-window: CPU time per record is 30 us (+20%)"
    return {"job": REVIEWED, "request": workspace.uri(before.key("request.json")), "rate": RATE, "reason": reason}


def test_a_pending_approval_blocks_runs_of_its_own_job_only_and_a_rejected_model_plans_nothing(
    running_airflow: RunningAirflow, workspace: Workspace, requested: dict[str, Any], planned: dict[str, Any]
) -> None:
    airflow, plans = running_airflow, PlanStore(workspace)
    first = airflow.started_by_event("capacity_plan", "sluice-reprofile", requested)
    question = airflow.question("capacity_plan", first, "approve")
    said = airflow.task_log("capacity_plan", first, "request")
    assert f"new measurements of {REVIEWED}: {requested['reason']}" in said

    second = airflow.started_by_event("capacity_plan", "sluice-reprofile", requested)
    airflow.wait_for(lambda: airflow.states("capacity_plan", second)["turn"] == "deferred")
    other = airflow.start("capacity_plan", planned)
    airflow.wait_for(lambda: airflow.states("capacity_plan", other)["turn"] == "success")
    airflow.give_up("capacity_plan", other)
    assert airflow.states("capacity_plan", second)["turn"] == "deferred"
    assert plans.versions(REVIEWED) == []

    assert question.shown["subject"].startswith(f"Plan {REVIEWED} with models:/{REVIEWED}/2 (")
    question.answer("Approve", reason=" ")
    airflow.wait_for(lambda: question.shown["responded_at"] is None)  # an answer without a reason leaves it open
    question = airflow.question("capacity_plan", first, "approve", times=2)
    question.answer("Reject", reason="the curve bends too early")
    assert airflow.end("capacity_plan", first) == "success"
    newest, champion = list_versions(open_tracking(workspace), REVIEWED)
    person = question.shown["responded_by_user"]["name"]
    assert (newest.review, newest.reviewed_by) == ("rejected", person)
    assert newest.review_reason == "the curve bends too early"
    assert (champion.review, champion.reviewed_by) == ("approved", "ada")
    plan = plans.current(REVIEWED)
    assert (plan.version, plan.target_rate) == (1, RATE)
    assert f"models:/{REVIEWED}/1" in " ".join(plan.reasons)
    airflow.wait_for(lambda: airflow.states("capacity_plan", second)["turn"] == "success")
    airflow.give_up("capacity_plan", second)


@pytest.mark.parametrize("answer", ["Approve", "Reject"])
def test_a_new_plan_is_applied_if_a_person_approves_its_steps(
    running_airflow: RunningAirflow, workspace: Workspace, flink: FakeFlink, tmp_path: Path, answer: str
) -> None:
    airflow = running_airflow
    airflow.unpause("apply_plan")
    job = OperatedJob(tmp_path, workspace)
    job.apply(mode="approved", flink=flink.url, timeout_s=20)
    plan = job.publish(3 if answer == "Approve" else 4)
    run = airflow.started_by_event(
        "apply_plan", "sluice-plan", {"uri": PlanStore(workspace).uri(APPLIED, plan.version)}
    )
    question = airflow.question("apply_plan", run, "one_plan.approve", index=0)
    assert flink.put_bodies == [], "nothing is done before"
    assert question.shown["subject"] == f"Apply wordcount@{plan.version}, for 1,500 records/s?"
    assert f"| flatmap, count | 1 | {plan.parallelism['count']} |" in question.shown["body"]
    question.answer(answer)
    assert airflow.end("apply_plan", run) == "success"
    became = [(a.outcome, a.approved_by) for a in recorded(workspace, APPLIED, plan.version)]
    if answer == "Approve":
        assert flink.tasks == {APPLIED_SOURCE: 1, APPLIED_CHAIN: 3}
        assert became == [("applied", question.shown["responded_by_user"]["name"])]
    else:
        assert (flink.tasks, became) == ({APPLIED_SOURCE: 1, APPLIED_CHAIN: 1}, [])
        assert airflow.states("apply_plan", run)["one_plan.apply"] == "skipped"


def test_a_pending_merge_holds_no_worker_slot_and_a_merged_plan_is_followed(
    running_airflow: RunningAirflow, workspace: Workspace, flink: FakeFlink, tmp_path: Path
) -> None:
    airflow, deployed = running_airflow, DeployedRepository(tmp_path)
    airflow.unpause("apply_plan")
    job = OperatedJob(tmp_path, workspace)
    job.apply(mode="alone", flink=flink.url, repository=deployed.block(look_every_s=1, deploy_s=60))
    plan = job.publish(5)
    run = airflow.started_by_event(
        "apply_plan", "sluice-plan", {"uri": PlanStore(workspace).uri(APPLIED, plan.version)}
    )
    airflow.wait_for(lambda: airflow.states("apply_plan", run).get("one_plan.merge") == "deferred")
    branch = f"sluice/{APPLIED}-{plan.version}"
    deployed.merge(branch, "squash", delete=True)
    airflow.wait_for(lambda: airflow.states("apply_plan", run)["one_plan.apply"] == "running")
    flink.tasks = {APPLIED_SOURCE: 1, APPLIED_CHAIN: 5}
    assert airflow.end("apply_plan", run) == "success"
    (applied,) = recorded(workspace, APPLIED, plan.version)
    assert (applied.outcome, applied.method, flink.put_bodies) == ("applied", "merge", [])
    said = airflow.task_log("apply_plan", run, "one_plan.merge", index=0)
    assert f"the branch {branch} of {deployed.url} is at " in said
    assert f"merge: main has {APPLIED}@{plan.version} at commit {str(applied.commit)[:12]}" in said


def test_a_running_job_is_observed_and_a_killed_triggerer_loses_and_repeats_nothing(
    running_airflow: RunningAirflow, workspace: Workspace, tmp_path: Path
) -> None:
    airflow, job = running_airflow, OperatedJob(tmp_path, workspace)
    job.call_in_flink({"source": SOURCE, "flatmap": COUNT, "count": SINK})

    def windows() -> int:
        return sum(key.startswith(f"production/{APPLIED}/") for key in workspace.list("production"))

    with ObservedFlink(rate=600.0) as flink:
        job.operate({"observe": {"flink": flink.url, "job": "Fraud detection", "every_s": 5, "window_s": 10}})
        job.publish(2)
        airflow.unpause("observe_jobs")

        def seen() -> tuple[str, dict[str, Any]] | None:
            """A run of a window that was read more than once, which the first need not be, and what it was sent."""
            runs = [str(run["dag_run_id"]) for run in airflow.finished("observe_jobs")]
            sent = ((run, event["payload"]) for run in runs for event in airflow.events("observe_jobs", run))
            return next(((run, payload) for run, payload in sent if payload["observed"]), None)

        run, payload = airflow.wait_for(seen)
        said = airflow.task_log("observe_jobs", run, "windows")
        assert f"windows: {APPLIED}: 600 records/s arrive, 600 records/s are taken" in said
        assert payload["samples"].startswith(f"production/{APPLIED}/observed-")

        before, pid = windows(), airflow.component("triggerer")
        os.kill(pid, signal.SIGKILL)
        airflow.wait_for(lambda: airflow.component("triggerer") != pid)
        airflow.wait_for(lambda: windows() >= before + 2)
        airflow.pause("observe_jobs")  # a window may still be finished: Airflow takes a while to end the trigger

        def last() -> tuple[str, float] | None:
            """The last window that is over, and when, by the job's own clock (a look for each reading), its last reading was.

            That reading is kept for the next window, and the mark of the one before goes soon after this one's is made.
            """
            marks = [key.split("/")[2] for key in workspace.list(f"observing/{APPLIED}") if "finished" in key]
            if len(marks) != 1 or not (readings := Windows(workspace, APPLIED).readings(marks[0])):
                return None
            ran_s = readings[-1].counts.vertices[0].tasks[0].ran_s
            return None if ran_s is None else (marks[0], ran_s)

        window, until = airflow.wait_for(last)

    rows = [
        row
        for uri in find_samples(workspace, APPLIED, None, 1000).files
        if Path(uri).name.partition(".")[0] <= f"observed-{window}"
        for row in workspace.read_table(uri.removeprefix(f"{workspace.url.rstrip('/')}/")).to_pylist()
        if row["operator"] == "source"
    ]
    assert len({(row["run"], row["time_s"]) for row in rows}) == len(rows)
    assert sum(row["interval_s"] for row in rows) == pytest.approx(until - flink.second_s)
