"""One HTTP server and how to reach it: from an address of a job's file or of the command line."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from pydantic import SecretStr

from flink_client.access.connection import NamedConnection
from flink_client.access.credentials import (
    BearerToken,
    ClientCredentials,
    Credentials,
    NoCredentials,
    TokenInVariable,
    UserPassword,
)
from flink_client.access.lookup import find_connection
from flink_client.address import checked_url, connection_name
from models.errors import InvalidInput

CONNECTION_TYPES: Final = ("sluice_flink", "sluice_prometheus", "sluice_mlflow", "sluice_kubernetes")
"""Airflow's types of connections whose extra fields are these alone."""
EXTRA_FIELDS: Final = ("ca_file", "client_certificate", "client_key", "client_key_password", "token_url", "scope")


@dataclass(frozen=True)
class Identity:
    """A client's certificate and its key (PEM)."""

    certificate: Path
    key: Path | None = None
    """None: in the file of the certificate."""
    password: SecretStr | None = None
    """Of the key."""


@dataclass(frozen=True)
class ServerAccess:
    """A server's URL, whom to trust for it, and what to show it."""

    url: str
    connection: str | None = None
    """Name of the connection that this comes from."""
    authority: Path | None = None
    """The only authority that is trusted for it (PEM); None: those of the machine, or of SSL_CERT_FILE."""
    identity: Identity | None = None
    credentials: Credentials = field(default_factory=NoCredentials)

    @property
    def shown(self) -> str:
        """For messages."""
        return self.url if self.connection is None else f"{self.url} (connection {self.connection})"

    def hidden(self, text: str) -> str:
        """The text without these secrets, should a server have quoted them."""
        key = self.identity.password if self.identity else None
        for secret in (*self.credentials.secrets, key.get_secret_value() if key else ""):
            text = text.replace(secret, "***") if secret else text
        return text


def server_access(address: str, token_variable: str | None = None) -> ServerAccess:
    """Resolve an address.

    Args:
        address: a URL, or `connection:NAME`.
        token_variable: environment variable with a bearer token, for a URL.

    Raises:
        TokenMissing: that variable is not set.
        ConnectionUnknown: there is no such connection.
        InvalidInput: the connection is incomplete or contradicts itself.
    """
    name = connection_name(address)
    if name is None:
        url, credentials = _without_user(address.rstrip("/"))
        return ServerAccess(url, credentials=credentials if token_variable is None else _of_variable(token_variable))
    if token_variable is not None:
        raise InvalidInput(
            f"credentials are in the connection {name} or in the environment variable {token_variable}, but not in both; "
            f"leave one of them away"
        )
    return access_by(find_connection(name))


def access_by(connection: NamedConnection) -> ServerAccess:
    """How a connection says that its server is reached.

    Raises:
        InvalidInput: it is incomplete or contradicts itself.
    """
    if connection.kind in CONNECTION_TYPES and (unknown := sorted(set(connection.extra) - set(EXTRA_FIELDS))):
        raise InvalidInput(
            f"the connection {connection.name} has extra fields that are not known: {', '.join(map(repr, unknown[:5])):.200}; "
            f"known are {', '.join(EXTRA_FIELDS)}"
        )
    authority = connection.text("ca_file")
    return ServerAccess(
        url=_url(connection),
        connection=connection.name,
        authority=Path(authority) if authority else None,
        identity=_identity(connection),
        credentials=_credentials(connection),
    )


def _without_user(url: str) -> tuple[str, Credentials]:
    """User and password of a URL of the command line apart, since the URL is shown and stored."""
    parts = urlsplit(url)
    if parts.username is None:
        return url, NoCredentials()
    shown = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    return shown, UserPassword("the address", unquote(parts.username), SecretStr(unquote(parts.password or "")))


def _of_variable(variable: str) -> Credentials:
    credentials = TokenInVariable(variable)
    credentials.token()  # it is said at once that it is missing
    return credentials


def _url(connection: NamedConnection) -> str:
    host = connection.host
    if "://" not in host:
        if not host or connection.schema not in ("http", "https"):
            raise InvalidInput(
                f"the connection {connection.name} must have an address such as https://flink.example:8081 as its host, or "
                f"'https' or 'http' as its schema; correct it"
            )
        host = f"{connection.schema}://{host}"
    elif connection.schema and connection.schema != host.partition("://")[0]:
        raise InvalidInput(
            f"the connection {connection.name} states two schemes, in its host and in its schema; empty its schema"
        )
    scheme, _, rest = host.partition("://")
    server, slash, path = rest.partition("/")
    if connection.port is not None and not server.endswith(f":{connection.port}"):
        server = f"{server}:{connection.port}"
    try:
        return checked_url(f"{scheme}://{server}{slash}{path}")
    except ValueError as error:
        raise InvalidInput(f"the host of the connection {connection.name} is no address: {error}") from None


def _identity(connection: NamedConnection) -> Identity | None:
    certificate, key = connection.text("client_certificate"), connection.text("client_key")
    if not certificate:
        if key:
            raise InvalidInput(
                f"the connection {connection.name} names a key, but no certificate; add 'client_certificate' to its extra "
                f"fields, or leave 'client_key' away"
            )
        return None
    return Identity(Path(certificate), Path(key) if key else None, connection.secret("client_key_password"))


def _credentials(connection: NamedConnection) -> Credentials:
    name, login, password = connection.name, connection.login, connection.password
    if token_url := connection.text("token_url"):
        if not (login and password):
            raise InvalidInput(
                f"the connection {name} has a token_url, so its login must be the id of an OAuth client and its password "
                f"the client's secret; add what is missing"
            )
        try:
            checked = checked_url(token_url)
        except ValueError as error:
            raise InvalidInput(f"the token_url of the connection {name} is no address: {error}") from None
        return ClientCredentials(name, checked, login, password, connection.text("scope"))
    if login and password is None:
        raise InvalidInput(f"the connection {name} has a login, but no password; add it, or empty the login")
    if password is None:
        return NoCredentials()
    return UserPassword(f"the connection {name}", login, password) if login else BearerToken(name, password)
