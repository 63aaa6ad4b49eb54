"""An Airflow API server with the plan pages, a workspace with plans, people with and without rights, and a browser."""

import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, sync_playwright

from autopilots.records import decided, state_of, store_autopilots
from pipelines.control.files import AutopilotFiles
from pipelines.inputs.plan_request import PlanRequest
from pipelines.run import PipelineRun
from pipelines.stages import run_all
from pipelines.store.workspace import Workspace
from testbeds.local.machine import free_port
from workspaces.plan_pages import (
    JOB,
    PASSWORD,
    Server,
    ask_for_approval,
    calendar_job,
    follow_calendar,
    replan_by_dag,
    store_damaged,
    store_drift,
)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the server's workspace."""
    return tmp_path_factory.mktemp("workspace")


@pytest.fixture(scope="session")
def job_file(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the job that is planned; it has a calendar."""
    return calendar_job(root, tmp_path_factory.mktemp("job"))


@pytest.fixture(scope="session")
def starting(
    airflow_home: Path, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Server, Any]]:
    """A server that is starting, while plans are made."""
    own = tmp_path_factory.mktemp("server")
    (own / "passwords.json").write_text(json.dumps(dict.fromkeys(("reader", "planner", "nobody"), PASSWORD)))
    port = free_port()
    server = Server(f"http://127.0.0.1:{port}", secrets.token_hex(64))
    environment = os.environ | {
        "AIRFLOW_HOME": str(airflow_home),
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__API__BASE_URL": server.url,
        "AIRFLOW__API_AUTH__JWT_SECRET": server.secret,
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "reader:viewer,planner:user,nobody:",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(own / "passwords.json"),
        "SLUICE_WORKSPACE": str(folder),
        "MLFLOW_TRACKING_URI": "",
        "SLUICE_MLFLOW_PAGES": "http://mlflow.example:5000",
    }
    with (own / "log").open("w") as sink:
        process = subprocess.Popen(
            [sys.executable, "-m", "airflow", "api-server"],
            env=environment,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
        )
    try:
        yield server, lambda: (process.poll(), (own / "log").read_text()[-3000:])
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture(scope="session")
def planned(airflow_home: Path, root: Path, folder: Path, job_file: Path, starting: object) -> Workspace:
    """The workspace: a job planned on the simulator and replanned by its DAG, and one whose files are damaged."""
    workspace = Workspace(folder)
    run_all(PipelineRun(PlanRequest(job=str(job_file), rate=4e5, max_measurements=3, max_task_slots=12), workspace))
    replan_by_dag(root, folder)
    follow_calendar(workspace)
    store_damaged(workspace, root)
    store_drift(workspace)
    store_autopilots(workspace, minutes=20)
    now, files = datetime.now(UTC), AutopilotFiles(workspace, JOB)
    newest = decided(1, now, JOB)
    newest = newest.model_copy(update={"seen": newest.seen.model_copy(update={"arriving_rate": 2_850_000.0})})
    files.keep(newest)
    files.keep_state(state_of(newest, now, JOB))
    return workspace


@pytest.fixture(scope="session")
def server(starting: tuple[Server, Any], planned: Workspace) -> Server:
    """The server, up, with plans to show and a question that waits for an answer."""
    up, state = starting
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        ended, log = state()
        assert ended is None, log
        with contextlib.suppress(httpx.HTTPError), up.client() as client:
            if client.get("/api/v2/version").is_success:
                ask_for_approval()
                return up
        time.sleep(0.2)
    raise AssertionError(f"the API server did not come up: {state()[1]}")


@pytest.fixture(scope="session")
def reader(server: Server) -> Iterator[httpx.Client]:
    """The pages as a program gets them that has the token of a read-only user."""
    with server.client(server.token("reader")) as client:
        client.base_url = client.base_url.join("/sluice/")
        yield client


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Headless Chromium, that of the system; not longer, since its event loop keeps others from running in the process."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("these tests need Chromium: apt-get install chromium")
    with sync_playwright() as tools:
        started = tools.chromium.launch(executable_path=program)
        yield started
        started.close()
