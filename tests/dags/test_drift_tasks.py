"""Requests for new measurements, before a stage is called."""

import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from models.errors import InvalidInput, SluiceError
from pipelines.drift import batch as batches_of_drift
from pipelines.drift.request import request_reprofile
from pipelines.inputs.job_files import JobFile
from pipelines.inputs.plan_request import PlanRequest
from pipelines.planning.partitions import SourcePartitions
from pipelines.run import PipelineRun
from pipelines.store.workspace import Workspace
from sluice_airflow.tasks.drift import (
    batches_to_watch,
    keep_reprofile_request,
    newest_of_each_job,
    planned_jobs,
    requests_to_send,
    watch,
)
from workspaces.watched_jobs import keep_report, plan_job, sample_production

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


def test_a_request_that_cannot_be_understood_does_not_hide_the_others() -> None:
    assert newest_of_each_job([{"job": "../x"}, {"requests": [{"rate": 2}, {"job": "b"}]}]) == [{"job": "b"}]


def test_an_event_may_carry_several_requests_or_be_one() -> None:
    events = [{"job": "a", "rate": 1}, {"requests": [{"job": "b", "rate": 2}, {"job": "a", "rate": 3}]}]
    assert newest_of_each_job(events) == [{"job": "a", "rate": 3}, {"job": "b", "rate": 2}]


