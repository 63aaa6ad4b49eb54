"""What Prometheus has scraped of a running job, as if it had been watched."""

from dataclasses import dataclass
from typing import Self

from flink_client.metrics.prometheus_api import Prometheus
from flink_client.metrics.scraped import scraped_counts
from flink_client.metrics.surroundings import surroundings
from flink_client.rest.client import FlinkRest
from models.errors import InvalidInput
from pipelines.observe.observation import Observed, kept, observe_job
from pipelines.observe.watching import Watched
from pipelines.progress import Progress
from pipelines.store.workspace import Workspace

_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Scraper:
    """A Prometheus that scrapes the Flink of a job."""

    url: str
    token_variable: str | None = None
    """Environment variable that holds a bearer token for it."""

    @classmethod
    def of(cls, url: str | None, token_variable: str | None, kafka: str | None) -> Self | None:
        """None without an address.

        Raises:
            InvalidInput: a broker is named, too.
        """
        if url is not None and kafka is not None:
            raise InvalidInput("--prometheus reads the past, and --kafka counts what waits now; give one of them")
        return None if url is None else cls(url, token_variable)


def observe_or_read(
    rest: FlinkRest,
    job: str,
    seconds: float,
    workspace: Workspace,
    progress: Progress,
    *,
    kafka: str | None = None,
    scraper: Scraper | None = None,
) -> Observed:
    """Read from Prometheus how the job did in the last seconds, if there is one; else observe it from now on.

    Raises:
        InvalidInput, SluiceError: as `observe_job` and `scraped`.
    """
    if scraper is None:
        return observe_job(rest, job, seconds, workspace, progress, kafka)
    return kept(scraped(rest, job, seconds, scraper.url, scraper.token_variable), workspace)


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
