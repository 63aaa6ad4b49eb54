"""The process beside the embedded Airflow: it answers calls, passes errors on, and does not outlive its parent."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from models.errors import Infeasible, SluiceError
from models.wording import amount
from sluice_airflow.embedded import stage_process
from sluice_airflow.embedded.stage_process import call, portable
from sluice_airflow.tasks.planning import _run_stage

STARTED = """
import os, time
from sluice_airflow.embedded.stage_process import call, start
if __name__ == "__main__":
    start("none")
    print(call(os.getpid), flush=True)
    time.sleep(60)
"""
ENDING = """
import multiprocessing
from sluice_airflow.embedded import stage_process
from sluice_airflow.embedded.stage_process import call, start

def hold():
    stage_process.held = multiprocessing.get_context("spawn").Semaphore()
    return True

if __name__ == "__main__":
    start("none")
    print(call(hold), flush=True)
"""


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The id of a process that runs stages; its log is in `tmp_path`."""
    monkeypatch.chdir(tmp_path)
    stage_process.start("none")
    yield call(os.getpid)
    if (connection := stage_process._running) is not None:
        connection.close()
    stage_process._running = None


def test_without_a_process_a_call_runs_here() -> None:
    assert call(os.getpid) == os.getpid()


def test_a_call_runs_in_the_process_and_returns_its_result(started: int) -> None:
    assert started != os.getpid()
    assert call(amount, 1234.5) == amount(1234.5)


def test_an_error_comes_back_with_its_class_and_message(started: int, tmp_path: Path) -> None:
    request = f"file://{tmp_path}/runs/job/run/request.json"
    with pytest.raises(SluiceError) as here:
        _run_stage("profile", request)
    with pytest.raises(SluiceError) as there:
        call(_run_stage, "profile", request)
    assert (there.type, str(there.value)) == (here.type, str(here.value))
    assert "Traceback" in (tmp_path / ".sluice" / "logs" / "none-stages.log").read_text()
    assert call(os.getpid) == started, "the process still answers"


def test_a_process_that_died_is_reported_once_and_later_calls_run_here(started: int) -> None:
    os.kill(started, signal.SIGKILL)
    with pytest.raises(ChildProcessError, match="has ended"):
        call(os.getpid)
    assert call(os.getpid) == os.getpid()


def test_it_ends_with_its_parent(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(STARTED)
    parent = subprocess.Popen([sys.executable, str(script)], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.kill()
    parent.wait(timeout=60)
    parent.stdout.close()
    deadline = time.monotonic() + 60
    while Path(f"/proc/{child}").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not Path(f"/proc/{child}").exists()


class _OfTwo(Infeasible):
    def __init__(self, job: str, slots: int) -> None:
        super().__init__(f"{job} needs {slots} slots")


def test_an_error_that_cannot_be_read_elsewhere_keeps_its_kind_and_message() -> None:
    sent = portable(_OfTwo("q5", 9))
    assert (type(sent), str(sent)) == (Infeasible, "q5 needs 9 slots")
    own = Infeasible("no")
    assert portable(own) is own


def test_it_ends_quietly(tmp_path: Path) -> None:
    """Semaphores that libraries made would be reported as leaked by a process that is terminated."""
    script = tmp_path / "parent.py"
    script.write_text(ENDING)
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")
