"""Sluice as a provider of Airflow: connection types, their forms, the test button, and the look-up of job files."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from airflow.models.connection import Connection as StoredConnection
from airflow.providers_manager import ProvidersManager
from airflow.sdk import Connection

from answering.server import AnsweringServer
from answering.tls_proxy import Certificate, TlsProxy, certificate
from flink_client.access.connection import read_connection
from flink_client.access.lookup import find_connection
from flink_client.access.server import CONNECTION_TYPES, EXTRA_FIELDS
from on_kubernetes.server import PLANNER, FakeKubernetes, forbidden
from sluice_airflow.connections.lookup import from_airflow

SECRET = "s3cr3t/&? value"


@pytest.fixture(scope="module")
def manager() -> ProvidersManager:
    return ProvidersManager()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return certificate(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def proxy(made: Certificate) -> Iterator[TlsProxy]:
    flink = AnsweringServer(lambda request, _body: (200, {"flink-version": "2.3.0", "data": {"result": [0, "1"]}}))
    with flink, TlsProxy(flink.url, made, "t0ken") as server:
        yield server


def pressed(kind: str, variables: pytest.MonkeyPatch, **fields: Any) -> tuple[bool, str]:
    """The test button: Airflow's API server puts the form into an environment variable of a random name."""
    form = StoredConnection(conn_id="abcdef", conn_type=kind, **fields)
    variables.setenv("AIRFLOW_CONN_ABCDEF", form.get_uri())
    status, message = form.test_connection()
    return bool(status), str(message)


@pytest.mark.parametrize(
    "fields",
    [
        {"conn_type": "sluice_flink", "host": "https://flink.example", "port": 8081, "password": SECRET},
        {"conn_type": "http", "host": "flink.example", "schema": "https", "login": "ada", "password": SECRET},
        {
            "conn_type": "sluice_flink",
            "host": "https://h",
            "login": "a@b",
            "password": SECRET,
            "extra": {"scope": "x y"},
        },
        {
            "conn_type": "sluice_flink",
            "host": "https://h",
            "extra": {"token_url": "https://issuer/token", "n": {"a": 1}},
        },
        {"conn_type": "sluice_kafka", "host": "b-1:9093,b-2:9093", "extra": {"security.protocol": "SSL"}},
    ],
)
def test_airflows_own_uri_and_json_of_a_connection_mean_the_same(fields: dict[str, object]) -> None:
    extra = fields.get("extra")
    theirs = Connection(conn_id="x", **{**fields, "extra": json.dumps(extra) if extra else None})
    by_uri = read_connection("x", theirs.get_uri(), "the test")
    assert by_uri == read_connection("x", theirs.as_json(), "the test")
    again = Connection.from_uri(theirs.get_uri(), conn_id="x")
    assert (by_uri.host, by_uri.port, by_uri.schema) == (again.host or "", again.port, again.schema or "")
    assert (by_uri.login, by_uri.kind) == (again.login or "", again.conn_type)
    assert (by_uri.password.get_secret_value() if by_uri.password else None) == again.password
    assert by_uri.extra == again.extra_dejson


@pytest.mark.parametrize(
    "kind", ["sluice_flink", "sluice_prometheus", "sluice_mlflow", "sluice_kubernetes", "sluice_kafka"]
)
def test_each_type_has_a_hook_with_a_test_and_a_form(manager: ProvidersManager, kind: str) -> None:
    hook = manager.hooks[kind]
    assert hook is not None
    assert (hook.package_name, hook.connection_type, hook.connection_testable) == ("sluice", kind, True)
    fields = {
        name.removeprefix(f"extra__{kind}__"): widget
        for name, widget in manager.connection_form_widgets.items()
        if name.startswith(f"extra__{kind}__")
    }
    assert kind == "sluice_kafka" or kind in CONNECTION_TYPES, "unknown extra fields are refused"
    if kind != "sluice_kafka":
        assert tuple(fields) == EXTRA_FIELDS
    assert {name for name, widget in fields.items() if widget.is_sensitive} == {
        "ssl.key.password" if kind == "sluice_kafka" else "client_key_password"
    }
    assert "password" in manager.field_behaviours[kind]["relabeling"]


