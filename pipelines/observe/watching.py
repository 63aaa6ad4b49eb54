"""Reading a running job's counters for a while."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from flink_client.jobs.running import NotRunning, settings
from flink_client.metrics.counts import CountsReader
from flink_client.metrics.partitions import LogEnds
from flink_client.metrics.refreshing import refresh_s
from flink_client.metrics.surroundings import surroundings
from flink_client.rest.answers import flinks_answers
from flink_client.rest.client import FlinkRest
from models.capacity.observed.counters.counts import JobCounts
from models.capacity.observed.surroundings import Surroundings
from models.errors import SluiceError
from pipelines.progress import Progress

LEAST_PAUSE_S: Final = 5.0
"""Between two readings, however often the cluster refreshes: reading costs the JobManager CPU."""
REFRESHED_S: Final = 1.0
"""How long before a reading a refresh is asked for; the JobManager fetches metrics within it."""
OF_PAUSE: Final = 0.2
"""The same as a share of the pause, at most."""
BEYOND_REFRESH: Final = 1.1
"""The pause is so many times Flink's least one between two refreshes, so that each reading is of its own."""
PER_TASK_S: Final = 0.09
"""The pause for each task of the job: a reading costs the JobManager 1.7 ms of CPU for each (benchmarks/flink.md, with 1,000 of
them), which this pace keeps below 2 % of a core."""
FEWEST_PAUSES: Final = 2
"""However many tasks there are, in the time that is asked for: three readings."""
WORKERS_EVERY: Final = 3
"""TaskManagers are read with every third reading, which takes a request for each."""
PATIENCE_S: Final = 90.0
"""For so long the JobManager may be away, as while it fails over, seconds."""


@dataclass
class Watched:
    """Readings of a job, and what was read once at their end."""

    job: str
    readings: list[JobCounts] = field(default_factory=list)
    about: Surroundings | None = None
    gaps: list[str] = field(default_factory=list)
    """Why readings are missing."""


def watch(
    rest: FlinkRest,
    job: str,
    seconds: float,
    progress: Progress,
    *,
    log_ends: LogEnds | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Watched:
    """Read the counters of a job until so much time has passed, or Ctrl-C. A job that ends meanwhile is observed until then.

    Args:
        job: its id.
        log_ends: where what waits is counted by the broker.

    Raises:
        NotRunning: the job has ended before it was observed.
        InvalidInput: metrics are switched off.
        SluiceError: Flink does not answer.
    """
    pause_s = paused_s(fetched_every_s(rest), _tasks(rest, job), seconds)
    reader, watched = CountsReader(rest, job, log_ends, clock), Watched(job)
    progress.say(
        f"observe: reading the counters of job {job} every {pause_s:g} s for {seconds:g} s; Ctrl-C ends it early"
    )
    count = max(2, int(seconds / pause_s) + 1)
    known = {one.time_ms for one in rest.failures(job)}
    try:
        for number in progress.track(_paced(count, pause_s, clock, sleep), "observe", total=count):
            if not _read(reader, number, watched, clock, lambda: sleep(min(REFRESHED_S, OF_PAUSE * pause_s))):
                break
    except KeyboardInterrupt:
        progress.say("observe: ended early")
    if watched.readings:
        watched.about = surroundings(
            rest,
            job,
            _with_workers(watched.readings),
            lag_by_broker=log_ends is not None,
            failures=[one.cause for one in rest.failures(job) if one.time_ms not in known],
            silent=reader.silent_partitions(),
        )
    watched.gaps += _counted(reader.faults)
    return watched


def fetched_every_s(rest: FlinkRest) -> float:
    """How often the cluster refreshes the metrics that it reports, seconds.

    Raises:
        InvalidInput: it never does.
    """
    return refresh_s(settings(rest), rest.url)


def _counted(said: Sequence[str]) -> list[str]:
    """Each once, with how often."""
    return [what if n == 1 else f"{what} ({n} readings)" for what, n in Counter(said).items()]


def paused_s(fetched_s: float, tasks: int, seconds: float) -> float:
    """From one reading to the next.

    Args:
        fetched_s: least time between two refreshes of Flink's metrics.
        seconds: how long the job is observed.
    """
    return max(BEYOND_REFRESH * fetched_s, LEAST_PAUSE_S, min(PER_TASK_S * tasks, seconds / FEWEST_PAUSES))


def _tasks(rest: FlinkRest, job: str) -> int:
    """Of the job; 0 where Flink does not list it."""
    with flinks_answers(rest.url):
        listed = rest.get("/jobs/overview")["jobs"]
        return next((int(one.get("tasks", {}).get("total", 0)) for one in listed if one["jid"] == job), 0)


def _paced(count: int, pause_s: float, clock: Callable[[], float], sleep: Callable[[float], None]) -> Iterator[int]:
    """0, 1, ..., one each pause; a late one does not delay those after it."""
    began = clock()
    for number in range(count):
        sleep(max(began + number * pause_s - clock(), 0.0))
        yield number


def _read(
    reader: CountsReader, number: int, watched: Watched, clock: Callable[[], float], refreshed: Callable[[], None]
) -> bool:
    """Read once; False where the job has ended after it was observed.

    Args:
        refreshed: waits until metrics that were asked for are there.
    """
    try:
        reader.refresh()
        refreshed()
        watched.readings.append(reader.read(workers=number % WORKERS_EVERY == 0))
    except NotRunning as ended:
        if len(watched.readings) < 2:
            raise
        watched.gaps.append(str(ended))
        return False
    except SluiceError as error:
        if not watched.readings or clock() - watched.readings[-1].time_s > PATIENCE_S:
            raise
        watched.gaps.append(f"a reading is missing: {error}")
    return True


def _with_workers(readings: list[JobCounts]) -> JobCounts:
    """The last reading that has TaskManagers, else the last."""
    return next((one for one in reversed(readings) if one.workers), readings[-1])
