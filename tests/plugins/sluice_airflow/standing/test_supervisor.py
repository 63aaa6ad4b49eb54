"""The standing Airflow: private to its user, and up under a load that locks its database."""

import os
import signal
import sqlite3
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from pipelines.inputs.plan_request import PlanRequest
from pipelines.run import PipelineRun
from pipelines.stages import run_all
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace
from servers.airflow import RunningAirflow

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

JOB = "nexmark-q1"
LOCKED_S = 20.0
"""Four times the driver's busy time-out."""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return Workspace(tmp_path_factory.mktemp("workspace"))


@pytest.fixture(scope="module")
def airflow(workspace: Workspace, root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningAirflow]:
    """Started while a plan is made."""
    folder = tmp_path_factory.mktemp("airflow")
    # In the home of an Airflow that ran before, with the modes it left.
    (folder / "home").mkdir(mode=0o755)
    (folder / "home" / "airflow.cfg").touch(0o644)
    started = RunningAirflow(
        folder / "home", folder / "airflow.log", {"SLUICE_WORKSPACE": str(workspace.local_folder())}
    )
    try:
        measurements = str(root / "tests" / "data" / "streambed" / "search_q1.csv")
        asked = PlanRequest(job=JOB, rate=5e6, testbed="recorded", measurements=measurements, measurement_rows=24)
        run_all(PipelineRun(asked, workspace))
        started.log_in()
        yield started
    finally:
        started.stop()


def test_it_listens_on_loopback_alone_and_its_files_are_its_owners(airflow: RunningAirflow) -> None:
    airflow.wait_for(lambda: all(_healthy(airflow, name) for name in ("scheduler", "triggerer", "dag_processor")))
    listening = {
        connection.laddr.ip
        for process in airflow.processes()
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening == {"127.0.0.1"}
    assert stat.S_IMODE(airflow.home.stat().st_mode) == 0o700
    files = [airflow.passwords, *airflow.home.glob("airflow.*")]
    assert {"airflow.cfg", "airflow.db"} <= {file.name for file in files}
    assert {file.name: oct(stat.S_IMODE(file.stat().st_mode)) for file in files} == {
        file.name: "0o600" for file in files
    }


def test_six_runs_and_four_events_at_once_end_though_the_database_is_locked(
    airflow: RunningAirflow, workspace: Workspace
) -> None:
    airflow.unpause("replan")
    (asset,) = airflow.call("GET", "/api/v2/assets?name_pattern=sluice-rate-change")["assets"]
    events = [{"asset_id": asset["id"], "extra": {"job": JOB, "rate": 7e6 + n}} for n in range(4)]
    calls = [("/api/v2/assets/events", event) for event in events]
    runs = [{"logical_date": None, "conf": {"job": JOB, "rate": 6e6 + n}} for n in range(6)]
    calls += [("/api/v2/dags/replan/dagRuns", run) for run in runs]
    answers: list[object] = []
    threads = [threading.Thread(target=lambda c=call: answers.append(airflow.call("POST", *c))) for call in calls]
    for thread in threads:
        thread.start()
    time.sleep(2.0)
    with sqlite3.connect(airflow.home / "airflow.db", timeout=60, isolation_level=None) as database:
        database.execute("BEGIN IMMEDIATE")
        time.sleep(LOCKED_S)
        database.execute("COMMIT")
    for thread in threads:
        thread.join()
    assert len(answers) == len(calls), "a request was refused"

    def all_ended() -> bool:
        ended = airflow.finished("replan")
        return len(ended) == len(airflow.runs("replan")) and len(ended) > len(runs)

    airflow.wait_for(all_ended, seconds=600.0)
    assert {run["state"] for run in airflow.runs("replan")} == {"success"}
    assert airflow.restarts() == []
    assert PlanStore(workspace).versions(JOB)[-1] > 1


def test_a_scheduler_that_dies_is_started_again_and_runs_go_on(airflow: RunningAirflow) -> None:
    before = airflow.component("scheduler")
    run = airflow.start("replan", {"job": JOB, "rate": 9e6})
    os.kill(before, signal.SIGKILL)
    airflow.wait_for(lambda: airflow.component("scheduler") != before)
    assert airflow.end("replan", run) == "success"
    (said,) = airflow.restarts()
    assert said.startswith("scheduler")
    airflow.wait_for(lambda: _healthy(airflow, "scheduler"))


def _healthy(airflow: RunningAirflow, component: str) -> bool:
    return bool(airflow.call("GET", "/api/v2/monitor/health")[component]["status"] == "healthy")