def test_new_measurements_find_the_files_where_the_job_was_first_planned_and_ask_its_broker_again(
    workspace: Workspace, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = tmp_path / "there"
    there.mkdir()
    job = yaml.safe_load((root / "jobs" / "wordcount.yaml").read_text()) | {"name": "mine"}
    job["operators"][0]["topics"] = ["lines"]
    (there / "mine.yaml").write_text(yaml.safe_dump(job))
    asked: list[str | None] = []

    def read(job: JobFile, brokers: str | None) -> SourcePartitions:
        asked.append(brokers)
        return SourcePartitions(brokers="kafka:9092", topics={"source": {"lines": 8 * len(asked)}})

    monkeypatch.setattr("pipelines.run.read_partitions", read)
    monkeypatch.chdir(there)
    PipelineRun(PlanRequest(job="./mine.yaml", rate=1000.0, run="first"), workspace, brokers="kafka:9092").start()
    monkeypatch.chdir(root)
    again = PipelineRun.at(
        keep_reprofile_request({"job": "mine", "request": "x/runs/mine/first/request.json", "rate": 2.0}, "again")
    )
    assert (again.started_in, asked) == (there, ["kafka:9092", "kafka:9092"])
    assert again.job.operator("source").max_parallelism == 16


def test_a_job_that_was_planned_as_it_ran_is_not_measured_and_one_damaged_plan_does_not_stop_the_others(
    workspace: Workspace,
) -> None:
    """The plan of nexmark-q5 is damaged; its own run says so."""
    plan_job(workspace, "measured")
    plan_job(workspace, "as-it-ran", testbed="running")
    assert [asked["job"] for asked in planned_jobs()] == ["measured", "nexmark-q5"]
    with pytest.raises(InvalidInput, match="as-it-ran was planned from the running job, which no testbed measures"):
        keep_reprofile_request({"job": "as-it-ran"}, "again")


@pytest.mark.parametrize(
    "extra",
    [
        {},
        {"job": 1},
        {"job": "../x"},
        {"job": ""},
        {"job": "a", "request": "file:///etc/passwd"},
        {"job": "a", "request": "file:///w/runs/b/r/request.json"},
        {"requests": []},
        {"requests": ["a"]},
        {"requests": [{"job": "../x"}]},
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


def test_jobs_with_a_plan_and_with_samples_are_watched_in_batches(workspace: Workspace) -> None:
    for key in ("nexmark-q5/h1.parquet", "nexmark-q8/h1.parquet", "nexmark-q5/notes.txt"):
        workspace.write_bytes(f"production/{key}", b"")
    assert batches_to_watch({"job": None}) == [["nexmark-q5"]]
    assert batches_to_watch({"job": "mine"}) == [["mine"]]
    for number in range(50):
        workspace.write_bytes(f"production/job-{number}/h1.parquet", b"")
        workspace.write_bytes(f"plans/job-{number}/v000001.json", b"{}")
    assert [len(batch) for batch in batches_to_watch({"job": None})] == [17, 17, 17]


@pytest.fixture
def compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """Samples of three jobs were compared; those of two had drifted."""
    made = Workspace(tmp_path / "workspace")
    monkeypatch.setenv("SLUICE_WORKSPACE", made.url)
    for job in ("a", "b", "steady"):
        plan_job(made, job)
        sample_production(made, job)
        keep_report(made, job, drifted=job != "steady")
    return made


def test_a_batch_fails_in_the_end_and_names_the_jobs_that_failed(
    compared: Workspace, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    compared.write_bytes("plans/b/v000001.json", b"{}")
    with caplog.at_level(logging.INFO, "sluice"), pytest.raises(SluiceError) as mended_by_a_person:
        watch(["none", "b", "steady", "a"], None)
    assert str(mended_by_a_person.value).startswith(
        "2 of 4 jobs could not be checked for drift: none (there is no plan"
    )
    assert "; b (" in str(mended_by_a_person.value)
    assert [line.partition(":")[2] for line in caplog.messages if line.startswith("drift: ")][2:] == [
        " none in production of steady: all is as it was measured",
        " drift in production of a: records of a cost more",
        " new measurements of a are requested",
    ]
    assert watch(["steady", "a"], None) == [compared.uri("drift/a/v000001.json")], "a retry finds the request"
    assert watch(["steady"], None) == []

    def fails(*_: Any) -> None:
        raise OSError("no route to the store")

    monkeypatch.setattr(batches_of_drift, "request_reprofile", fails)
    with pytest.raises(RuntimeError, match=r"1 of 1 jobs .*: a \(OSError: no route to the store\)") as passing:
        watch(["a"], None)
    assert not isinstance(passing.value, SluiceError), "Airflow retries it"
    assert isinstance(passing.value.__cause__, ExceptionGroup)


class Inlet(list[Any]):
    """The contents of events, as Airflow gives them to a task, with the time of the oldest that was asked for."""

    since: datetime | None = None

    def after(self, since: datetime) -> list[Any]:
        self.since = since
        return [SimpleNamespace(extra=content) for content in self]


def test_requests_are_sent_that_no_event_carries(compared: Workspace, caplog: pytest.LogCaptureFixture) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    assert requests_to_send([["a", "b", "steady"]], Inlet(), now) == []
    a, b = (
        asked.model_dump(mode="json")
        for job in ("a", "b")
        if (asked := request_reprofile(compared, keep_report(compared, job, drifted=True), now)) is not None
    )
    events = Inlet()
    assert requests_to_send([["a", "steady"], ["b"]], events, now) == [a, b]
    assert events.since is not None and events.since < now
    assert requests_to_send([["a", "b"]], Inlet([a]), now) == [b], "as it was sent before, and by capacity_plan"
    assert requests_to_send([["a", "b"]], Inlet([{"requests": [b, a]}]), now) == []
    assert requests_to_send([["a"]], Inlet([{"job": "a"}, a | {"created_at": "2026-01-01T00:00:00+00:00"}]), now) == [a]
    assert requests_to_send([["a"]], Inlet(), now + timedelta(days=7)) == [], "too old"

    compared.write_bytes("plans/b/v000001.json", b"{}")
    with caplog.at_level(logging.INFO, "sluice"):
        assert requests_to_send([["b", "a"]], Inlet(), now) == [a]
    assert any(line.startswith("ask: whether b needs new measurements is not known") for line in caplog.messages)
    plan_job(compared, "a", run="again")
    assert requests_to_send([["a"]], Inlet(), now) == [], "it was measured meanwhile"
