"""`sluice plans apply` for a job that is deployed from a git repository."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from flink.server import FakeFlink
from on_kubernetes.deployed_repository import FILE, MANIFEST, DeployedRepository, git
from on_kubernetes.deployed_resource import CHAIN, SOURCE
from pipelines.apply.applied import Applied
from pipelines.apply.gitops.proposal import Proposal
from pipelines.apply.record import recorded
from pipelines.cli import run
from pipelines.store.workspace import Workspace
from workspaces.operated_job import JOB, OperatedJob

BRANCH = f"sluice/{JOB}-1"
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def job(tmp_path: Path, flink: FakeFlink, deployed: DeployedRepository) -> OperatedJob:
    """It has plan 1: one task of the source, three of the others. Its file allows no application in Airflow."""
    made = OperatedJob(tmp_path, Workspace(tmp_path / "workspace"))
    made.publish(3)
    made.apply(flink=flink.url, repository=deployed.block(look_every_s=1, deploy_s=5))
    return made


@pytest.fixture
def sluice(job: OperatedJob, capsys: pytest.CaptureFixture[str]) -> Call:
    """Applies the plan; returns exit code, standard output and standard error."""

    def call(*arguments: str) -> tuple[int, str, str]:
        code = run(["plans", "apply", JOB, "--workspace", job.workspace.url, "--observe", "0", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def _when_proposed(job: OperatedJob, act: Callable[[], object], times: int = 1) -> "Future[None]":
    """Act once the plan was proposed, as often as `times`."""
    proposals = f"plans/{JOB}/v000001-proposed-{times:06d}.json"

    def wait() -> None:
        until = time.monotonic() + 20
        while not job.workspace.exists(proposals) and time.monotonic() < until:
            time.sleep(0.05)
        act()

    pool = ThreadPoolExecutor(1)
    try:
        return pool.submit(wait)
    finally:
        pool.shutdown(wait=False)


def test_the_command_waits_for_the_merge_and_until_the_job_runs_as_planned(
    sluice: Call, job: OperatedJob, flink: FakeFlink, deployed: DeployedRepository
) -> None:
    def merge_and_deploy() -> None:
        deployed.merge(BRANCH, "squash", delete=True)
        flink.tasks = {SOURCE: 1, CHAIN: 3}

    others = _when_proposed(job, merge_and_deploy)
    code, out, err = sluice("--json")
    others.result()
    assert code == 0, err
    applied = Applied.model_validate_json(out)
    assert (applied.outcome, applied.method, applied.placement) == ("applied", "merge", "advice")
    assert [(c.name, c.before, c.after) for c in applied.changes] == [
        ("Source: source", 1, 1),
        ("flatmap -> count", 1, 3),
    ]
    assert applied.repository == f"{deployed.url} main:{FILE}"
    assert applied.commit == git(deployed.bare, "rev-parse", "main")
    assert applied.proposed_at is not None and applied.proposed_at <= applied.started_at
    assert recorded(job.workspace, JOB, 1) == [applied] and flink.put_bodies == []
    said = " ".join(err.split())
    assert f"the branch {BRANCH} of {deployed.url} is at " in said and "; merge it into main" in said
    assert f"main has wordcount@1 at commit {applied.commit[:12]}" in said
    proposal = job.workspace.read(f"plans/{JOB}/v000001-proposed-000001.json", Proposal)
    assert (proposal.branch, proposal.target, proposal.merge_s) == (BRANCH, "main", 604800.0)

    code, out, _ = sluice()
    assert code == 0 and "wordcount@1 unchanged: main states the plan already, and Flink runs it" in " ".join(
        out.split()
    )
    assert deployed.branches == ["main"]


@pytest.mark.slow
def test_a_wait_that_is_over_and_a_deleted_branch_are_recorded_and_change_nothing(
    sluice: Call, job: OperatedJob, flink: FakeFlink, deployed: DeployedRepository
) -> None:
    code, _, err = sluice("--timeout", "1")
    assert code == 1
    assert (
        f"wordcount@1 was not applied: {BRANCH} is not merged into main yet after 1 s; the branch stays as it is" in err
    )
    others = _when_proposed(job, lambda: deployed.delete(BRANCH), times=2)
    code, out, err = sluice("--json", "--timeout", "20")
    others.result()
    assert code == 1 and f"the branch {BRANCH} was deleted, and main does not have wordcount@1" in err
    assert [one.outcome for one in recorded(job.workspace, JOB, 1)] == ["not-merged", "not-merged"]
    assert Applied.model_validate_json(out).flink_job is None
    assert flink.put_bodies == []


def test_a_merged_plan_that_does_not_run_is_recorded_as_failed(
    sluice: Call, job: OperatedJob, deployed: DeployedRepository, flink: FakeFlink
) -> None:
    job.apply(flink=flink.url, repository=deployed.block(look_every_s=1, deploy_s=1))
    others = _when_proposed(job, lambda: deployed.merge(BRANCH))
    code, _, err = sluice()
    others.result()
    assert code == 1 and "waiting for the deployment of main: 'flatmap -> count' still has 1 tasks and not 3" in err
    (applied,) = recorded(job.workspace, JOB, 1)
    assert applied.outcome == "failed" and applied.commit == git(deployed.bare, "rev-parse", "main")
    assert (
        f"check what deploys from {deployed.url}; no return is proposed, since {FILE} came with wordcount@1, its "
        in err
    )
    assert applied.proposed_return is None and deployed.branches == ["main", BRANCH]


@pytest.mark.slow
def test_a_merged_plan_that_makes_the_job_worse_ends_with_the_branch_to_merge(
    sluice: Call, job: OperatedJob, deployed: DeployedRepository, flink: FakeFlink
) -> None:
    deployed.write(FILE, MANIFEST)

    def merge_and_deploy() -> None:
        flink.tasks, flink.emitted_per_s, flink.backpressure = {SOURCE: 1, CHAIN: 3}, 600.0, 0.5
        deployed.merge(BRANCH)

    others = _when_proposed(job, merge_and_deploy)
    code, out, err = sluice("--observe", "1", "--json")
    others.result()
    branch = f"{BRANCH}-return-{git(deployed.bare, 'rev-parse', 'main')[:8]}"
    assert code == 1 and "not applied: the plan made it worse: 600 records/s after 1,500 before" in err
    assert f"; merge the branch {branch} of {deployed.url} into main to return to what the file stated before" in err
    (applied,) = recorded(job.workspace, JOB, 1)
    assert applied == Applied.model_validate_json(out) and applied.proposed_return is not None
    assert (applied.outcome, applied.proposed_return.branch, flink.put_bodies) == ("failed", branch, [])

    deployed.merge(branch)
    flink.tasks, flink.emitted_per_s, flink.backpressure = {SOURCE: 1, CHAIN: 1}, 1500.0, 0.0
    code, out, _ = sluice("--dry-run", "--json")
    assert code == 0 and json.loads(out)["method"] == "merge", "the plan can be proposed once more"


@pytest.mark.slow
def test_a_job_that_leaves_the_plan_again_is_recorded_as_failed(
    sluice: Call, job: OperatedJob, deployed: DeployedRepository, flink: FakeFlink
) -> None:
    flink.tasks = {SOURCE: 1, CHAIN: 3}
    answer = flink.answer

    def later(*asked: Any) -> tuple[int, object]:
        if asked[1].endswith("/metrics"):
            flink.tasks = {SOURCE: 1, CHAIN: 2}
        return answer(*asked)

    def merge() -> None:
        flink.answer = later  # type: ignore[method-assign]
        deployed.merge(BRANCH)

    others = _when_proposed(job, merge)
    code, _, err = sluice("--observe", "1")
    others.result()
    assert (
        code == 1 and "the plan ran, but the job left it again: 'flatmap -> count' still has 2 tasks and not 3" in err
    )


def test_a_rehearsal_shows_the_change_and_writes_nothing(
    sluice: Call, job: OperatedJob, deployed: DeployedRepository
) -> None:
    code, out, err = sluice("--dry-run")
    assert code == 0, err
    shown = " ".join(out.split())
    assert f"+++ {BRANCH}:{FILE}" in shown and "+ sluice/plan: wordcount@1" in shown
    assert f"1. write wordcount@1 to {FILE} in the branch {BRANCH} of {deployed.url}, which starts from main" in shown
    code, out, _ = sluice("--dry-run", "--json")
    found = json.loads(out)
    assert (found["method"], found["target"], len(found["steps"])) == ("merge", "main", 3)
    assert deployed.branches == ["main"] and recorded(job.workspace, JOB, 1) == []


@pytest.mark.parametrize(
    "arguments", [["--kubernetes", "streaming/wordcount"], ["--context", "x"], ["--redeploy"], ["--program", "x.yaml"]]
)
def test_the_cluster_is_not_changed_beside_the_repository(
    sluice: Call, deployed: DeployedRepository, arguments: list[str]
) -> None:
    code, out, err = sluice(*arguments)
    assert (code, out) == (2, "") and "wordcount is deployed from a git repository, by its file" in " ".join(
        err.split()
    )
    assert deployed.branches == ["main"]


def test_without_an_address_of_flink_nothing_is_written(
    sluice: Call, job: OperatedJob, deployed: DeployedRepository
) -> None:
    job.apply(repository=deployed.block())
    code, _, err = sluice()
    assert code == 2 and "give --flink URL, or state 'flink' in operations.apply of the job's file" in err
    assert deployed.branches == ["main"]


@pytest.mark.slow
def test_ctrl_c_leaves_the_branch_as_it_is_and_says_so(job: OperatedJob, deployed: DeployedRepository) -> None:
    command = [sys.executable, "-m", "pipelines.cli", "plans", "apply", JOB, "--workspace", job.workspace.url]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | {"COLUMNS": "400"}) as process:
        assert process.stderr is not None
        while "is not merged into main yet" not in process.stderr.readline():
            assert process.poll() is None
        commit = git(deployed.bare, "rev-parse", BRANCH)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"stopped; the branch {BRANCH} of {deployed.url} stays as it is, and the merge of wordcount@1 is not" in err
    assert "Traceback" not in err and git(deployed.bare, "rev-parse", BRANCH) == commit
    assert recorded(job.workspace, JOB, 1) == []
