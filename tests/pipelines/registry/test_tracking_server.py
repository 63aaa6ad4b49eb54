"""Selection and review on an MLflow server, which keeps the artifacts itself."""

import json
import os
import shutil
import signal
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from answering.tls_proxy import Issuer, TlsProxy, certificate
from models.errors import SluiceError
from pipelines.pages.mlflow_pages import mlflow_address
from pipelines.registry.models import load_champion
from pipelines.registry.review.record import ReviewRecord
from pipelines.registry.tracking import TRACKING_VARIABLE, Tracking, open_tracking
from pipelines.run import PipelineRun
from pipelines.stages.review import review
from pipelines.stages.select import select
from servers.mlflow import wait_until_up
from testbeds.local.machine import free_port

SECRET = "s3cr3t-of-this-test"

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


@pytest.mark.slow
@pytest.mark.parametrize("way", ["user", "oauth"])
def test_a_server_that_a_connection_names_is_used_with_its_credentials_which_are_written_nowhere(
    explored: ExploredRun,
    server: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    way: str,
) -> None:
    made = certificate(tmp_path / "certificates")
    basic = f"Basic {b64encode(f'ann:{SECRET}'.encode()).decode()}"
    wanted = {"user": basic, "oauth": "Bearer token-1"}[way]
    caplog.set_level("DEBUG")
    for name in ("MLFLOW_TRACKING_AUTH", "MLFLOW_TRACKING_SERVER_CERT_PATH"):
        monkeypatch.setenv(name, "restored after this test")
    with TlsProxy(server, made, authorization=wanted) as proxy, Issuer(made, "ann", SECRET) as issuer:
        extra = {"ca_file": str(made.authority)} | ({"token_url": issuer.url} if way == "oauth" else {})
        fields = {"host": proxy.url, "login": "ann", "password": SECRET, "extra": extra}
        monkeypatch.setenv("AIRFLOW_CONN_MY_MLFLOW", json.dumps(fields | {"conn_type": "sluice_mlflow"}))
        monkeypatch.setenv(TRACKING_VARIABLE, "connection:my_mlflow")
        run = explored("only", observations=18, model="log")
        select(run)
        review(run)
        assert load_champion(run.workspace, "nexmark-q5").uri == "models:/nexmark-q5/1"
        assert {"GET", "POST", "PUT"} <= set(proxy.methods)
        assert open_tracking(run.workspace) == Tracking(proxy.url, None)
        monkeypatch.delenv("SLUICE_MLFLOW_PAGES", raising=False)
        assert mlflow_address() == proxy.url
        proxy.wanted = "Bearer another"
        with pytest.raises(
            SluiceError, match=r"MLflow at .* failed: .*401.*; check the connection my_mlflow"
        ) as refused:
            load_champion(run.workspace, "nexmark-q5")
        if way == "oauth":
            assert issuer.given == 1, "one token serves all requests"
    variables = {name: value for name, value in os.environ.items() if name != "AIRFLOW_CONN_MY_MLFLOW"}
    secrets = [SECRET, basic.removeprefix("Basic "), "token-1"]
    texts = [str(refused.value), caplog.text, str(variables)]
    texts += [path.read_bytes().decode(errors="replace") for path in tmp_path.rglob("*") if path.is_file()]
    assert len(texts) > 20 and not [secret for secret in secrets for text in texts if secret in text]
