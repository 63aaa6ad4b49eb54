"""Plans applied through a server with TLS and credentials: what is done, what is not, and where the secrets are not."""

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from answering.tls_proxy import Certificate, Issuer, TlsProxy, certificate
from models.errors import SluiceError
from pipelines.apply.operating import apply_rehearsed
from pipelines.apply.record import recorded
from pipelines.apply.rehearsal import rehearse
from pipelines.cli import run
from pipelines.store.workspace import Workspace
from workspaces.operated_job import JOB, OperatedJob

SECRET = "s3cr3t-of-this-test"
NAMED = "connection:my_flink"
Connect = Callable[..., None]


@pytest.fixture
def job(tmp_path: Path) -> OperatedJob:
    """Its newest plan has three tasks of the chain; its file names the connection."""
    made = OperatedJob(tmp_path, Workspace(tmp_path / "workspace"))
    made.publish(3)
    made.apply(mode="alone", flink=NAMED)
    return made


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return certificate(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def proxy(flink: Any, made: Certificate) -> Iterator[TlsProxy]:
    with TlsProxy(flink.url, made, SECRET) as server:
        yield server


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch, made: Certificate, proxy: TlsProxy) -> Connect:
    def connect(extra: dict[str, Any] | None = None, **fields: Any) -> None:
        given = {"host": proxy.url, "extra": {"ca_file": str(made.authority), **(extra or {})}, **fields}
        monkeypatch.setenv("AIRFLOW_CONN_MY_FLINK", json.dumps(given))

    return connect


def applied(job: OperatedJob, *options: str) -> int:
    command = ["plans", "apply", JOB, "--flink", NAMED, "--observe", "0", "--timeout", "1"]
    return run([*command, "--workspace", job.workspace.url, *options])


def written(folder: Path) -> str:
    """All that is in files of a folder, and their names."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return "\n".join(f"{path}\n{path.read_bytes().decode(errors='replace')}" for path in files)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bearer", "oauth"])
def test_one_file_serves_both_and_no_secret_is_written(
    job: OperatedJob, flink: Any, proxy: TlsProxy, made: Certificate, connect: Connect, tmp_path: Path, kind: str,
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    caplog.set_level(logging.DEBUG)
    with Issuer(made, "sluice", SECRET) as issuer:
        secrets = [SECRET]
        if kind == "oauth":
            connect(login="sluice", password=SECRET, extra={"token_url": f"{issuer.url}/token"})
            secrets += [f"token-{number}" for number in range(1, 9)]
            proxy.wanted = "Bearer token-1"
        else:
            connect(password=SECRET)
        key, rehearsal = rehearse(job.workspace, JOB, 1)
        assert rehearsal.flink_url == NAMED
        proxy.wanted = "Bearer token-2" if kind == "oauth" else proxy.wanted
        apply_rehearsed(job.workspace, key, None)
        assert len(flink.put_bodies) == 1
        proxy.wanted = "Bearer token-3" if kind == "oauth" else proxy.wanted
        assert applied(job, "--json") == 0
        proxy.wanted = "Bearer token-4" if kind == "oauth" else proxy.wanted
        assert applied(job, "--dry-run") == 0
        proxy.wanted = "Bearer another"
        assert applied(job) == 1
    assert [one.outcome for one in recorded(job.workspace, JOB, 1)] == ["applied", "unchanged"]
    out, err = capsys.readouterr()
    everything = out + err + caplog.text + written(tmp_path)
    assert "my_flink" in everything and proxy.url in everything
    assert [secret for secret in secrets if secret in everything] == []


def test_an_account_that_may_only_read_is_named_and_nothing_is_changed(
    job: OperatedJob, flink: Any, proxy: TlsProxy, connect: Connect, capsys: pytest.CaptureFixture[str]
) -> None:
    connect(password=SECRET)
    proxy.read_only = True
    assert applied(job) == 1
    said = capsys.readouterr().err
    assert "refuses access to PUT" in said and "the token of the connection my_flink has no right to this" in said
    assert "nothing was changed" in said and "restoring" not in said and SECRET not in said
    key, _ = rehearse(job.workspace, JOB, 1)
    with pytest.raises(SluiceError, match="grant it there, or use other credentials; nothing was changed"):
        apply_rehearsed(job.workspace, key, None)
    assert flink.put_bodies == [] and set(proxy.methods) == {"GET"}
    assert [one.outcome for one in recorded(job.workspace, JOB, 1)] == ["rolled-back", "rolled-back"]


def test_credentials_that_expire_before_the_change_are_refused_and_later_ones_are_rolled_back(
    job: OperatedJob, flink: Any, proxy: TlsProxy, connect: Connect, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once Flink has accepted the change, what it does is unknown without access: that is a failure, and said so."""
    connect(password=SECRET)
    flink.after_put = lambda: setattr(proxy, "expired", True)
    assert applied(job) == 1
    said = capsys.readouterr().err
    assert "has expired; get a new one" in said and "nothing was changed" not in said
    assert len(flink.put_bodies) == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ca_file": None}, "of no authority that is trusted here"),
        ({"ca_file": "/none.pem"}, "the field 'ca_file' of the connection my_flink must name a file"),
        ({"client_certificate": "/none.pem"}, "'client_certificate' and 'client_key' of the connection my_flink"),
    ],
)
def test_a_wrong_certificate_is_explained_before_flink_is_asked(
    job: OperatedJob, proxy: TlsProxy, connect: Connect, capsys: pytest.CaptureFixture[str], changes: Any, message: str
) -> None:
    connect(changes, password=SECRET)
    assert applied(job) in (1, 2)
    said = " ".join(capsys.readouterr().err.split())
    assert message in said and proxy.methods == []


def test_a_token_in_a_variable_is_used_for_applying(
    job: OperatedJob, flink: Any, proxy: TlsProxy, made: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(made.authority))
    monkeypatch.setenv("FLINK_TOKEN", SECRET)
    assert applied(job, "--flink", proxy.url, "--token-variable", "FLINK_TOKEN") == 0
    assert len(flink.put_bodies) == 1