def test_the_button_tests_flink_and_prometheus(
    manager: ProvidersManager, proxy: TlsProxy, made: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    extra = json.dumps({"ca_file": str(made.authority), "scope": None})
    given: dict[str, Any] = {"host": proxy.url, "password": "t0ken", "extra": extra}
    assert pressed("sluice_flink", monkeypatch, **given) == (True, f"Flink 2.3.0 at {proxy.url}")
    assert pressed("sluice_prometheus", monkeypatch, **given) == (True, f"Prometheus at {proxy.url}")
    assert proxy.methods == ["GET", "GET"]
    for kind in ("sluice_flink", "sluice_prometheus"):
        passed, said = pressed(kind, monkeypatch, **{**given, "password": SECRET.replace(" ", "")})
        assert not passed and "put a valid one into its password field" in said and "s3cr3t" not in said


def test_the_button_tests_mlflow(manager: ProvidersManager, made: Certificate, monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[tuple[int, object]] = [(200, {"experiments": []}), (500, "s3cr3t-t0ken is odd"), (200, b"<html>")]
    with (
        AnsweringServer(lambda request, _body: answers[0]) as mlflow,
        TlsProxy(mlflow.url, made, "s3cr3t-t0ken") as proxy,
    ):
        given: dict[str, Any] = {"host": proxy.url, "extra": json.dumps({"ca_file": str(made.authority)})}
        given["password"] = "s3cr3t-t0ken"
        assert pressed("sluice_mlflow", monkeypatch, **given) == (True, f"MLflow at {proxy.url}")
        wrong = {
            "put a valid one into its password field": given | {"password": "s3cr3t"},
            "is of no authority that is trusted here": given | {"extra": "{}"},
            "takes a certificate and its key from one file": given
            | {"extra": json.dumps({"client_certificate": str(made.client), "client_key": str(made.client_key)})},
        }
        for sentence, fields in wrong.items():
            passed, said = pressed("sluice_mlflow", monkeypatch, **fields)
            assert not passed and sentence in said and "s3cr3t" not in said
        assert proxy.methods == ["GET"]
        for sentence in ("does not list experiments: status 500, *** is odd", "does not answer as MLflow does"):
            del answers[0]
            passed, said = pressed("sluice_mlflow", monkeypatch, **given)
            assert not passed and sentence in said


def test_the_button_tests_kubernetes(
    manager: ProvidersManager, made: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeKubernetes() as kubernetes, TlsProxy(kubernetes.url, made) as proxy:
        kubernetes_alone = {"host": kubernetes.url, "password": PLANNER}
        assert pressed("sluice_kubernetes", monkeypatch, **kubernetes_alone) == (
            True,
            f"Kubernetes v1.33.1 at {kubernetes.url}",
        )
        kubernetes.version = forbidden("planner")
        assert pressed("sluice_kubernetes", monkeypatch, **kubernetes_alone) == (
            True,
            f"Kubernetes (this account may not read its version) at {kubernetes.url}",
        )
        kubernetes.version = forbidden("system:anonymous")
        passed, said = pressed("sluice_kubernetes", monkeypatch, **kubernetes_alone)
        assert not passed and "does not answer as an API server does (403: " in said
        passed, said = pressed("sluice_kubernetes", monkeypatch, **(kubernetes_alone | {"password": "s3cr3t"}))
        assert not passed and "put a valid one into its password field" in said and "s3cr3t" not in said
        passed, said = pressed("sluice_kubernetes", monkeypatch, host=proxy.url, password=PLANNER)
        assert not passed and "name the file of its authority (PEM) in the field 'ca_file' of the connection" in said
        passed, said = pressed("sluice_kubernetes", monkeypatch, **kubernetes_alone, login="ann")
        assert not passed and "Kubernetes takes no password" in said and PLANNER not in said


def test_the_button_says_that_no_broker_answers(manager: ProvidersManager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluice_airflow.connections.hooks.ANSWER_S", 1.0)
    passed, said = pressed("sluice_kafka", monkeypatch, host="127.0.0.1:1")
    assert not passed and said.startswith("no Kafka broker answers at 127.0.0.1:1")


def test_job_files_find_connections_by_airflows_back_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A local file is one of Airflow's secrets back ends; it comes before the environment."""
    file = tmp_path / "connections.json"
    file.write_text(json.dumps({"from_file": {"conn_type": "sluice_flink", "host": "https://h", "password": SECRET}}))
    monkeypatch.setenv("AIRFLOW__SECRETS__BACKEND", "airflow.secrets.local_filesystem.LocalFilesystemBackend")
    monkeypatch.setenv("AIRFLOW__SECRETS__BACKEND_KWARGS", json.dumps({"connections_file_path": str(file)}))
    monkeypatch.setenv("AIRFLOW_CONN_FROM_FILE", '{"host": "https://other"}')
    monkeypatch.setenv("AIRFLOW_CONN_WITH_DASH", '{"host": "https://dash"}')
    found = find_connection("from_file")
    assert found == from_airflow("from_file")
    assert (found.host, found.password.get_secret_value() if found.password else None) == ("https://h", SECRET)
    assert find_connection("with-dash").host == "https://dash"
