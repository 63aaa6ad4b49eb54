"""Requests for new measurements, before a stage is called."""

from pathlib import Path
from typing import Any

import pytest

from models.errors import InvalidInput
from pipelines.inputs.plan_request import PlanRequest
from pipelines.run import PipelineRun
from pipelines.store.workspace import Workspace
from sluice_airflow.tasks.drift import jobs_to_watch, keep_reprofile_request, newest_of_each_job

JOB = "nexmark-q1"


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Path) -> Workspace:
    """Has the request of one run, and an older plan."""
    monkeypatch.setenv("SLUICE_WORKSPACE", str(tmp_path))
    made = Workspace()
    PipelineRun(PlanRequest(job=JOB, rate=1000.0, run="before", seed=3), made).start()
    made.write_bytes("plans/nexmark-q5/v000001.json", b"{}")
    return made


def test_of_several_requests_the_newest_of_each_job_counts_and_each_job_gets_one() -> None:
    events = [{"job": "a", "rate": 1}, {"job": "b", "rate": 2}, {"job": "a", "rate": 3}]
    assert newest_of_each_job(events) == [{"job": "a", "rate": 3}, {"job": "b", "rate": 2}]
    assert newest_of_each_job([]) == []


@pytest.mark.parametrize(
    "extra",
    [
        {},
        {"job": 1},
        {"job": "../x"},
        {"job": ""},
        {"job": "a", "request": "file:///etc/passwd"},
        {"job": "a", "request": "file:///w/runs/b/r/request.json"},
    ],
    ids=str,
)
def test_a_request_without_a_job_or_of_another_job_is_refused(extra: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=r"'job' .a name.|'request' must be the URI"):
        newest_of_each_job([extra])


def test_the_run_that_is_named_is_repeated_under_a_new_name_from_this_workspace(workspace: Workspace) -> None:
    elsewhere = f"s3://another/place/runs/{JOB}/before/request.json"
    uri = keep_reprofile_request({"job": JOB, "request": elsewhere, "rate": 2500.0, "reason": "dearer"}, "again")
    assert uri == workspace.uri(f"runs/{JOB}/again/request.json")
    kept = workspace.read(f"runs/{JOB}/again/request.json", PlanRequest)
    assert (kept.rate, kept.seed, kept.run) == (2500.0, 3, "again")


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({"job": "q99"}, "there is no plan of the job 'q99'"),
        ({"job": JOB, "request": f"file:///w/runs/{JOB}/gone/request.json", "rate": 1.0}, "no request of run 'gone'"),
        (
            {"job": JOB, "request": f"file:///w/runs/{JOB}/../request.json", "rate": 1.0},
            "a key must be a relative path",
        ),
        ({"job": JOB, "request": f"file:///w/runs/{JOB}/before/request.json", "rate": -1.0}, "rate"),
        ({"job": JOB, "request": f"file:///w/runs/{JOB}/before/request.json", "rate": "fast"}, "rate"),
    ],
    ids=str,
)
def test_a_request_that_cannot_be_repeated_says_why(workspace: Workspace, extra: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        keep_reprofile_request(extra, "again")


def test_jobs_with_a_plan_and_with_samples_are_watched(workspace: Workspace) -> None:
    for key in ("nexmark-q5/h1.parquet", "nexmark-q8/h1.parquet", "nexmark-q5/notes.txt"):
        workspace.write_bytes(f"production/{key}", b"")
    assert jobs_to_watch({"job": None}) == ["nexmark-q5"]
    assert jobs_to_watch({"job": "mine"}) == ["mine"]
