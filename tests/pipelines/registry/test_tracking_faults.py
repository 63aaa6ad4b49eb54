"""MLflow is killed while a run is open: the stage says so, and the same stage goes on when the server is back."""

import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from mlflow import MlflowClient

from models.errors import SluiceError
from pipelines.registry.models import list_versions
from pipelines.registry.tracking import TRACKING_VARIABLE, open_tracking
from pipelines.run import PipelineRun
from pipelines.stages.select import select
from testbeds.local.machine import free_port

pytestmark = pytest.mark.slow
JOB = "nexmark-q5"
START_S = 240.0


class Server:
    """An MLflow server on one port and one store, which can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self._port = free_port()
        self._folder = folder
        self.url = f"http://127.0.0.1:{self._port}"
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(self._port)]
        command += ["--workers", "1", "--backend-store-uri", f"sqlite:///{self._folder}/server.db"]
        command += ["--artifacts-destination", f"{self._folder}/kept"]
        self._process = subprocess.Popen(
            command,
            env={**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self._folder,
            start_new_session=True,
        )
        self._wait()

    def kill(self) -> None:
        """`kill -9` of the server and its workers."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(30)

    def _wait(self) -> None:
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            assert self._process.poll() is None, "the server ended"
            try:
                with urllib.request.urlopen(f"{self.url}/health", timeout=5):
                    return
            except OSError:
                time.sleep(0.2)
        raise AssertionError(f"{self.url} did not answer within {START_S:g} s")


@pytest.fixture
def server(tmp_path: Path, migrated_database: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    shutil.copyfile(migrated_database, tmp_path / "server.db")
    started = Server(tmp_path)
    monkeypatch.setenv(TRACKING_VARIABLE, started.url)
    try:
        yield started
    finally:
        started.kill()


def _wait_for_an_open_run(url: str) -> None:
    client, until = MlflowClient(tracking_uri=url), time.monotonic() + START_S
    while time.monotonic() < until:
        experiment = client.get_experiment_by_name(f"sluice/{JOB}")
        if experiment and client.search_runs([experiment.experiment_id], "attributes.status = 'RUNNING'"):
            return
        time.sleep(0.05)
    raise AssertionError("no run was opened")


def test_a_stage_whose_mlflow_is_killed_says_so_and_goes_on_when_it_is_back(
    explored: Callable[..., PipelineRun], server: Server
) -> None:
    run = explored("first", observations=19)
    with ThreadPoolExecutor(1) as pool:
        selecting = pool.submit(select, run)
        _wait_for_an_open_run(server.url)
        server.kill()
        with pytest.raises(SluiceError, match=rf"MLflow at {server.url} failed: .*check that it is there"):
            selecting.result(START_S)
    server.start()
    uri = select(run)
    assert select(run) == uri
    tracking = open_tracking(run.workspace)
    assert [version.version for version in list_versions(tracking, JOB)] == [1]
    assert _runs(server.url, "attributes.status = 'RUNNING'") == []


def _runs(url: str, wanted: str) -> list[object]:
    client = MlflowClient(tracking_uri=url)
    experiment = client.get_experiment_by_name(f"sluice/{JOB}")
    assert experiment is not None
    return list(client.search_runs([experiment.experiment_id], wanted))
