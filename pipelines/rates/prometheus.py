"""A source rate from Prometheus: the result of an instant query, its series summed."""

import math
from typing import Any, Final

from flink_client.metrics.prometheus_api import Prometheus
from models.errors import SluiceError
from models.scaling.decisions.overload import SourceReading
from pipelines.inputs.operations.operations import PrometheusRates
from pipelines.rates.reading import RateUnknown

_MOST_BYTES: Final = 4 * 2**20
"""Largest answer, bytes; a rate takes a few hundred."""


def read_from_prometheus(origin: PrometheusRates, timeout_s: float) -> SourceReading:
    """Read once. Raises RateUnknown."""
    try:
        with Prometheus(
            origin.url, timeout_s=timeout_s, token_variable=origin.token_variable, most_bytes=_MOST_BYTES
        ) as prometheus:
            return SourceReading(_sum_of(prometheus.query(origin.query)))
    except (SluiceError, OSError) as error:
        raise RateUnknown(f"{error!s:.500}") from None
    except Exception as error:  # invalid answers may fail anywhere in the client, but must not stop the following
        raise RateUnknown(
            f"Prometheus at {origin.url} answers with something other than a rate ({type(error).__name__}: {error!s:.200}); "
            f"check the address and the query"
        ) from None


def _sum_of(result: Any) -> float:
    """The sum of a vector `[{"metric": {}, "value": [time, "12.5"]}, ...]`, or a scalar `[time, "12.5"]`."""
    if not isinstance(result, list) or not result:
        raise RateUnknown("the query's result is empty; check that the metric exists")
    if not isinstance(result[0], dict):
        return _number(result)
    return math.fsum(_number(series["value"]) for series in result)


def _number(value: Any) -> float:
    _time, text = value
    return float(text)
