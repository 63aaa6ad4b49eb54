"""HTTP clients for Flink and Prometheus: certificates, tokens, redirects, and limits of time and size.

Certificates are verified; the environment variable SSL_CERT_FILE names a private authority, HTTPS_PROXY a proxy. Redirects
are not followed, so that a token is only sent to the given address.
"""

import os
import time
from collections.abc import Iterator
from typing import Final

import httpx

from models.errors import SluiceError

MOST_BYTES: Final = 64 * 2**20
"""Default size limit of an answer: the metrics of a job with thousands of tasks take a tenth of it."""


class TokenMissing(SluiceError):
    """The environment variable for the token is not set."""


def http_client(
    url: str, *, timeout_s: float, token_variable: str | None = None, most_bytes: int = MOST_BYTES
) -> httpx.Client:
    """A client of one server; close it.

    Args:
        url: paths of requests are relative to it.
        timeout_s: for a connection, for each part of an answer, and for the body of an answer as a whole.
        token_variable: environment variable that holds a bearer token; None: requests carry none.

    Raises:
        TokenMissing: that variable is not set, or empty.
    """

    def bound(answer: httpx.Response) -> None:
        if isinstance(answer.stream, httpx.SyncByteStream):
            answer.stream = _Bounded(answer.stream, time.monotonic() + timeout_s, most_bytes)

    return httpx.Client(
        base_url=url,
        timeout=timeout_s,
        headers={} if token_variable is None else {"Authorization": f"Bearer {_token(token_variable)}"},
        follow_redirects=False,
        event_hooks={"response": [bound]},
    )


def _token(variable: str) -> str:
    token = os.environ.get(variable)
    if not token:
        raise TokenMissing(
            f"the environment variable {variable} must hold a token, but is not set; set it where this runs"
        )
    return token


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
