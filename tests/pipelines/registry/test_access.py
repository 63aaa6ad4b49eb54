"""What MLflow's client shows to the server that a connection names, and to others."""

from collections.abc import Iterator

import pytest
from pydantic import SecretStr

from flink_client.access.connection import NamedConnection
from flink_client.access.server import access_by
from pipelines.registry import access as registry_access
from pipelines.registry.access import let_in, without_mlflows_secrets

SECRET = "s3cr3t-of-this-test"


@pytest.fixture(autouse=True)
def restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The connection that is in force in this process, and MLflow's variables."""
    monkeypatch.setenv("MLFLOW_TRACKING_AUTH", "restored after this test")
    monkeypatch.setattr(registry_access._in_force, "auth", None)
    yield


@pytest.mark.slow  # it imports MLflow
def test_the_credentials_go_to_the_server_of_the_connection_alone() -> None:
    import requests
    from mlflow.tracking.request_auth.registry import fetch_auth

    def shown(url: str) -> str | None:
        auth = fetch_auth("sluice")
        return requests.Request("GET", url, auth=auth).prepare().headers.get("Authorization")

    let_in(access_by(NamedConnection("m", "sluice_mlflow", "https://MLflow.example/sub", password=SecretStr(SECRET))))
    assert shown("https://mlflow.example:443/sub/api/2.0/mlflow/runs/get?x=1") == f"Bearer {SECRET}"
    for other in ("https://mlflow.example:8443/sub", "http://mlflow.example/sub", "https://mlflow.example.org/sub"):
        assert shown(other) is None
    assert without_mlflows_secrets(f"no {SECRET} here") == "no *** here"
    let_in(access_by(NamedConnection("m", "sluice_mlflow", "https://mlflow.example")))
    assert shown("https://mlflow.example/api") is None, "the newest connection is in force"
