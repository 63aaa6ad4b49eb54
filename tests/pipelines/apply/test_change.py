"""Restarts through a savepoint that are undone, where answers are lost. The job has 2 tasks and was to get 3."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from flink.restarted import JOB, VERTEX, RestartedFlink
from flink_client.jobs.restart import Restart, RestartProgram
from flink_client.jobs.running import Scheduler, running_job
from flink_client.rest.client import FlinkRest
from models.errors import SluiceError
from models.plan.content import Plan
from pipelines.apply.change import Change, change_for
from pipelines.apply.preparation import Preparation
from pipelines.inputs.parsing.files import read_as


@pytest.fixture
def flink() -> Iterator[RestartedFlink]:
    made = RestartedFlink(time.monotonic, savepoint_s=0.3)
    with made.server:
        yield made


@pytest.fixture
def change(flink: RestartedFlink, root: Path, tmp_path: Path) -> Iterator[Change]:
    jar = tmp_path / "program.jar"
    jar.write_bytes(b"PK")
    with FlinkRest(flink.server.url, timeout_s=2.0, patience_s=0.0) as rest:
        preparation = Preparation(
            plan=read_as(root / "tests" / "data" / "plans" / "nexmark-q5-v1.json", Plan),
            job=running_job(rest, JOB),
            vertices={},
            wanted={VERTEX: 3},
            changes=(),
            scheduler=Scheduler.DEFAULT,
            method="restart",
            restart=Restart(RestartProgram(jar=str(jar), entry_class="P"), "file:///savepoints"),
            move=None,
            as_planned=False,
            advice=(),
        )
        yield change_for(rest, preparation)


def reached(job: str, tasks: object) -> None:
    """Nothing is waited for."""


def test_a_restart_is_undone_by_the_former_tasks_from_the_same_savepoint(flink: RestartedFlink, change: Change) -> None:
    made = change.make(reached)
    assert flink.running == [(made, 3)]
    former = change.undo()
    assert flink.running == [(former, 2)] and flink.jars == []


def test_a_savepoint_whose_request_had_no_answer_is_waited_for_since_it_ends_the_job(
    flink: RestartedFlink, change: Change
) -> None:
    flink.loses_answer_to = "savepoints"
    with pytest.raises(SluiceError, match="does not answer"):
        change.make(reached)
    assert flink.running == [(JOB, 2)], "0.3 s have not passed"
    former = change.undo()
    assert flink.running == [(former, 2)] and flink.runs == [(former, 2)]


def test_a_job_whose_savepoint_failed_runs_on(flink: RestartedFlink, change: Change) -> None:
    flink.savepoint_fails = True
    with pytest.raises(SluiceError, match="no space"):
        change.make(reached)
    assert change.undo() == JOB and flink.running == [(JOB, 2)]


def test_a_program_is_started_once_although_its_answer_was_lost(flink: RestartedFlink, change: Change) -> None:
    flink.main_s, flink.loses_answer_to = 0.5, "run"
    made = change.make(reached)
    assert flink.running == [(made, 3)] and flink.runs == [(made, 3)]
