"""Requests to Flink's REST interface, and the errors where it gives no answer, or refuses.

Idempotent requests are repeated when the connection fails or the answer is a server error; others are not.
"""

import time
from collections.abc import Callable, Mapping
from functools import wraps
from http import HTTPStatus
from typing import Any, Concatenate, ParamSpec, TypeVar

import httpx

from flink_client.access.http import http_client
from flink_client.access.refusals import refusal, without_secrets
from flink_client.access.server import server_access
from flink_client.access.trust import tls_fault
from flink_client.rest.answers import flinks_answers, shortened
from flink_client.rest.waiting import PAUSE_S
from models.closing import Closing
from models.errors import SluiceError

P = ParamSpec("P")
T = TypeVar("T")
Rest = TypeVar("Rest", bound="RestTransport")


class Refused(SluiceError):
    """Flink refused the request."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class NoAccess(Refused):
    """What stands before Flink did not let the request through, so that it changed nothing."""


class RestTransport(Closing):
    """Sends requests to the REST interface of one cluster, with the credentials of its connection."""

    def __init__(
        self, address: str, *, timeout_s: float = 30.0, patience_s: float = 10.0, token_variable: str | None = None
    ) -> None:
        """
        Args:
            address: of the JobManager, `http://host:8081` or `connection:NAME`.
            timeout_s: of one answer.
            patience_s: how long a failing request is repeated.
            token_variable: environment variable that holds a bearer token, if a proxy asks for one.

        Raises:
            TokenMissing: that variable is not set.
            InvalidInput: there is no such connection, or it cannot be used.
        """
        self._address, self._token_variable = address, token_variable
        self._access = server_access(address, token_variable)
        self.url = self._access.url
        self.accepted_changes = 0
        """Number of requests other than GET that were accepted."""
        self._timeout_s, self._patience_s = timeout_s, patience_s
        self._client = http_client(self._access, timeout_s=timeout_s)

    def close(self) -> None:
        self._client.close()

    def get(self, path: str) -> Any:
        """The answer to any other GET request."""
        return self._get(path)

    def get_if_there(self, path: str) -> Any | None:
        """The same; None if Flink has nothing of this path: it is of another version, or does not keep it."""
        try:
            return self._get(path)
        except Refused as refused:
            if refused.status != HTTPStatus.NOT_FOUND:
                raise
            return None

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """Send a POST request, once."""
        return self._request("POST", path, json=dict(body), repeat=False)

    def put(self, path: str, body: Mapping[str, Any]) -> None:
        """Send an idempotent PUT request."""
        self._request("PUT", path, json=dict(body))

    def _get(self, path: str, params: Mapping[str, str] | None = None) -> Any:
        return self._request("GET", path, params=params)

    def _request(self, method: str, path: str, *, repeat: bool = True, **content: Any) -> Any:
        until = time.monotonic() + self._patience_s
        while True:
            try:
                answer = self._client.request(method, path, **content)
                if answer.status_code == HTTPStatus.UNAUTHORIZED and self._has_new_credentials():
                    continue
                if answer.status_code < 500 or not repeat or time.monotonic() > until:
                    return self._content(answer, method, path)
            except httpx.TransportError as error:
                if (fault := tls_fault(error, self._access)) is not None:
                    raise SluiceError(fault) from error
                if time.monotonic() > until or not (repeat or isinstance(error, httpx.ConnectError)):
                    raise SluiceError(
                        f"Flink at {self.url} does not answer ({type(error).__name__}: {error}); check that the "
                        f"JobManager runs and the address is right"
                    ) from error
            except httpx.RequestError as error:
                raise SluiceError(
                    f"the answer of Flink at {self.url} cannot be read ({type(error).__name__}: {error!s:.200})"
                ) from error
            time.sleep(PAUSE_S)

    def _has_new_credentials(self) -> bool:
        """Whether the connection has changed since it was read, as when its token was replaced; uses it from now on."""
        access = server_access(self._address, self._token_variable)
        if access == self._access:
            return False
        client = http_client(access, timeout_s=self._timeout_s)
        self._client.close()
        self._access, self.url, self._client = access, access.url, client
        return True

    def _content(self, answer: httpx.Response, method: str, path: str) -> Any:
        if answer.is_success:
            self.accepted_changes += method != "GET"
            with flinks_answers(self.url):
                return answer.json() if answer.content else {}
        try:
            said = shortened("\n".join(answer.json()["errors"]))
        except (ValueError, KeyError, TypeError, RecursionError):
            said = shortened(answer.text)
        if (why := refusal(answer, self._access, said)) is not None:
            raise NoAccess(answer.status_code, why)
        said = without_secrets(answer, self._access, said)
        raise Refused(answer.status_code, f"{said} (Flink's answer {answer.status_code} to {method} {path})")


def typed(ask: Callable[Concatenate[Rest, P], T]) -> Callable[Concatenate[Rest, P], T]:
    """Turn answers of another form into an error."""

    @wraps(ask)
    def asked(rest: Rest, /, *given: P.args, **named: P.kwargs) -> T:
        with flinks_answers(rest.url):
            return ask(rest, *given, **named)

    return asked
