"""What Prometheus has scraped of a running job, as if it had been watched."""

from flink_client.metrics.prometheus_api import Prometheus
from flink_client.metrics.scraped import scraped_counts
from flink_client.metrics.surroundings import surroundings
from flink_client.rest import FlinkRest
from pipelines.observe.watching import Watched

_TIMEOUT_S = 60.0


def scraped(rest: FlinkRest, job: str, seconds: float, url: str, token_variable: str | None = None) -> Watched:
    """The readings of the last seconds; nothing is waited for.

    Args:
        url: of Prometheus.
        token_variable: environment variable that holds a bearer token for it.

    Raises:
        NotRunning: the job has ended.
        SluiceError: Flink or Prometheus does not answer, or nothing was scraped.
    """
    with Prometheus(url, timeout_s=_TIMEOUT_S, token_variable=token_variable) as prometheus:
        found = scraped_counts(prometheus, rest, job, seconds)
    began_s = found.readings[0].time_s
    watched = Watched(job, list(found.readings))
    watched.about = surroundings(
        rest,
        job,
        found.readings[-1],
        lag_by_broker=False,
        failures=[one.cause for one in rest.failures(job) if one.time_ms / 1000 >= began_s],
    )
    if found.missing:
        watched.gaps.append(
            f"Prometheus does not scrape {', '.join(found.missing[:5])}, so that what tasks did there is unknown"
        )
    return watched
