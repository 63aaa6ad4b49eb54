"""Credentials as a header, for clients that are not httpx's."""

from pathlib import Path

import pytest

from answering.tls_proxy import Issuer, certificate
from flink_client.access.connection import connection_of
from flink_client.access.header import authorization_of
from flink_client.access.server import access_by
from models.errors import InvalidInput, SluiceError


def _header(**fields: object) -> str | None:
    header = authorization_of(access_by(connection_of("x", {"host": "https://h", **fields})))
    return None if header is None else header()


def test_a_token_is_bearer_and_a_password_basic() -> None:
    assert _header() is None
    assert _header(password="t0ken") == "Bearer t0ken"
    # RFC 7617, section 2: user-id "Aladdin" and password "open sesame".
    assert _header(login="Aladdin", password="open sesame") == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="
    with pytest.raises(InvalidInput, match="must hold a bearer token, which is ASCII without spaces"):
        _header(password="a token")


def test_a_client_of_an_authorization_server_gets_a_token_and_a_new_one_when_it_expires(tmp_path: Path) -> None:
    made = certificate(tmp_path)
    for expires_in, second in ((3600, "Bearer token-1"), (1, "Bearer token-2")):
        with Issuer(made, "sluice", "s3cr3t", expires_in=expires_in) as issuer:
            extra = {"token_url": issuer.url, "ca_file": str(made.authority)}
            fields = {"host": "https://h", "login": "sluice", "password": "s3cr3t", "extra": extra}
            header = authorization_of(access_by(connection_of("x", fields)))
            assert header is not None and header() == "Bearer token-1"
            assert header() == second
            wrong = authorization_of(access_by(connection_of("x", fields | {"password": "wr0ng"})))
            assert wrong is not None
            with pytest.raises(SluiceError, match="correct login, password and scope of the connection x") as refused:
                wrong()
            assert "wr0ng" not in str(refused.value)
