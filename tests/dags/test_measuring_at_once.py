"""An Airflow with one worker slot measures three jobs at once, and loses nothing when its processes are killed."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from servers.airflow import RunningAirflow
from sluice_airflow.pools import MEASURING

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2400)]
JOBS = ("nexmark-q1", "nexmark-q2", "nexmark-q5")
SETTINGS = {
    "AIRFLOW__CORE__PARALLELISM": "1",
    # A scheduler that was killed is known as dead after this, and looked for so often: by default 30 and 300 s.
    "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "20",
    "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "5",
}
LARGE = {"rate": 400_000.0, "max_measurements": 12, "precision": 0.01, "max_task_slots": 30, "cluster": "testbed"}


@pytest.fixture(scope="module")
def small_airflow(tmp_path_factory: pytest.TempPathFactory, workspace_folder: Path) -> Iterator[RunningAirflow]:
    """With one worker slot, and three testbeds."""
    folder = tmp_path_factory.mktemp("airflow")
    airflow = RunningAirflow(folder / "home", folder / "airflow.log", SETTINGS)
    try:
        airflow.log_in()
        three = {"name": MEASURING, "slots": 3, "include_deferred": True}
        airflow.call("PATCH", f"/api/v2/pools/{MEASURING}?update_mask=slots", three)
        airflow.unpause_without_its_schedule("capacity_plan")
        yield airflow
    finally:
        airflow.stop()
        for process in _measuring(workspace_folder):
            process.kill()


def _measuring(workspace: Path) -> list[psutil.Process]:
    """The processes that explore, and those that they have started."""

    def is_mine(command: list[str]) -> bool:
        return {"pipelines.detached", "explore"} <= set(command) and any(str(workspace) in part for part in command)

    mine = [p for p in psutil.process_iter(["cmdline"]) if is_mine(p.info["cmdline"] or [])]
    return [one for one in mine if one.status() != psutil.STATUS_ZOMBIE]


@contextmanager
def _slowly(workspace: Path) -> Iterator[None]:
    """Let processes measure for a twentieth of the time: alone, one may have ended before Airflow has started the next.

    They still show every few seconds that they live.
    """
    over = threading.Event()

    def brake() -> None:
        while not over.wait(0.25):
            halted = _measuring(workspace)
            _signal(halted, signal.SIGSTOP)
            over.wait(4.75)
            _signal(halted, signal.SIGCONT)

    thread = threading.Thread(target=brake)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _signal(processes: list[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def _observations(workspace: Path, job: str) -> dict[str, int]:
    """When each measurement was written."""
    return {str(file): file.stat().st_mtime_ns for file in workspace.glob(f"runs/{job}/*/observations/*.json")}


def test_three_jobs_are_measured_at_once_by_one_slot_and_killed_components_lose_nothing(
    small_airflow: RunningAirflow, workspace_folder: Path
) -> None:
    airflow = small_airflow
    with _slowly(workspace_folder):
        runs = {job: airflow.start("capacity_plan", LARGE | {"job": job}) for job in JOBS}

        def all_explore() -> bool:
            return all(airflow.states("capacity_plan", run).get("explore") == "deferred" for run in runs.values())

        airflow.wait_for(all_explore, seconds=900)
        airflow.wait_for(lambda: len(_measuring(workspace_folder)) == 3)
    processes = {process.pid for process in _measuring(workspace_folder)}
    airflow.wait_for(lambda: any(_observations(workspace_folder, job) for job in JOBS))
    before = {job: _observations(workspace_folder, job) for job in JOBS}
    for component in ("triggerer", "scheduler"):
        os.kill(airflow.component(component), signal.SIGKILL)

    def all_explored() -> bool:
        return all(airflow.states("capacity_plan", run).get("explore") == "success" for run in runs.values())

    airflow.wait_for(all_explored, seconds=900)
    for job, run in runs.items():
        after = _observations(workspace_folder, job)
        assert {name: after[name] for name in before[job]} == before[job], "what was measured is not measured again"
        attempts = sorted(
            str(p.parent.name) for p in workspace_folder.glob(f"runs/{job}/*/attempts/explore/*/attempt.json")
        )
        assert attempts == ["000001"], "the process was followed, and no second one started"
        asked = _returned(airflow, run, "request")  # by a task that has run in a worker to its end
        assert _returned(airflow, run, "explore") == asked.replace("/request.json", "/exploration.json")
        assert "records/s" in airflow.task_log("capacity_plan", run, "explore")
        airflow.give_up("capacity_plan", run)
    airflow.wait_for(lambda: not processes & {process.pid for process in _measuring(workspace_folder)})


def _returned(airflow: RunningAirflow, run: str, task: str) -> str:
    path = f"/api/v2/dags/capacity_plan/dagRuns/{run}/taskInstances/{task}/xcomEntries/return_value"
    found: dict[str, Any] = airflow.call("GET", path)
    return str(found["value"])


def test_a_measurement_stops_with_its_task(small_airflow: RunningAirflow, workspace_folder: Path) -> None:
    airflow, job = small_airflow, JOBS[0]
    attempt = workspace_folder / f"runs/{job}/stopped/attempts/explore/000001"
    with _slowly(workspace_folder):
        run = airflow.start("capacity_plan", LARGE | {"job": job, "run": "stopped", "max_measurements": 20})
        airflow.wait_for(lambda: airflow.states("capacity_plan", run).get("explore") == "deferred", seconds=900)
        airflow.wait_for((attempt / "followed.json").exists)
        path = f"/api/v2/dags/capacity_plan/dagRuns/{run}/taskInstances/explore"
        airflow.call("PATCH", path, {"new_state": "failed"})
        airflow.wait_for((attempt / "stop.json").exists)
    airflow.wait_for(lambda: not _measuring(workspace_folder))
    assert airflow.end("capacity_plan", run) == "failed"
    assert '"stopped"' in (attempt / "outcome.json").read_text()
