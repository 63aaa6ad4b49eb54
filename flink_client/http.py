"""HTTP clients for Flink and Prometheus: certificates, tokens, redirects, and limits of time and size.

Certificates are verified; the environment variable SSL_CERT_FILE names a private authority, HTTPS_PROXY a proxy. Redirects
are not followed, so that a token is only sent to the given address.
"""

import os
import ssl
import time
from collections.abc import Iterator
from typing import Final

import httpx

from models.errors import InvalidInput, SluiceError

_CERTIFICATES: Final = "SSL_CERT_FILE"
_TRUST: Final = f"name the file of its authority (PEM) in the environment variable {_CERTIFICATES}"
_NOT_YET, _EXPIRED, _OTHER_NAME = 9, 10, (62, 64)
"""OpenSSL's codes of faults of a certificate: X509_V_ERR_..."""
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
        InvalidInput: the certificates that SSL_CERT_FILE names cannot be read.
    """

    def bound(answer: httpx.Response) -> None:
        if isinstance(answer.stream, httpx.SyncByteStream):
            answer.stream = _Bounded(answer.stream, time.monotonic() + timeout_s, most_bytes)

    headers = {} if token_variable is None else {"Authorization": f"Bearer {_token(token_variable)}"}
    try:
        return httpx.Client(
            base_url=url,
            timeout=timeout_s,
            headers=headers,
            follow_redirects=False,
            event_hooks={"response": [bound]},
        )
    except OSError as error:
        raise InvalidInput(
            f"the certificates in {os.environ.get(_CERTIFICATES)!r:.200} cannot be read ({error!s:.200}); the environment "
            f"variable {_CERTIFICATES} must name a file of certificates (PEM)"
        ) from error


def tls_fault(error: BaseException, url: str, trust: str = _TRUST) -> str | None:
    """Why a server could not be trusted, and what to do; None where that was not the fault.

    Args:
        trust: what to do where its authority is not known here.
    """
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__ or cause.__context__
    if cause is None:
        return None
    if not isinstance(cause, ssl.SSLCertVerificationError):
        return f"no secure connection to {url} ({cause.reason or cause}); check that this port speaks TLS"
    if cause.verify_code == _EXPIRED:
        return f"the certificate of {url} has expired; renew it on the server"
    if cause.verify_code == _NOT_YET:
        return f"the certificate of {url} is not valid yet; check the clocks of both machines"
    if cause.verify_code in _OTHER_NAME:
        return (
            f"the certificate of {url} is for another address ({cause.verify_message:.200}); use the one that it names"
        )
    return f"the certificate of {url} is of no authority that is trusted here ({cause.verify_message:.200}); {trust}"


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
