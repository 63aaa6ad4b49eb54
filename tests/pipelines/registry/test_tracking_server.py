"""Selection and review on an MLflow server, which keeps the artifacts itself."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mlflow_server import wait_until_up
from pipelines.registry.models import load_champion
from pipelines.registry.review.record import ReviewRecord
from pipelines.registry.tracking import TRACKING_VARIABLE
from pipelines.run import PipelineRun
from pipelines.stages.review import review
from pipelines.stages.select import select
from testbeds.local.machine import free_port

ExploredRun = Callable[..., PipelineRun]


@pytest.fixture
def server(tmp_path: Path, migrated_database: Path) -> Iterator[str]:
    """An MLflow server on a free port of the loopback interface, with a store of its own."""
    shutil.copyfile(migrated_database, tmp_path / "server.db")
    port = free_port()
    arguments = [
        "--backend-store-uri",
        f"sqlite:///{tmp_path}/server.db",
        "--artifacts-destination",
        f"{tmp_path}/kept",
    ]
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "mlflow",
            "server",
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
            "--workers",
            "1",
            *arguments,
        ],
        env={**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=tmp_path,
        start_new_session=True,
    )
    try:
        wait_until_up(f"http://127.0.0.1:{port}", process)
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)


@pytest.mark.slow
def test_a_server_serves_as_well_as_a_file(
    explored: ExploredRun, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TRACKING_VARIABLE, server)
    runs = [explored("better", observations=18, model="log"), explored("worse", observations=18, model="linear")]
    for run in runs:
        select(run)
        review(run)
    verdicts = [run.output("review.json", ReviewRecord).verdict for run in runs]
    assert verdicts == ["approved by rule", "rejected"]
    assert load_champion(run.workspace, "nexmark-q5").uri == "models:/nexmark-q5/1"
    assert list((tmp_path / "kept").rglob("model.skops")) != [], "the artifacts are the server's"
    assert list(run.workspace.local_folder("mlflow").rglob("*.skops")) == []
