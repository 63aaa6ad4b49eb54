"""Checks of many jobs: their batches, one session for all of them, and jobs that cannot be checked."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark import SparkContext

from models.errors import SluiceError
from models.planning.drift import BUSY, CPU, MST
from pipelines.drift.batch import MOST_JOBS, check_batch, in_batches
from pipelines.drift.reports import latest_drift
from pipelines.drift.request import request_kept
from pipelines.store.workspace import Workspace
from workspaces.transcript import Transcript
from workspaces.watched_jobs import keep_report, plan_job, sample_production


def noon() -> datetime:
    return datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "workspace")


@pytest.mark.parametrize(
    ("jobs", "sizes"),
    [(0, []), (1, [1]), (25, [25]), (26, [13, 13]), (51, [17, 17, 17]), (500, [25] * 20), (501, [23] * 3 + [24] * 18)],
)
def test_jobs_are_split_into_few_batches_of_about_the_same_size(jobs: int, sizes: list[int]) -> None:
    assert MOST_JOBS == 25
    names = [f"job-{number}" for number in range(jobs)]
    batches = in_batches(names)
    assert sorted(map(len, batches)) == sizes
    assert sorted(job for batch in batches for job in batch) == sorted(names)


@pytest.mark.slow
def test_one_session_checks_all_and_a_job_that_cannot_be_checked_does_not_stop_the_others(workspace: Workspace) -> None:
    jobs = ["steady", "broken", "unplanned", "dearer"]
    for job in ("steady", "broken", "dearer"):
        plan_job(workspace, job)
        sample_production(workspace, job, window_cpu_s=26e-6 if job == "dearer" else 20e-6)
    workspace.write_bytes("production/broken/hour-2.parquet", b"no Parquet")

    said = Transcript()
    checked = check_batch(workspace, jobs, None, noon, said)
    context = SparkContext._active_spark_context

    assert list(checked.failures) == ["broken", "unplanned"]
    (asked,) = checked.requests
    assert (asked.job, asked.rate, asked.created_at) == ("dearer", 800_000.0, noon().isoformat())
    assert request_kept(workspace, "dearer") == asked
    assert request_kept(workspace, "steady") is None
    report = latest_drift(workspace, "dearer")
    assert report is not None
    drifted = {c.quantity: (c.operator, c.expected, c.production) for c in report.comparisons if c.drifted}
    assert drifted == {
        CPU: ("window", pytest.approx(20e-6), pytest.approx(26e-6)),
        BUSY: ("window", pytest.approx(20e-6), pytest.approx(26e-6)),
        MST: (None, pytest.approx(880_000.0), pytest.approx(880_000.0 * 20 / 26)),
    }
    steady = latest_drift(workspace, "steady")
    assert steady is not None and not steady.drifted

    for job in ("as-observed", "outdated"):
        plan_job(workspace, job, testbed="running")
        sample_production(workspace, job, window_cpu_s=26e-6 if job == "outdated" else 20e-6)
    observed = check_batch(workspace, ["as-observed", "outdated"], None, noon, Transcript())
    assert (observed.requests, observed.failures, list(observed.outdated)) == ((), {}, ["outdated"])
    assert "+30%" in observed.outdated["outdated"], "26 us a record for 20 when it was observed"

    assert isinstance(checked.failures["broken"], SluiceError)
    assert "hour-2.parquet is not a Parquet file (length is too low: 10); replace this file, or remove it" in str(
        checked
    )
    lines = [line for line in said.said if line.startswith("drift: ")]
    assert [line.split(":")[1] for line in lines] == [
        " none in production of steady",
        " broken could not be checked",
        " unplanned could not be checked",
        " drift in production of dearer",
        " new measurements of dearer are requested",
    ]
    assert "there is no plan of the job 'unplanned'" in str(checked)

    again = Transcript()
    assert check_batch(workspace, ["steady", "dearer"], None, noon, again).requests == (asked,), "a retry asks the same"
    sample_production(workspace, "dearer", 26e-6, "hour-3")
    later = check_batch(workspace, ["dearer"], None, noon, again)
    assert (later.requests, later.failures) == ((), {})
    assert "drift: new measurements of dearer were requested before" in again.said
    assert SparkContext._active_spark_context is context, "all with one session"


def test_failures_that_may_pass_are_apart_from_those_that_a_person_must_mend(workspace: Workspace) -> None:
    plan_job(workspace, "steady")
    sample_production(workspace, "steady")
    keep_report(workspace, "steady", drifted=True)
    mended = check_batch(workspace, ["unplanned", "steady"], None, noon, Transcript())
    assert (mended.unexpected, len(mended.requests)) == ((), 1)

    def no_clock() -> datetime:
        raise OSError("the disk is full")

    failed = check_batch(workspace, ["unplanned", "steady"], None, no_clock, Transcript())
    assert [type(error) for error in failed.unexpected] == [OSError]
    assert "steady (OSError: the disk is full)" in str(failed)
