"""Processes that run a stage on the simulator: their result, and what is left after they are killed or stopped."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from pipelines.detached import following
from pipelines.detached.attempts import Attempts, Outcome
from pipelines.detached.following import AttemptFollower
from pipelines.detached.starting import start_process
from pipelines.inputs.plan_request import PlanRequest
from pipelines.progress import Quiet
from pipelines.run import PipelineRun
from pipelines.stages import run_stage_at
from pipelines.store.workspace import Workspace

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
REQUEST = PlanRequest(job="nexmark-q1", rate=400_000.0, max_measurements=8, max_task_slots=24)


class Started:
    """The processes that a test has started for one run."""

    def __init__(self, folder: Path, request: PlanRequest = REQUEST) -> None:
        self.folder = folder
        self.uri = PipelineRun(request, Workspace(folder)).start()
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, stage: str, number: int, limit_s: float = 600.0) -> subprocess.Popen[bytes]:
        self.attempts(stage).of(number).begin(limit_s)
        self.processes.append(start_process(self.uri, stage, number, self.folder / "logs" / f"{number}.log", {}))
        return self.processes[-1]

    def attempts(self, stage: str) -> Attempts:
        return Attempts(self.uri, stage)

    def outcome(self, stage: str, number: int) -> tuple[Outcome, list[str]]:
        """How an attempt ended, and its lines."""
        follower, lines = AttemptFollower(self.attempts(stage).of(number)), []
        while True:
            news = follower.look()
            lines += news.lines
            if news.outcome is not None:
                return news.outcome, lines
            time.sleep(0.1)

    def measured(self) -> dict[str, int]:
        """When each measurement was written."""
        return {str(f): f.stat().st_mtime_ns for f in self.folder.glob("runs/*/*/observations/*.json")}


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    made = Started(tmp_path)
    yield made
    for process in made.processes:
        process.kill()
        process.wait()


def _until(look: Callable[[], bool]) -> None:
    while not look():
        time.sleep(0.05)


def test_a_stage_gives_in_a_process_what_it_gives_in_this_one(started: Started, tmp_path: Path) -> None:
    process = started.start("profile", 1)
    outcome, lines = started.outcome("profile", 1)
    assert process.wait(60) == 0
    assert outcome == Outcome(kind="done", text=f"file://{tmp_path}/runs/nexmark-q1/{_run(started)}/profile.json")
    made = (tmp_path / "runs" / "nexmark-q1" / _run(started) / "profile.json").read_bytes()
    assert lines[-1].startswith("profile: one task of each operator saturates at ")

    other = Started(tmp_path / "other")
    uri = run_stage_at("profile", other.uri, Quiet())
    assert Path(uri.removeprefix("file://")).read_bytes() == made


def _run(started: Started) -> str:
    return started.uri.rpartition("/request.json")[0].rpartition("/")[2]


def test_after_a_killed_process_the_next_one_resumes_from_what_it_measured(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_stage_at("profile", started.uri, Quiet())
    process = started.start("explore", 1)
    _until(lambda: len(started.measured()) >= 2)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = started.measured()
    monkeypatch.setattr(following, "LOST_S", 1.0)
    assert started.outcome("explore", 1)[0].kind == "lost"
    monkeypatch.undo()

    started.start("explore", 2)
    outcome, _ = started.outcome("explore", 2)
    assert outcome.kind == "done"
    after = started.measured()
    assert len(after) > len(before) >= 2
    assert {name: after[name] for name in before} == before, "what was measured is not measured again"


def test_a_stopped_process_ends_with_all_that_it_started_and_keeps_its_measurements(started: Started) -> None:
    run_stage_at("profile", started.uri, Quiet())
    process = started.start("explore", 1)
    _until(lambda: bool(started.measured()))
    started.attempts("explore").of(1).stop()
    outcome, lines = started.outcome("explore", 1)
    assert outcome == Outcome(kind="stopped", text="it was stopped on request")
    assert lines[-1] == "stopping: it was stopped on request"
    assert process.wait(60) == 1
    assert _of_session(process.pid) == []
    assert started.measured()


def _of_session(leader: int) -> list[int]:
    found = []
    for pid in psutil.pids():
        try:
            if os.getsid(pid) == leader and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                found.append(pid)
        except (ProcessLookupError, psutil.Error):
            continue
    return found


def test_a_stopped_process_ends_the_flink_that_it_has_started(tmp_path: Path) -> None:
    request = PlanRequest(job="nexmark-q1", rate=200_000.0, testbed="flink", cluster="flink-local", max_task_slots=5)
    started = Started(tmp_path, request)
    process = started.start("profile", 1)
    try:
        below: list[psutil.Process] = []
        while len(below) < 2:  # a JobManager and a TaskManager
            assert process.poll() is None
            below = [one for one in psutil.Process(process.pid).children(recursive=True) if one.name() == "java"]
            time.sleep(0.2)
        started.attempts("profile").of(1).stop()
        assert started.outcome("profile", 1)[0].kind == "stopped"
        assert process.wait(60) == 1
        psutil.wait_procs(below, timeout=10)
        assert [one for one in below if one.is_running() and one.status() != psutil.STATUS_ZOMBIE] == []
    finally:
        process.kill()
        process.wait()


def test_of_two_processes_for_one_run_one_measures_at_a_time(started: Started) -> None:
    run_stage_at("profile", started.uri, Quiet())
    first = started.start("explore", 1)
    _until(lambda: bool(started.measured()))
    first.send_signal(signal.SIGSTOP)  # halted for so long that it is given up
    try:
        started.attempts("explore").of(1).end(Outcome(kind="lost", text="no sign of life"))
        second = started.start("explore", 2)
        before = started.measured()
        attempt = started.attempts("explore").of(2)
        _until(lambda: any("makes the same run" in line for line in attempt.progress.lines))
        assert (started.measured(), second.poll()) == (before, None)
    finally:
        first.send_signal(signal.SIGCONT)
    assert first.wait(120) == 1, "it has found that it was given up"
    assert started.outcome("explore", 2)[0].kind == "done"


def test_a_stage_that_takes_too_long_is_stopped(started: Started) -> None:
    run_stage_at("profile", started.uri, Quiet())
    process = started.start("explore", 1, limit_s=0.5)
    outcome, _ = started.outcome("explore", 1)
    assert outcome == Outcome(kind="timed-out", text="it was stopped after 0.5 s, its time limit")
    assert process.wait(60) == 1


def test_an_error_that_sluice_raises_is_recorded_as_refused_and_any_other_as_failed(started: Started) -> None:
    started.start("explore", 1)  # before the profile that it needs
    refused, _ = started.outcome("explore", 1)
    assert refused.kind == "refused" and "profile.json does not exist" in refused.text
    started.start("no-such-stage", 1)
    failed, lines = started.outcome("no-such-stage", 1)
    assert failed == Outcome(kind="failed", text="KeyError: 'no-such-stage'")
    assert lines[0] == "Traceback (most recent call last):"
