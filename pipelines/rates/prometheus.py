"""A rate from Prometheus: the result of an instant query, its series summed."""

import math
import os
import time
from typing import Any, Final

import requests
from prometheus_api_client import PrometheusConnect
from prometheus_api_client.exceptions import PrometheusApiClientException
from urllib3.util.retry import Retry

from models.operations import PrometheusRates
from pipelines.rates.reading import RateUnknown

_MOST_BYTES: Final = 4 * 2**20
"""Of an answer; a rate takes a few hundred."""


class _Bounded(requests.Session):
    """Gives up on an answer that is endless, or comes in drops: `requests` bounds the wait for each drop alone."""

    def __init__(self, timeout_s: float) -> None:
        super().__init__()
        self._timeout_s = timeout_s

    def request(self, *args: Any, **options: Any) -> requests.Response:
        until = time.monotonic() + self._timeout_s
        answer = super().request(*args, **options | {"stream": True, "allow_redirects": False})
        content = bytearray()
        while piece := answer.raw.read1(65536, decode_content=True):
            content += piece
            if len(content) > _MOST_BYTES or time.monotonic() > until:
                answer.close()
                raise requests.Timeout(f"its answer had no end after {len(content)} bytes")
        answer._content = bytes(content)
        return answer


def read_from_prometheus(origin: PrometheusRates, timeout_s: float) -> float:
    """Ask once. Raises RateUnknown."""
    session = _Bounded(timeout_s)
    try:
        client = PrometheusConnect(
            origin.url, headers=_headers(origin), session=session, retry=Retry(total=0), timeout=timeout_s
        )
        return _sum_of(client.custom_query(origin.query))
    except PrometheusApiClientException as error:
        raise RateUnknown(f"Prometheus at {origin.url} refuses the query: {error!s:.300}") from None
    except (requests.RequestException, OSError) as error:
        raise RateUnknown(f"Prometheus at {origin.url} does not answer: {error!s:.300}") from None
    except Exception as error:  # rubbish can break a client anywhere, and must not break who follows the rate
        raise RateUnknown(
            f"Prometheus at {origin.url} answers something else than an instant query's result "
            f"({type(error).__name__}: {error!s:.200}); check the address and the query"
        ) from None
    finally:
        session.close()


def _headers(origin: PrometheusRates) -> dict[str, str]:
    if origin.token_variable is None:
        return {}
    token = os.environ.get(origin.token_variable)
    if not token:
        raise RateUnknown(f"the environment variable {origin.token_variable} must hold a token, but is not set")
    return {"Authorization": f"Bearer {token}"}


def _sum_of(result: Any) -> float:
    """Of a vector `[{"metric": {}, "value": [time, "12.5"]}, ...]`, or of a scalar `[time, "12.5"]`."""
    if not isinstance(result, list) or not result:
        raise RateUnknown("the query's result is empty; check that the metric exists")
    if not isinstance(result[0], dict):
        return _number(result)
    return math.fsum(_number(series["value"]) for series in result)


def _number(value: Any) -> float:
    _time, text = value
    return float(text)
