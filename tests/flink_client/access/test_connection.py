"""Airflow's notations of a connection, and what a connection means for a server."""

import json

import pytest

from flink_client.access.connection import NamedConnection, connection_text, read_connection
from flink_client.access.credentials import BearerToken, ClientCredentials, NoCredentials, UserPassword
from flink_client.access.lookup import ConnectionUnknown, find_connection
from flink_client.access.server import ServerAccess, access_by, server_access
from models.errors import InvalidInput

SECRET = "s3cr3t/&? value"
OF_HTTPS = {"conn_type": "sluice_flink", "host": "https://flink.example", "port": 8081}


def read(**fields: object) -> NamedConnection:
    return read_connection("my_flink", json.dumps(fields), "the test")


def access(**fields: object) -> ServerAccess:
    return access_by(read(**{**OF_HTTPS, **fields}))


@pytest.mark.parametrize(
    "text", [f'{{"password": "{SECRET}"', SECRET, f'{{"extra": "{SECRET}"}}', '{"port": "s3cr3t"}']
)
def test_what_cannot_be_read_is_not_quoted(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"^the variable X must hold a connection as JSON") as said:
        read_connection("x", text, "the variable X")
    assert "s3cr3t" not in str(said.value)
    assert said.value.__cause__ is None and said.value.__suppress_context__


def test_a_connection_is_read_again_from_its_text() -> None:
    full = read(**OF_HTTPS, schema="https", login="ada", password=SECRET, extra={"scope": "flink", "flag": True})
    for one in (full, read(**OF_HTTPS)):
        assert read_connection("my_flink", connection_text(one), "the test") == one


def test_secrets_are_in_no_repr() -> None:
    of_all_kinds = [
        access(password=SECRET),
        access(login="ada", password=SECRET),
        access(login="sluice", password=SECRET, extra={"token_url": "https://issuer/token"}),
        access(extra={"client_certificate": "/c.pem", "client_key_password": SECRET}),
        read(**OF_HTTPS, extra={"client_key_password": SECRET}, password=SECRET),
    ]
    for one in of_all_kinds:
        assert SECRET not in repr(one) and SECRET not in str(one)


def test_the_credentials_follow_from_what_is_filled_in() -> None:
    assert access().credentials == NoCredentials()
    assert isinstance(access(password="t").credentials, BearerToken)
    assert isinstance(access(login="ada", password="p").credentials, UserPassword)
    client = access(login="sluice", password="p", extra={"token_url": "https://i/token/", "scope": "flink"}).credentials
    assert isinstance(client, ClientCredentials)
    assert (client.token_url, client.client, client.scope) == ("https://i/token", "sluice", "flink")


@pytest.mark.parametrize(
    ("host", "port", "schema", "url"),
    [
        ("https://h", 8081, "", "https://h:8081"),
        ("https://h:8081/flink/", 8081, "", "https://h:8081/flink"),
        ("https://h/flink", 8081, "", "https://h:8081/flink"),
        ("h", 8081, "https", "https://h:8081"),
        ("http://h", None, "http", "http://h"),
    ],
)
def test_the_address_is_made_of_host_port_and_schema(host: str, port: int | None, schema: str, url: str) -> None:
    assert access(host=host, port=port, schema=schema).url == url


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"host": "h"}, "must have an address such as https://flink.example:8081 as its host"),
        ({"host": ""}, "must have an address such as"),
        ({"host": "http://h", "schema": "https"}, "two schemes"),
        ({"host": "https://me:pw@h"}, "must not hold a user or a password"),
        ({"login": "ada"}, "has a login, but no password"),
        ({"extra": {"token_url": "https://i"}, "login": "ada"}, "its password the client's secret"),
        (
            {"extra": {"token_url": "i"}, "login": "ada", "password": "p"},
            "token_url of the connection my_flink is no address",
        ),
        ({"extra": {"client_key": "/k"}}, "names a key, but no certificate"),
        ({"extra": {"ca-file": "/k"}}, "extra fields that are not known: 'ca-file'; known are ca_file"),
        ({"extra": {"ca_file": 7}}, "must be text"),
    ],
)
def test_a_connection_that_is_incomplete_is_explained(fields: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        access(**fields)


def test_extra_fields_of_other_types_of_connections_are_no_concern() -> None:
    assert access(conn_type="http", extra={"timeout": "3"}).url == "https://flink.example:8081"


@pytest.mark.parametrize("variable", ["AIRFLOW_CONN_MY_FLINK", "AIRFLOW_CONN_MY-FLINK"])
def test_a_name_is_found_in_the_environment(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "sluice-flink://https://:t0ken@h:8081")
    found = server_access("connection:my-flink")
    assert (found.url, found.connection) == ("https://h:8081", "my-flink")
    assert isinstance(found.credentials, BearerToken)
    with pytest.raises(
        InvalidInput, match="in the connection my-flink or in the environment variable TOKEN, but not in both"
    ):
        server_access("connection:my-flink", "TOKEN")


def test_a_name_that_is_unknown_is_explained() -> None:
    with pytest.raises(
        ConnectionUnknown, match=r"no connection 'my-flink'; .* environment variable AIRFLOW_CONN_MY_FLINK"
    ):
        find_connection("my-flink")


def test_a_password_in_a_url_of_the_command_line_is_not_part_of_the_address() -> None:
    found = server_access("http://ada:s3cr3t@h:8081/")
    assert found.url == found.shown == "http://h:8081"
    assert isinstance(found.credentials, UserPassword) and found.credentials.user == "ada"
    assert "s3cr3t" not in repr(found)
