"""A rate from Flink's REST interface: what the source tasks of a job emit, by Flink's own meters (means of a minute)."""

import math
import re
from typing import Any, Final

from models.errors import SluiceError
from models.operations import FlinkRates
from pipelines.rates.reading import RateUnknown
from testbeds.flink.answers import flinks_answers, graph
from testbeds.flink.rest import FlinkRest
from testbeds.flink.running import find_job, running_job

_METER: Final = "numRecordsOutPerSecond"
_OF_SOURCE: Final = re.compile(rf"\d+\.(Source__.*\.{_METER})")
"""The source's own meter, where others are chained to it."""
_ID: Final = re.compile(r"[0-9a-f]{32}")


def read_from_flink(origin: FlinkRates, job: str, timeout_s: float) -> float:
    """Ask once. Raises RateUnknown."""
    name = origin.job or job
    try:
        with FlinkRest(origin.url, timeout_s=timeout_s, patience_s=0.0) as rest, flinks_answers(origin.url):
            return _emitted(rest, find_job(rest, name, name if _ID.fullmatch(name) else None))
    except RateUnknown:
        raise
    except (SluiceError, OSError) as error:
        raise RateUnknown(f"{error!s:.500}") from None
    except Exception as error:  # rubbish can break a client anywhere, and must not break who follows the rate
        raise RateUnknown(f"{origin.url} answers something else ({type(error).__name__}: {error!s:.200})") from None


def _emitted(rest: FlinkRest, id_: str) -> float:
    running = running_job(rest, id_)
    with_input = {edge.downstream for edge in graph(rest.get(f"/jobs/{id_}/plan")["plan"])[1]}
    sources = [v for v in running.vertices if v.id not in with_input]
    return math.fsum(_of_vertex(rest, id_, v.id, v.name, v.parallelism) for v in sources)


def _of_vertex(rest: FlinkRest, job: str, vertex: str, name: str, tasks: int) -> float:
    own = {m[1] for m in map(_OF_SOURCE.fullmatch, rest.metric_names(job, vertex)) if m}
    names = tuple(sorted(own)) or (_METER,)
    told: list[Any] = rest.vertex_metrics(job, vertex, names, tasks)
    missing = sum(any(meter not in one for meter in names) for one in told)
    if missing:
        raise RateUnknown(f"Flink does not tell {_METER} of {missing} of {tasks} tasks of {name!r} (yet)")
    return math.fsum(one[meter] for one in told for meter in names)
