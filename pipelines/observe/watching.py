"""Reading a running job's counters for a while."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from flink_client.metrics.counts import CountsReader, LogEnds, refresh_s
from flink_client.metrics.surroundings import surroundings
from flink_client.rest import FlinkRest
from flink_client.running import NotRunning
from models.capacity.observed.counts import JobCounts
from models.capacity.observed.observing import Surroundings
from models.errors import SluiceError
from pipelines.progress import Progress

LEAST_PAUSE_S: Final = 5.0
"""Between two readings, however often the cluster refreshes: reading costs the JobManager CPU."""
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
        SluiceError: Flink does not answer.
    """
    refreshed_s = refresh_s(rest)
    pause_s = max(refreshed_s, LEAST_PAUSE_S)
    reader, watched = CountsReader(rest, job, log_ends), Watched(job)
    progress.say(
        f"observe: reading the counters of job {job} every {pause_s:g} s for {seconds:g} s; Ctrl-C ends it early"
    )
    count = max(2, int(seconds / pause_s) + 1)
    # Flink fetches metrics when they are asked for, and answers with those that it has, which may be old.
    reader.read(workers=False)
    sleep(refreshed_s)
    try:
        for number in progress.track(_paced(count, pause_s, clock, sleep), "observe", total=count):
            if not _read(reader, number, watched, clock):
                break
    except KeyboardInterrupt:
        progress.say("observe: ended early")
    if watched.readings:
        watched.about = surroundings(
            rest,
            job,
            _with_workers(watched.readings),
            lag_by_broker=log_ends is not None,
            refresh_s=refreshed_s,
        )
    return watched


def _paced(count: int, pause_s: float, clock: Callable[[], float], sleep: Callable[[float], None]) -> Iterator[int]:
    """0, 1, ..., one each pause; a late one does not delay those after it."""
    began = clock()
    for number in range(count):
        sleep(max(began + number * pause_s - clock(), 0.0))
        yield number


def _read(reader: CountsReader, number: int, watched: Watched, clock: Callable[[], float]) -> bool:
    """Read once; False where the job has ended after it was observed."""
    try:
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
