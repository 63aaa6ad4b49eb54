"""Prometheus' HTTP API: instant queries (https://prometheus.io/docs/prometheus/latest/querying/api/#instant-queries)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from flink_client.access.http import MOST_BYTES, http_client
from flink_client.access.refusals import refusal, without_secrets
from flink_client.access.server import server_access
from flink_client.access.trust import tls_fault
from models.closing import Closing
from models.errors import SluiceError


class Prometheus(Closing):
    """One server; close it, or use it as a context."""

    def __init__(
        self, address: str, *, timeout_s: float, token_variable: str | None = None, most_bytes: int = MOST_BYTES
    ) -> None:
        """Arguments as those of `flink_client.access.server.server_access` and `flink_client.access.http.http_client`.

        Raises:
            TokenMissing: the environment variable for the token is not set.
            InvalidInput: there is no such connection, or it cannot be used.
        """
        self._access = server_access(address, token_variable)
        self.url = self._access.url
        self._client = http_client(self._access, timeout_s=timeout_s, most_bytes=most_bytes)

    def query(self, promql: str) -> Any:
        """The `result` of an instant query, in the form of its type: vector, matrix or scalar.

        Raises:
            SluiceError: there is no answer, the query is refused, or the answer is not a query result.
        """
        try:
            answer = self._client.get("/api/v1/query", params={"query": promql})
        except httpx.RequestError as error:
            fault = tls_fault(error, self._access) or f"Prometheus at {self.url} does not answer: {error!s:.300}"
            raise SluiceError(fault) from None
        if answer.status_code != httpx.codes.OK:
            said = without_secrets(answer, self._access, answer.text)[:300]
            raise SluiceError(
                refusal(answer, self._access, said)
                or f"Prometheus at {self.url} refuses the query: status {answer.status_code}, {said}"
            )
        try:
            return answer.json()["data"]["result"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise SluiceError(
                f"Prometheus at {self.url} answers with something other than an instant query's result "
                f"({type(error).__name__}: {error!s:.100}); check the address and the query"
            ) from None

    @contextmanager
    def results(self) -> Iterator[None]:
        """Turn results of another form into a clear error."""
        try:
            yield
        except (KeyError, TypeError, AttributeError, IndexError, ValueError, OverflowError, RecursionError) as error:
            raise SluiceError(
                f"Prometheus at {self.url} gave an unexpected answer ({type(error).__name__}: {error!s:.200}); check "
                "the address"
            ) from error

    def close(self) -> None:
        self._client.close()
