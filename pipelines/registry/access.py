"""The MLflow server that a connection names: its address, and what MLflow's client shows to be let in.

MLflow's client takes credentials of its process, not of a store: a provider by the name in MLFLOW_TRACKING_AUTH, and files of
certificates. So one connection is in force in a process, and no secret is in an environment variable.
"""

import os
import threading
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

import httpx
from requests import PreparedRequest
from requests.auth import AuthBase

from flink_client.access.header import authorization_of
from flink_client.access.http import http_client
from flink_client.access.refusals import refusal, without_secrets
from flink_client.access.server import ServerAccess, server_access
from flink_client.access.trust import context_of, tls_fault
from models.errors import InvalidInput, SluiceError

_PROVIDER: Final = "sluice"
_EXPERIMENTS: Final = "/api/2.0/mlflow/experiments/search"


class _ConnectionAuth(AuthBase):
    """Adds the credentials of a connection to requests to its server, and to no other."""

    def __init__(self, access: ServerAccess) -> None:
        self.access = access
        self._header: Callable[[], str] | None = authorization_of(access)
        self._origin = _origin(access.url)

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        if self._header is not None and _origin(str(request.url)) == self._origin:
            request.headers["Authorization"] = self._header()
        return request


def _origin(url: str) -> tuple[str, str | None, int | None]:
    """Scheme, host and port of a URL (RFC 6454, section 4)."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


class _InForce:
    """The connection of this process, and whether MLflow knows to ask for it."""

    def __init__(self) -> None:
        self.auth: _ConnectionAuth | None = None
        self.registered = False
        self.lock = threading.Lock()


_in_force: Final = _InForce()


def mlflow_access(address: str) -> ServerAccess:
    """How the server of `connection:NAME` is reached.

    Raises:
        InvalidInput: there is no such connection, or MLflow's client cannot use it.
    """
    access = server_access(address)
    identity = access.identity
    if identity is not None and (identity.key is not None or identity.password is not None):
        raise InvalidInput(
            f"MLflow's client takes a certificate and its key from one file, without a password; put both into the file that "
            f"'client_certificate' of the connection {access.connection} names, and leave 'client_key' and "
            "'client_key_password' away"
        )
    return access


def let_in(access: ServerAccess) -> None:
    """Make MLflow's client in this process show the credentials of a connection to its server.

    Raises:
        InvalidInput: a token cannot be sent, or a file of certificates cannot be read.
    """
    context_of(access)  # MLflow's client would say of such a file that the server failed
    with _in_force.lock:
        if _in_force.auth is None or _in_force.auth.access != access:
            _in_force.auth = _ConnectionAuth(access)
        if not _in_force.registered:
            _register()
            _in_force.registered = True
    os.environ["MLFLOW_TRACKING_AUTH"] = _PROVIDER
    if access.authority is not None:
        os.environ["MLFLOW_TRACKING_SERVER_CERT_PATH"] = str(access.authority)
    if access.identity is not None:
        os.environ["MLFLOW_TRACKING_CLIENT_CERT_PATH"] = str(access.identity.certificate)


def without_mlflows_secrets(text: str) -> str:
    """The text without those of the connection in force, should a server have quoted them."""
    return text if _in_force.auth is None else _in_force.auth.access.hidden(text)


def check_mlflow(access: ServerAccess, timeout_s: float) -> None:
    """List one experiment, which takes the right to read.

    Raises:
        SluiceError: the server does not answer, refuses access, or is none of MLflow.
    """
    with http_client(access, timeout_s=timeout_s) as client:
        try:
            answer = client.get(_EXPERIMENTS, params={"max_results": 1})
        except httpx.RequestError as error:
            fault = tls_fault(error, access) or f"MLflow at {access.url} does not answer: {error!s:.300}"
            raise SluiceError(fault) from None
    said = without_secrets(answer, access, answer.text)[:300]
    if answer.status_code != httpx.codes.OK:
        raise SluiceError(
            refusal(answer, access, said)
            or f"MLflow at {access.url} does not list experiments: status {answer.status_code}, {said}"
        )
    try:
        is_mlflow = isinstance(answer.json(), dict)
    except ValueError:
        is_mlflow = False
    if not is_mlflow:
        raise SluiceError(f"{access.shown} does not answer as MLflow does; check the address")


def _register() -> None:
    """By the object that MLflow's own plugins are registered in: an entry point would need an installed package."""
    from mlflow.tracking.request_auth.abstract_request_auth_provider import RequestAuthProvider
    from mlflow.tracking.request_auth.registry import _request_auth_provider_registry

    class ConnectionAuthProvider(RequestAuthProvider):
        def get_name(self) -> str:
            return _PROVIDER

        def get_auth(self) -> AuthBase | None:
            return _in_force.auth

    _request_auth_provider_registry.register(ConnectionAuthProvider)  # type: ignore[no-untyped-call]
