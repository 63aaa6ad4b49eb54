"""HTTP clients for Flink and Prometheus: certificates, credentials, redirects, and limits of time and size.

Certificates are verified; the environment variable SSL_CERT_FILE names a private authority, HTTPS_PROXY a proxy. Redirects
are not followed, so that credentials are only sent to the given address.
"""

import time
from collections.abc import Generator, Iterator
from typing import Final

import httpx

from flink_client.access.credentials import BearerToken, ClientCredentials, TokenInVariable, UserPassword
from flink_client.access.header import client_tokens
from flink_client.access.server import ServerAccess
from flink_client.access.trust import context_of

MOST_BYTES: Final = 64 * 2**20
"""Default size limit of an answer: the metrics of a job with thousands of tasks take a tenth of it."""


def http_client(access: ServerAccess, *, timeout_s: float, most_bytes: int = MOST_BYTES) -> httpx.Client:
    """A client of one server; close it.

    Args:
        access: paths of requests are relative to its URL.
        timeout_s: for a connection, for each part of an answer, and for the body of an answer as a whole.

    Raises:
        TokenMissing: the environment variable for the token is not set, or empty.
        InvalidInput: a file of certificates cannot be read.
    """

    def bound(answer: httpx.Response) -> None:
        if isinstance(answer.stream, httpx.SyncByteStream):
            answer.stream = _Bounded(answer.stream, time.monotonic() + timeout_s, most_bytes)

    return httpx.Client(
        base_url=access.url,
        timeout=timeout_s,
        auth=_auth(access),
        verify=context_of(access),
        follow_redirects=False,
        event_hooks={"response": [bound]},
    )


def _auth(access: ServerAccess) -> httpx.Auth | None:
    match access.credentials:
        case TokenInVariable() | BearerToken() as one:
            return _Bearer(one.token())
        case UserPassword(user=user, password=password):
            return httpx.BasicAuth(user, password.get_secret_value())
        case ClientCredentials() as client:
            return client_tokens(access, client)
    return None


class _Bearer(httpx.Auth):
    def __init__(self, token: str) -> None:
        self._token = token

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        request.headers["Authorization"] = f"Bearer {self._token}"
        yield request


class _Bounded(httpx.SyncByteStream):
    """A body with limits of total size and time: httpx's own time limit applies to each chunk alone."""

    def __init__(self, stream: httpx.SyncByteStream, until: float, most_bytes: int) -> None:
        self._stream, self._until, self._most_bytes = stream, until, most_bytes

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        for piece in self._stream:
            size += len(piece)
            if size > self._most_bytes or time.monotonic() > self._until:
                raise httpx.ReadTimeout(f"its answer had no end after {size} bytes")
            yield piece

    def close(self) -> None:
        self._stream.close()
