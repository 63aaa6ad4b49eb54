"""A source rate from Flink's REST interface: the output of the source tasks, and their load."""

import re
from typing import Final

from flink_client.jobs.running import find_job
from flink_client.metrics.sources import read_sources
from flink_client.rest.answers import flinks_answers
from flink_client.rest.client import FlinkRest
from models.errors import SluiceError
from models.scaling.decisions.overload import SourceReading
from pipelines.inputs.operations.operations import FlinkRates
from pipelines.rates.reading import RateUnknown

_ID: Final = re.compile(r"[0-9a-f]{32}")


def read_from_flink(origin: FlinkRates, job: str, timeout_s: float) -> SourceReading:
    """Read once. Raises RateUnknown."""
    name = origin.job or job
    try:
        with FlinkRest(origin.url, timeout_s=timeout_s, patience_s=0.0) as rest, flinks_answers(origin.url):
            return read_sources(rest, find_job(rest, name, name if _ID.fullmatch(name) else None))
    except (SluiceError, OSError) as error:
        raise RateUnknown(f"{error!s:.500}") from None
    except Exception as error:  # invalid answers may fail anywhere in the client, but must not stop the following
        raise RateUnknown(f"{origin.url} gave an invalid answer ({type(error).__name__}: {error!s:.200})") from None
