"""Airflow's connections, as JSON and as URI: one notation for Airflow and for the command line.

The notations are Airflow's (https://airflow.apache.org/docs/apache-airflow/stable/howto/connection.html); this file reads them
where Airflow is not running. No message quotes a value, since any of them may hold a secret.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import SecretStr

from models.errors import InvalidInput

_EXTRA: Final = "__extra__"
"""Airflow's query parameter that holds all of the extra fields as JSON."""


@dataclass(frozen=True)
class NamedConnection:
    """What a connection holds; its password and extra fields are left out of `repr`."""

    name: str
    kind: str = ""
    """Airflow's connection type."""
    host: str = ""
    port: int | None = None
    schema: str = ""
    login: str = ""
    password: SecretStr | None = None
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def text(self, key: str) -> str:
        """An extra field; empty if it is absent.

        Raises:
            InvalidInput: it is no text.
        """
        value = self.extra.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise InvalidInput(f"the extra field {key!r} of the connection {self.name} must be text; correct it")
        return value.strip()

    def secret(self, key: str) -> SecretStr | None:
        """An extra field that must not be shown; None if it is absent or empty."""
        value = self.text(key)
        return SecretStr(value) if value else None


def read_connection(name: str, text: str, origin: str) -> NamedConnection:
    """A connection in one of Airflow's two notations.

    Args:
        origin: where the text comes from, for messages.

    Raises:
        InvalidInput: it is neither.
    """
    try:
        return _of_json(name, text) if text.lstrip().startswith("{") else _of_uri(name, text.strip())
    except InvalidInput:
        raise
    except (ValueError, TypeError, AttributeError, RecursionError):
        # The cause is left out: it quotes what it could not read.
        raise InvalidInput(
            f'{origin} must hold a connection as JSON, such as {{"host": "https://flink.example:8081", "password": "..."}}, '
            f"or as Airflow's URI, but it cannot be read as one; correct it"
        ) from None


def connection_of(name: str, fields: Mapping[str, Any]) -> NamedConnection:
    """A connection from Airflow's fields (`conn_type`, `host`, `port`, `schema`, `login`, `password`, `extra`).

    Raises:
        ValueError, TypeError: a field has another form.
    """
    extra, password = fields.get("extra") or {}, fields.get("password")
    if isinstance(extra, str):
        extra = json.loads(extra)
    port = fields.get("port")
    return NamedConnection(
        name=name,
        kind=_text(fields.get("conn_type")).replace("-", "_"),
        host=_text(fields.get("host")),
        port=int(port) if port not in (None, "") else None,
        schema=_text(fields.get("schema")),
        login=_text(fields.get("login")),
        password=SecretStr(_secret(password)) if password else None,
        extra=dict(extra),
    )


def connection_text(connection: NamedConnection) -> str:
    """The connection as JSON, as `read_connection` reads it. It holds the secrets."""
    password = connection.password
    fields = {
        "conn_type": connection.kind,
        "host": connection.host,
        "port": connection.port,
        "schema": connection.schema,
        "login": connection.login,
        "password": None if password is None else password.get_secret_value(),
        "extra": dict(connection.extra),
    }
    return json.dumps(fields)


def _of_json(name: str, text: str) -> NamedConnection:
    return connection_of(name, json.loads(text))


def _of_uri(name: str, uri: str) -> NamedConnection:
    """`type://login:password@host:port/schema?key=value`, or with a scheme of the host: `type://https://host:port/`."""
    kind, separator, rest = uri.partition("://")
    if not separator:
        raise ValueError
    scheme = rest.partition("://")[0] if "://" in rest.partition("?")[0] else None
    parts = urlsplit(rest if scheme else f"//{rest}")
    host = unquote(parts.hostname or "")
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    return connection_of(
        name,
        {
            "conn_type": kind,
            "host": f"{scheme}://{host}" if scheme and host else host,
            "port": parts.port,
            "schema": unquote(parts.path[1:]),
            "login": unquote(parts.username or ""),
            "password": unquote(parts.password or ""),
            "extra": query.get(_EXTRA, query),
        },
    )


def _text(value: Any) -> str:
    return "" if value is None else _secret(value).strip()


def _secret(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value
