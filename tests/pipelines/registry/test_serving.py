"""MLflow's pages over the workspace's store: on loopback, with its runs and artifacts, until Ctrl-C."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from models.errors import InvalidInput
from pipelines.registry.serving import serve
from pipelines.registry.tracking import TRACKING_VARIABLE, Tracking, open_tracking
from pipelines.store.workspace import Workspace
from servers.mlflow import wait_until_up
from testbeds.local.machine import free_port


@pytest.fixture
def tracking(tmp_path: Path, migrated_database: Path) -> Tracking:
    """The store of a workspace, with one run that has a metric and an artifact."""
    (tmp_path / "mlflow").mkdir()
    shutil.copyfile(migrated_database, tmp_path / "mlflow" / "mlflow.db")
    tracking = open_tracking(Workspace(str(tmp_path)))
    run = tracking.client.create_run(tracking.experiment("wordcount")).info.run_id
    tracking.client.log_metric(run, "mst", 1234.0)
    tracking.client.log_text(run, "why", "reason.txt")
    return tracking


@pytest.fixture
def address(tmp_path: Path, tracking: Tracking) -> Iterator[str]:
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "pipelines.registry.serving", "--port", str(port)],
        env={**os.environ, "SLUICE_WORKSPACE": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        shown = process.stdout.readline()
        assert f"http://127.0.0.1:{port} (stop: Ctrl-C)" in shown
        wait_until_up(f"http://127.0.0.1:{port}", process)
        yield f"http://127.0.0.1:{port}"
        os.killpg(process.pid, signal.SIGINT)  # what Ctrl-C sends
        process.wait(60)
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", port)) != 0, "it still listens"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)


@pytest.mark.slow
def test_the_pages_show_the_runs_and_artifacts_of_the_workspace(address: str, tracking: Tracking) -> None:
    experiment = tracking.experiment("wordcount")
    found = _post(f"{address}/api/2.0/mlflow/runs/search", {"experiment_ids": [experiment]})["runs"]
    assert [metric["value"] for metric in found[0]["data"]["metrics"]] == [1234.0]
    run = found[0]["info"]["run_id"]
    with urllib.request.urlopen(f"{address}/get-artifact?run_id={run}&path=reason.txt", timeout=60) as answer:
        assert answer.read() == b"why"
    with urllib.request.urlopen(address, timeout=60) as page:
        assert b"<title>MLflow</title>" in page.read()


def _post(url: str, body: dict[str, object]) -> dict[str, list[dict[str, dict[str, object]]]]:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def test_a_server_of_its_own_has_its_own_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TRACKING_VARIABLE, "https://someone:secret@mlflow.example")
    with pytest.raises(InvalidInput, match=r"the MLflow server at https://mlflow\.example; open its own pages"):
        serve(Workspace(str(tmp_path)))


@pytest.mark.parametrize("port", [0, 65_536])
def test_a_port_that_is_none_is_refused(tracking: Tracking, tmp_path: Path, port: int) -> None:
    with pytest.raises(InvalidInput, match=f"between 1 and 65535, but got {port}"):
        serve(Workspace(str(tmp_path)), port)


def test_a_port_that_is_taken_is_refused_with_the_fix(tracking: Tracking, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(InvalidInput, match="Address already in use; give another port: make mlflow PORT="):
            serve(Workspace(str(tmp_path)), taken.getsockname()[1])
