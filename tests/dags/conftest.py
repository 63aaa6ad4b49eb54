"""The DAGs as Airflow loads them, and a workspace for what they leave."""

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG


def _load(root: Path) -> dict[str, DAG]:
    from airflow.dag_processing.dagbag import DagBag

    bag = DagBag(str(root / "dags"))
    assert bag.import_errors == {}
    return dict(bag.dags)


@pytest.fixture(scope="session")
def dags(root: Path) -> dict[str, DAG]:
    """All DAGs, to look at."""
    return _load(root)


@pytest.fixture(scope="module")
def workspace_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A workspace that the tests of one file share, as SLUICE_WORKSPACE."""
    folder = tmp_path_factory.mktemp("workspace")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLUICE_WORKSPACE", str(folder))
        yield folder


@pytest.fixture(scope="module")
def run_dag(root: Path, airflow_home: Path, workspace_folder: Path) -> Callable[..., Any]:
    """Runs a DAG in this process with the given parameters, and returns the DAG run.

    Each run loads the DAG anew, since a run's parameters become the defaults of the DAG object it ran with.
    """

    def run(name: str, **params: Any) -> Any:
        return _load(root)[name].test(run_conf=params)

    return run


class RunningAirflow:
    """An Airflow with scheduler, DAG processor, triggerer and API server, on ports of its own on this machine."""

    def __init__(self, home: Path, log: Path) -> None:
        ports = [_free_port() for _ in range(3)]
        self.url = f"http://127.0.0.1:{ports[0]}"
        self._log = log
        environment = os.environ | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",  # `standalone` calls `airflow` by its name
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(ports[0]),
            "AIRFLOW__API__WORKERS": "1",
            "AIRFLOW__API__BASE_URL": self.url,
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
            "AIRFLOW__CORE__PARALLELISM": "2",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
            "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(64),
            "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(ports[1]),
            "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(ports[2]),
        }
        command = [sys.executable, "-m", "airflow", "standalone"]
        with log.open("w") as sink:
            # A process that was started in the background ignores SIGINT, and hands that down; Airflow stops by it.
            self._process = subprocess.Popen(
                command,
                env=environment,
                stdout=sink,
                stderr=sink,
                start_new_session=True,
                preexec_fn=_heed_interrupts,
            )
        self._token = ""

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """The JSON answer of the REST API."""
        request = urllib.request.Request(self.url + path, method=method)
        request.add_header("Content-Type", "application/json")
        if self._token:
            request.add_header("Authorization", f"Bearer {self._token}")
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(request, data, timeout=30) as answer:
            return json.load(answer)

    def log_in(self) -> None:
        self._token = self.wait_for(lambda: self.call("GET", "/auth/token")["access_token"])

    def wait_for(self, look: Callable[[], Any], seconds: float = 180.0) -> Any:
        """What `look` returns, as soon as that is something; refused connections and HTTP errors count as nothing."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            assert self._process.poll() is None, f"Airflow ended: {self._log.read_text()[-3000:]}"
            with contextlib.suppress(OSError):
                if found := look():
                    return found
            time.sleep(1.0)
        raise AssertionError(f"nothing came within {seconds:g} s: {self._log.read_text()[-3000:]}")

    def stop(self) -> None:
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


def _heed_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def running_airflow(tmp_path: Path, workspace_folder: Path) -> Iterator[RunningAirflow]:
    """Started here, stopped afterwards; tasks use the file's workspace."""
    airflow = RunningAirflow(tmp_path / "airflow", tmp_path / "airflow.log")
    try:
        airflow.log_in()
        yield airflow
    finally:
        airflow.stop()
