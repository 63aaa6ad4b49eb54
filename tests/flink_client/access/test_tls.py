"""Flink behind a proxy that speaks TLS and asks for a token: what is passed on, and what is said where it is not."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from answering.server import AnsweringServer
from answering.tls_proxy import Certificate, TlsProxy, certificate
from flink_client.metrics.prometheus_api import Prometheus
from flink_client.rest.client import FlinkRest
from models.errors import InvalidInput, SluiceError

TOKEN = "a-token-of-this-test"


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("FLINK_TOKEN", TOKEN)


def flink() -> AnsweringServer:
    return AnsweringServer(lambda request, _body: (200, {"flink-version": "2.3.0"}))


def asked(url: str, variable: str | None = "FLINK_TOKEN") -> str:
    # A fault of TLS or of the token is no matter of patience: it must be said at once.
    with FlinkRest(url, patience_s=600.0, token_variable=variable) as rest:
        return rest.flink_version()


@pytest.fixture
def proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., AbstractContextManager[TlsProxy]]:
    """A proxy before a Flink, whose authority is trusted."""

    def made(of: Certificate | None = None) -> AbstractContextManager[TlsProxy]:
        of = of or certificate(tmp_path)
        monkeypatch.setenv("SSL_CERT_FILE", str(of.authority))
        return TlsProxy(flink().url, of, TOKEN)

    return made


def test_a_trusted_server_is_asked_with_the_token(proxy: Callable[..., AbstractContextManager[TlsProxy]]) -> None:
    with proxy() as server:
        assert asked(server.url) == "2.3.0"
        assert server.methods == ["GET"]


def test_an_authority_that_is_unknown_is_named_with_the_setting(
    proxy: Callable[..., AbstractContextManager[TlsProxy]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with proxy() as server:
        monkeypatch.delenv("SSL_CERT_FILE")
        with pytest.raises(SluiceError, match=r"of no authority that is trusted here .* SSL_CERT_FILE") as said:
            asked(server.url)
        assert server.url in str(said.value)
        with pytest.raises(SluiceError, match="SSL_CERT_FILE"), Prometheus(server.url, timeout_s=60.0) as prometheus:
            prometheus.query("up")
        assert server.methods == []


@pytest.mark.parametrize(
    ("days", "address", "message"),
    [
        ((-3, -1), "127.0.0.1", "has expired; renew it"),
        ((1, 3), "127.0.0.1", "is not valid yet; check the clocks"),
        ((-1, 1), "10.0.0.7", "is for another address"),
    ],
)
def test_a_certificate_that_is_not_valid_is_explained(
    proxy: Callable[..., AbstractContextManager[TlsProxy]],
    tmp_path: Path,
    days: tuple[int, int],
    address: str,
    message: str,
) -> None:
    with proxy(certificate(tmp_path, days=days, address=address)) as server, pytest.raises(SluiceError, match=message):
        asked(server.url)


def test_a_token_that_is_refused_or_missing_is_named_and_not_shown(
    proxy: Callable[..., AbstractContextManager[TlsProxy]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with proxy() as server:
        monkeypatch.setenv("FLINK_TOKEN", "an-old-one")
        with pytest.raises(
            SluiceError, match=r"refuses access \(401.* the token in FLINK_TOKEN is not accepted"
        ) as said:
            asked(server.url)
        assert "an-old-one" not in str(said.value)
        with pytest.raises(SluiceError, match=r"refuses access \(401.*--token-variable"):
            asked(server.url, None)
        monkeypatch.delenv("FLINK_TOKEN")
        with pytest.raises(SluiceError, match="environment variable FLINK_TOKEN must hold a token"):
            asked(server.url)


def test_a_page_to_log_in_is_recognised() -> None:
    def redirects(request: object, _body: bytes) -> None:
        request.send_response(302)  # type: ignore[attr-defined]
        request.send_header("Location", "https://login.example/")  # type: ignore[attr-defined]
        request.send_header("Content-Length", "0")  # type: ignore[attr-defined]
        request.end_headers()  # type: ignore[attr-defined]

    with (
        AnsweringServer(redirects) as server,
        pytest.raises(SluiceError, match=r"redirect to 'https://login.example/'"),
    ):
        asked(server.url)


def test_a_port_without_tls_and_a_missing_file_are_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with flink() as plain, pytest.raises(SluiceError, match="check that this port speaks TLS"):
        asked(plain.url.replace("http:", "https:"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    with pytest.raises(InvalidInput, match=r"none\.pem' cannot be read .* SSL_CERT_FILE must name a file"):
        asked("https://127.0.0.1:1")
