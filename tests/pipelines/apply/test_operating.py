"""Plans applied by the rules of the job's file: only if it allows it, only approved steps, rolled back if they harm."""

from pathlib import Path
from typing import Any

import pytest

from flink.server import JOB_ID
from models.errors import InvalidInput, SluiceError
from pipelines.apply.applied import Applied
from pipelines.apply.operating import apply_rehearsed
from pipelines.apply.record import recorded
from pipelines.apply.rehearsal import may_be_applied, rehearse
from pipelines.store.workspace import Workspace
from workspaces.operated_job import JOB, OperatedJob

SOURCE, CHAIN = "a" * 32, "b" * 32


@pytest.fixture
def job(tmp_path: Path) -> OperatedJob:
    """It has plan 1: one task of the source, three of the others."""
    made = OperatedJob(tmp_path, Workspace(tmp_path / "workspace"))
    made.publish(3)
    return made


def _only(job: OperatedJob) -> Applied:
    (applied,) = recorded(job.workspace, JOB, 1)
    return applied


def test_without_permission_in_the_jobs_file_flink_is_not_called(job: OperatedJob, flink: Any) -> None:
    for operations in (None, {}, {"apply": {"mode": "never", "flink": flink.url}}):
        job.operate(operations)
        obstacle = may_be_applied(job.workspace, JOB, 1)
        assert obstacle is not None and "the job's file does not allow it (operations.apply.mode)" in obstacle
        with pytest.raises(InvalidInput, match="does not allow it"):
            rehearse(job.workspace, JOB, 1)
    assert flink.put_bodies == []


def test_only_the_newest_plan_may_be_applied(job: OperatedJob, flink: Any) -> None:
    job.apply(mode="alone", flink=flink.url)
    key, _ = rehearse(job.workspace, JOB, 1)
    job.publish(4)
    for call in (lambda: rehearse(job.workspace, JOB, 1), lambda: apply_rehearsed(job.workspace, key, None)):
        with pytest.raises(InvalidInput, match="wordcount@1 is not applied, since wordcount@2 has taken its place"):
            call()
    assert may_be_applied(job.workspace, JOB, 2) is None
    assert flink.put_bodies == []


def test_a_rehearsal_states_the_steps_and_changes_nothing(job: OperatedJob, flink: Any) -> None:
    job.apply(mode="approved", flink=flink.url)
    key, rehearsal = rehearse(job.workspace, JOB, 1)
    assert key == "plans/wordcount/v000001-rehearsed-000001.json"
    assert [(c.before, c.after) for c in rehearsal.changes] == [(1, 1), (1, 3)]
    assert rehearsal.steps[0].startswith("request flatmap -> count 1 -> 3")
    assert (rehearsal.method, rehearsal.flink_job, flink.put_bodies) == ("rescale", JOB_ID, [])
    assert rehearse(job.workspace, JOB, 1)[0].endswith("-rehearsed-000002.json")


def test_what_a_person_approved_is_done_and_recorded_with_who_it_was(job: OperatedJob, flink: Any) -> None:
    job.apply(mode="approved", flink=flink.url)
    key, _ = rehearse(job.workspace, JOB, 1)
    with pytest.raises(InvalidInput, match="must be approved by a person, but was not"):
        apply_rehearsed(job.workspace, key, None)
    assert flink.put_bodies == []
    uri = apply_rehearsed(job.workspace, key, "ann")
    assert flink.tasks == {SOURCE: 1, CHAIN: 3}
    assert (_only(job).outcome, _only(job).approved_by) == ("applied", "ann")
    assert uri.endswith("v000001-applied-000001.json")


def test_a_job_whose_file_allows_it_needs_no_approval(job: OperatedJob, flink: Any) -> None:
    job.apply(mode="alone", flink=flink.url)
    key, _ = rehearse(job.workspace, JOB, 1)
    apply_rehearsed(job.workspace, key, None)
    assert (_only(job).outcome, _only(job).approved_by) == ("applied", None)


def test_operators_are_found_by_the_names_that_the_jobs_file_says_flink_has(job: OperatedJob, flink: Any) -> None:
    flink.names = {SOURCE: "Source: card transactions", CHAIN: "Flat Map -> Keyed Aggregation"}
    job.apply(mode="alone", flink=flink.url)
    with pytest.raises(InvalidInput, match=r"operator 'source' of the plan is in no vertex .*flink_name"):
        rehearse(job.workspace, JOB, 1)
    job.call_in_flink({"source": "card transactions", "flatmap": "Flat Map", "count": "Flat Map -> Keyed Aggregation"})
    job.apply(mode="alone", flink=flink.url)
    key, _ = rehearse(job.workspace, JOB, 1)
    apply_rehearsed(job.workspace, key, None)
    assert [c.operators for c in _only(job).changes] == [("source",), ("flatmap", "count")]
    assert flink.tasks == {SOURCE: 1, CHAIN: 3}


