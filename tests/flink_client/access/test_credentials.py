"""Flink and Prometheus behind TLS and credentials of each kind: what is let in, and the sentence where it is not."""

import base64
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from answering.server import AnsweringServer
from answering.tls_proxy import Certificate, Issuer, TlsProxy, certificate
from flink_client.metrics.prometheus_api import Prometheus
from flink_client.rest.client import FlinkRest
from flink_client.rest.transport import NoAccess
from models.errors import InvalidInput, SluiceError

SECRET = "s3cr3t-of-this-test"
VARIABLE = "AIRFLOW_CONN_MY_FLINK"


@pytest.fixture(autouse=True)
def no_other_authority(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return certificate(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def another(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return certificate(tmp_path_factory.mktemp("another-authority"))


@pytest.fixture
def flink() -> Iterator[AnsweringServer]:
    with AnsweringServer(lambda request, _body: (200, {"flink-version": "2.3.0", "data": {"result": []}})) as server:
        yield server


Connect = Callable[..., None]


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch, made: Certificate) -> Connect:
    """Sets the connection my_flink."""

    def connect(server: AnsweringServer, *, extra: dict[str, Any] | None = None, **fields: Any) -> None:
        extra = {"ca_file": str(made.authority), **(extra or {})}
        monkeypatch.setenv(
            VARIABLE, json.dumps({"conn_type": "sluice_flink", "host": server.url, "extra": extra, **fields})
        )

    return connect


def asked() -> str:
    """Flink's version; the patience is long, since a refusal must be reported at once."""
    with (
        FlinkRest("connection:my_flink", patience_s=600.0) as rest,
        Prometheus("connection:my_flink", timeout_s=60) as other,
    ):
        other.query("up")
        return rest.flink_version()


def test_a_token_and_a_user_are_let_in(flink: AnsweringServer, made: Certificate, connect: Connect) -> None:
    with TlsProxy(flink.url, made, SECRET) as server:
        connect(server, password=SECRET)
        assert asked() == "2.3.0"
        assert server.methods == ["GET", "GET"]
    basic = "Basic " + base64.b64encode(f"ada:{SECRET}".encode()).decode()
    with TlsProxy(flink.url, made, authorization=basic) as server:
        connect(server, login="ada", password=SECRET)
        assert asked() == "2.3.0"
        connect(server, login="ada", password="an-old-one")
        with pytest.raises(
            SluiceError, match=r"refuses access \(401.* the user 'ada' with the password of the connection my_flink"
        ):
            asked()


def test_only_the_connections_own_authority_is_trusted(
    flink: AnsweringServer, made: Certificate, another: Certificate, connect: Connect, tmp_path: Path
) -> None:
    with TlsProxy(flink.url, made, SECRET) as server:
        for authority in (str(another.authority), None):
            connect(server, password=SECRET, extra={"ca_file": authority})
            with pytest.raises(
                SluiceError,
                match=r"of no authority that is trusted here .* the field 'ca_file' of the connection my_flink",
            ):
                asked()
        connect(server, password=SECRET, extra={"ca_file": str(tmp_path / "none.pem")})
        with pytest.raises(
            InvalidInput, match=r"none\.pem' cannot be read .* the field 'ca_file' of the connection my_flink"
        ):
            asked()
        assert server.methods == []


def test_a_client_certificate_is_shown(
    flink: AnsweringServer, made: Certificate, another: Certificate, connect: Connect
) -> None:
    with TlsProxy(flink.url, made, asks_for_certificate=True) as server:
        own = {"client_certificate": str(made.client), "client_key": str(made.client_key)}
        connect(server, extra=own)
        assert asked() == "2.3.0"
        connect(server)
        with pytest.raises(SluiceError, match=r"asks for a certificate of the client .* 'client_certificate'"):
            asked()
        connect(server, extra={"client_certificate": str(another.client), "client_key": str(another.client_key)})
        with pytest.raises(SluiceError, match=r"does not accept the certificate .*client\.pem.* 'client_certificate'"):
            asked()
        connect(server, extra={**own, "client_key": str(another.client_key)})
        with pytest.raises(InvalidInput, match=r"cannot be used \(KEY_VALUES_MISMATCH\)"):
            asked()
        assert server.methods == ["GET", "GET"]


def test_a_token_that_expired_is_said_to_have_expired(
    flink: AnsweringServer, made: Certificate, connect: Connect
) -> None:
    with TlsProxy(flink.url, made, SECRET) as server:
        server.expired = True
        connect(server, password=SECRET)
        with pytest.raises(
            SluiceError, match="the token of the connection my_flink has expired; get a new one"
        ) as said:
            asked()
        assert "\n" not in str(said.value)


def test_a_token_that_was_replaced_is_read_again(flink: AnsweringServer, made: Certificate, connect: Connect) -> None:
    with TlsProxy(flink.url, made, SECRET) as server:
        connect(server, password=SECRET)
        with FlinkRest("connection:my_flink", patience_s=0.0) as rest:
            assert rest.flink_version() == "2.3.0"
            server.wanted = "Bearer the-next-one"
            with pytest.raises(NoAccess, match="is not accepted there"):
                rest.flink_version()
            connect(server, password="the-next-one")
            assert rest.flink_version() == "2.3.0"


def test_an_account_that_may_only_read_changes_nothing(
    flink: AnsweringServer, made: Certificate, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    """The server quotes the token in its answer; the message does not."""
    caplog.set_level(logging.DEBUG)
    with TlsProxy(flink.url, made, SECRET) as server:
        server.read_only = True
        connect(server, password=SECRET)
        with FlinkRest("connection:my_flink", patience_s=600.0) as rest:
            assert rest.flink_version() == "2.3.0"
            with pytest.raises(
                NoAccess,
                match=r"refuses access to PUT /jobs/1/resource-requirements \(403: read only: Bearer \*\*\*\); the token of "
                "the connection my_flink has no right to this: grant it there",
            ):
                rest.put("/jobs/1/resource-requirements", {})
            assert rest.accepted_changes == 0
        assert server.methods == ["GET"]
    assert SECRET not in caplog.text


class TestOAuth:
    """Client credentials of an authorization server."""

    @pytest.fixture
    def issuer(self, made: Certificate) -> Iterator[Issuer]:
        with Issuer(made, "sluice", SECRET) as server:
            yield server

    @staticmethod
    def fields(issuer: Issuer, **changes: Any) -> dict[str, Any]:
        given = {
            "login": "sluice",
            "password": SECRET,
            "extra": {"token_url": f"{issuer.url}/token", "scope": "flink read"},
        }
        return {**given, **changes}

    def test_a_token_is_fetched_once_and_kept(
        self, flink: AnsweringServer, made: Certificate, issuer: Issuer, connect: Connect
    ) -> None:
        with TlsProxy(flink.url, made, "token-1") as server, opened(connect, server, self.fields(issuer)) as rest:
            assert [rest.flink_version() for _ in range(3)] == ["2.3.0"] * 3
        assert issuer.given == 1
        assert issuer.asked == [{"grant_type": ["client_credentials"], "scope": ["flink read"]}]

    def test_a_token_that_was_revoked_is_replaced_once(
        self, flink: AnsweringServer, made: Certificate, issuer: Issuer, connect: Connect
    ) -> None:
        with TlsProxy(flink.url, made, "token-1") as server, opened(connect, server, self.fields(issuer)) as rest:
            assert rest.flink_version() == "2.3.0"
            server.wanted = "Bearer token-2"
            assert rest.flink_version() == "2.3.0"
            server.wanted = "Bearer of-another-issuer"
            with pytest.raises(
                NoAccess, match=r"a new token of .*/token for the client 'sluice' is not accepted there"
            ):
                rest.flink_version()
        assert issuer.given == 3

    def test_a_token_that_expires_is_renewed_before(
        self, flink: AnsweringServer, made: Certificate, connect: Connect
    ) -> None:
        """Tokens that are valid for less than the margin are fetched for each request."""
        with (
            Issuer(made, "sluice", SECRET, expires_in=5) as issuer,
            TlsProxy(flink.url, made, "token-1") as server,
            opened(connect, server, self.fields(issuer)) as rest,
        ):
            assert rest.flink_version() == "2.3.0"
            server.wanted = "Bearer token-2"
            assert rest.flink_version() == "2.3.0"
        assert issuer.given == 2

    def test_a_client_that_is_refused_is_explained_without_its_secret(
        self, flink: AnsweringServer, made: Certificate, issuer: Issuer, connect: Connect
    ) -> None:
        with TlsProxy(flink.url, made, "token-1") as server:
            connect(server, **self.fields(issuer, password="an-old-one"))
            with pytest.raises(
                SluiceError,
                match=r"/token gives no token to the client 'sluice' \(invalid_client.*correct login, password",
            ) as said:
                asked()
            assert "an-old-one" not in str(said.value)
            assert server.methods == []

    @pytest.mark.parametrize("content", ["<html>", [], {"access_token": ""}, {}])
    def test_an_address_that_is_no_token_endpoint_is_explained(
        self, flink: AnsweringServer, made: Certificate, connect: Connect, content: object
    ) -> None:
        with AnsweringServer(lambda request, _body: (200, content)) as other:
            connect(flink, login="sluice", password=SECRET, extra={"token_url": other.url})
            with pytest.raises(SluiceError, match="does not answer as a token endpoint does; check the token_url"):
                asked()
        connect(flink, login="sluice", password=SECRET, extra={"token_url": other.url})
        with pytest.raises(SluiceError, match=r"does not answer .* check the token_url of the connection my_flink"):
            asked()

    def test_an_issuer_of_another_authority_is_not_sent_the_secret(
        self, flink: AnsweringServer, another: Certificate, connect: Connect
    ) -> None:
        with Issuer(another, "sluice", SECRET) as issuer:
            connect(flink, **self.fields(issuer))
            with pytest.raises(SluiceError, match=r"the certificate of .* is of no authority that is trusted here"):
                asked()
            assert issuer.asked == []


def opened(connect: Connect, server: AnsweringServer, fields: dict[str, Any]) -> FlinkRest:
    connect(server, **fields)
    return FlinkRest("connection:my_flink", patience_s=0.0)


@pytest.mark.parametrize("token", ["two words", "line\nbreak", "ümlaut"])
def test_a_token_that_cannot_be_sent_is_not_quoted(
    flink: AnsweringServer, connect: Connect, monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    connect(flink, password=token)
    with pytest.raises(InvalidInput, match="the password of the connection my_flink must hold a bearer token") as said:
        asked()
    monkeypatch.setenv("FLINK_TOKEN", token)
    with pytest.raises(InvalidInput, match="FLINK_TOKEN must hold a bearer token") as also:
        FlinkRest(flink.url, token_variable="FLINK_TOKEN")
    assert token not in str(said.value) + str(also.value)