def test_exported_settings_have_the_vertices_of_those_names(job: OperatedJob, flink: Any) -> None:
    flink.names = {SOURCE: "Source: card transactions", CHAIN: "split, count"}
    job.call_in_flink({"source": "card transactions", "flatmap": "split, count", "count": "split, count"})
    job.apply(mode="alone", flink=flink.url, export="overrides")
    assert rehearse(job.workspace, JOB, 1)[1].settings == (
        f"pipeline.jobvertex-parallelism-overrides: {SOURCE}:1,{CHAIN}:3\n"
    )


def test_changes_after_the_approval_are_not_overwritten(job: OperatedJob, flink: Any) -> None:
    job.apply(mode="approved", flink=flink.url)
    key, _ = rehearse(job.workspace, JOB, 1)
    flink.tasks = {SOURCE: 1, CHAIN: 2}
    with pytest.raises(InvalidInput, match=r"the running job has changed since the steps .* were approved"):
        apply_rehearsed(job.workspace, key, "ann")
    job.apply(mode="approved", flink="http://127.0.0.1:1")
    with pytest.raises(InvalidInput, match="names another cluster now"):
        apply_rehearsed(job.workspace, key, "ann")
    job.apply(mode="never")
    with pytest.raises(InvalidInput, match="does not allow it"):
        apply_rehearsed(job.workspace, key, "ann")
    assert flink.put_bodies == []
    # A try that was killed after the change finds it done.
    job.apply(mode="approved", flink=flink.url)
    flink.tasks = {SOURCE: 1, CHAIN: 3}
    apply_rehearsed(job.workspace, key, "ann")
    assert (_only(job).outcome, flink.put_bodies) == ("unchanged", [])


@pytest.mark.slow
def test_a_plan_that_made_the_job_worse_is_rolled_back_with_the_reason(job: OperatedJob, flink: Any) -> None:
    def harm() -> None:
        flink.emitted_per_s, flink.backpressure = 600.0, 0.5

    job.apply(mode="alone", flink=flink.url, observe_s=1)
    flink.after_put = harm
    key, _ = rehearse(job.workspace, JOB, 1)
    with pytest.raises(
        SluiceError, match=r"wordcount@1 rolled-back: the plan made it worse: 600 records/s after 1,500"
    ):
        apply_rehearsed(job.workspace, key, None)
    applied = _only(job)
    assert applied.outcome == "rolled-back" and applied.effect is not None
    assert (applied.effect.rate, applied.effect.rate_before) == (pytest.approx(600), pytest.approx(1500))
    assert flink.tasks == {SOURCE: 1, CHAIN: 1}


def test_the_program_for_a_restart_is_beside_the_jobs_file(job: OperatedJob, flink: Any) -> None:
    flink.settings = {}  # a scheduler that cannot change a running job
    job.apply(mode="alone", flink=flink.url)
    with pytest.raises(InvalidInput, match="the jar to restart is unknown"):
        rehearse(job.workspace, JOB, 1)
    job.apply(mode="alone", flink=flink.url, program="program.yaml")
    (job.file.parent / "program.yaml").write_text("{jar: known.jar, entry_class: a.Job, savepoints: 'file:///s'}")
    _, rehearsal = rehearse(job.workspace, JOB, 1)
    assert rehearsal.method == "restart"
    assert rehearsal.steps[1] == "start a.Job from it with flatmap -> count 1 -> 3"
    job.apply(mode="alone", flink=flink.url, program="../program.yaml")
    with pytest.raises(InvalidInput, match="program"):
        rehearse(job.workspace, JOB, 1)


def test_the_job_is_found_by_the_name_or_the_id_that_flink_knows(job: OperatedJob, flink: Any) -> None:
    flink.jobs[0]["name"] = "word-count-eu"
    job.apply(mode="alone", flink=flink.url)
    with pytest.raises(InvalidInput, match="no job named 'wordcount' runs"):
        rehearse(job.workspace, JOB, 1)
    for name in ("word-count-eu", JOB_ID):
        job.apply(mode="alone", flink=flink.url, job=name)
        assert rehearse(job.workspace, JOB, 1)[1].flink_job == JOB_ID


@pytest.mark.parametrize(
    ("form", "file", "says"),
    [
        ("overrides", "v000001-overrides.txt", f"{CHAIN}:3"),
        ("flinkdeployment", "v000001-flinkdeployment.yaml", f"{CHAIN}:3"),
    ],
)
def test_settings_are_written_for_the_deployment_of_the_job(
    job: OperatedJob, flink: Any, form: str, file: str, says: str
) -> None:
    flink.settings = {}  # a scheduler that cannot change a running job
    job.apply(mode="approved", flink=flink.url, export=form)
    key, rehearsal = rehearse(job.workspace, JOB, 1)
    assert rehearsal.method == "settings" and rehearsal.settings is not None and says in rehearsal.settings
    assert apply_rehearsed(job.workspace, key, "ann").endswith(file)
    assert job.workspace.read_bytes(f"plans/{JOB}/{file}").decode() == rehearsal.settings
    assert flink.put_bodies == [] and recorded(job.workspace, JOB, 1) == []
