"""Observing one running job for as long as Airflow runs: a reading from time to time, a file of samples for each window."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from flink_client.jobs.running import NotRunning, find_named_job, is_forgotten
from flink_client.metrics.counts import CountsReader
from flink_client.metrics.surroundings import surroundings
from flink_client.rest.client import FlinkRest
from models.capacity.observed.counters.counts import JobCounts
from models.capacity.observed.observing import FEWEST_READINGS, observe
from models.capacity.observed.record import ObservedJob
from models.errors import InvalidInput, SluiceError
from models.job import Job
from pipelines.drift.production import SUFFIX, production_key
from pipelines.following.jobs import job_file, operated_jobs
from pipelines.inputs.job_files import operations_of
from pipelines.inputs.operations.operations import Observing
from pipelines.observe.continuous.operators import operators_by_vertex
from pipelines.observe.continuous.windows import FinishedWindow, KeptReading, Windows
from pipelines.observe.log_ends import BrokerLogEnds
from pipelines.observe.observation import FOLDER
from pipelines.observe.samples import samples_of
from pipelines.observe.watching import REFRESHED_S, fetched_every_s
from pipelines.store.workspace import Missing, Workspace

if TYPE_CHECKING:
    import pyarrow as pa

_logger = logging.getLogger(__name__)


def observed_jobs(workspace: Workspace) -> list[str]:
    """Jobs with a file that says where they are observed. Faulty files are logged."""
    return operated_jobs(workspace, lambda operations: operations.observe is not None, "observed")


@dataclass(frozen=True)
class ObservedWindow:
    """A window that was finished, and what was seen in it."""

    finished: FinishedWindow
    seen: ObservedJob | None


class JobObserver:
    """Observes one job; `poll` is called repeatedly, by one thread at a time."""

    def __init__(
        self,
        workspace: Workspace,
        job: str,
        *,
        now_s: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """
        Args:
            now_s: seconds since the epoch.
        """
        self._workspace, self._job, self._windows = workspace, job, Windows(workspace, job)
        self._now_s, self._sleep = now_s, sleep
        self._rules: Observing | None = None
        self._rest: FlinkRest | None = None
        self._reader: CountsReader | None = None
        self._id = ""
        self._operators: tuple[object, dict[str, str] | None] = (None, None)
        self._said = ""

    @property
    def interval_s(self) -> float:
        """Seconds until the next reading is due: readings are taken at multiples of the time between them."""
        every_s = 60.0 if self._rules is None else self._rules.every_s
        return every_s - self._now_s() % every_s

    def close(self) -> None:
        """Close the connection to Flink."""
        if self._rest is not None:
            self._rest.close()
        self._rest = self._reader = None

    def poll(self) -> ObservedWindow | None:
        """Read the job's counters, unless there is a reading of this time; returns a window that is over.

        Errors of reading, and faults of files in the workspace, are not raised but logged; the next poll tries again.
        """
        try:
            job = job_file(self._workspace, self._job)
            rules = operations_of(job).observe
            if rules is None:
                raise InvalidInput(f"the file of {self._job} no longer says where it runs")
            if rules != self._rules:
                self.close()
                self._rules = rules
            self._read_once(job, rules)
            return self._finish_one(rules)
        except (SluiceError, OSError) as error:
            self._say(logging.WARNING, f"the running job {self._job} is not observed: {error}")
            return None

    def _read_once(self, job: Job, rules: Observing) -> None:
        """Take the reading of this time. A fault is logged: windows are finished without it."""
        now = self._now_s()
        due = now - now % rules.every_s
        if self._windows.has(rules.window_s, due):
            return
        try:
            reading = self._reading(job, rules)
        except (SluiceError, OSError) as error:
            if isinstance(error, NotRunning) or self._is_forgotten(error):
                self._reader = None  # it may be deployed again, with another id
            self._say(logging.WARNING, f"a reading of the running job {self._job} is missing: {error}")
            return
        self._windows.keep(rules.window_s, due, reading)
        self._say(logging.INFO, f"the running job {self._job} is observed every {rules.every_s:g} s")

    def _is_forgotten(self, error: SluiceError | OSError) -> bool:
        return isinstance(error, SluiceError) and self._rest is not None and is_forgotten(self._rest, self._id, error)

    def _reading(self, job: Job, rules: Observing) -> KeptReading:
        if self._rest is None:
            self._rest = FlinkRest(
                rules.flink, timeout_s=rules.timeout_s, patience_s=0.0, token_variable=rules.token_variable
            )
            fetched_every_s(self._rest)  # refuses a cluster that reports none
        if self._reader is None:
            self._id = find_named_job(self._rest, rules.job or self._job)
            ends = None if rules.kafka is None else BrokerLogEnds(rules.kafka)
            self._reader = CountsReader(self._rest, self._id, ends, self._now_s)
        self._reader.refresh()
        self._sleep(REFRESHED_S)
        counts = self._reader.read(workers=True)
        return KeptReading(self._id, self._operators_of(self._rest, job, counts), counts)

    def _operators_of(self, rest: FlinkRest, job: Job, counts: JobCounts) -> dict[str, str] | None:
        """Found once for each start and each change of the file."""
        known = (self._id, [v.id for v in counts.vertices], job)
        if self._operators[0] != known:
            found: dict[str, str] | None = None
            try:
                found = operators_by_vertex(rest, self._id, job, counts.vertices)
            except InvalidInput as error:
                _logger.warning("the running job %s is observed, but leaves no samples for drift: %s", self._job, error)
            self._operators = (known, found)
        return self._operators[1]

    def _finish_one(self, rules: Observing) -> ObservedWindow | None:
        for window in self._windows.overdue(rules.window_s, self._now_s())[:1]:
            try:
                return self._finish(window, rules)
            except Missing:  # another process finishes it at this time
                return None
        return None

    def _finish(self, window: str, rules: Observing) -> ObservedWindow | None:
        readings = self._windows.readings(window)
        samples_key = f"{production_key(self._job)}/observed-{window}{SUFFIX}"
        if not self._workspace.exists(samples_key):
            samples = window_samples(readings, self._job, window)
            if samples is None:
                samples_key = ""
            else:
                self._workspace.write_table(samples_key, samples)
        seen = self._seen(readings, rules)
        key = f"{FOLDER}/{self._job}/{window}.json"
        if seen is not None and not self._workspace.exists(key):
            self._workspace.write(key, seen)
        finished = FinishedWindow(
            job=self._job,
            began=self._windows.began(window),
            samples=samples_key or None,
            observed=key if seen is not None else None,
        )
        return ObservedWindow(finished, seen) if self._windows.finish(window, finished) else None

    def _seen(self, readings: Sequence[KeptReading], rules: Observing) -> ObservedJob | None:
        """What the readings of the job as it runs now show; None where it has ended, or was deployed again."""
        last = [reading.counts for reading in readings if reading.job == self._id]
        if self._rest is None or self._reader is None or len(last) < FEWEST_READINGS:
            return None
        try:
            about = surroundings(
                self._rest,
                self._id,
                last[-1],
                lag_by_broker=rules.kafka is not None,
                failures=[one.cause for one in self._rest.failures(self._id) if one.time_ms / 1000 >= last[0].time_s],
                silent=self._reader.silent_partitions(),
            )
            return observe(last, about)
        except SluiceError as error:
            _logger.warning("what was seen of the running job %s is not stored: %s", self._job, error)
            return None

    def _say(self, level: int, what: str) -> None:
        """Log a message once until a different one follows."""
        if what != self._said:
            _logger.log(level, "%s", what)
        self._said = what


def window_samples(readings: Sequence[KeptReading], job: str, window: str) -> "pa.Table | None":
    """A row for each task and time between two readings; None without one. Times count from the window's beginning.

    Each deployment of the job is a run of its own: its counters begin again.
    """
    import pyarrow as pa

    tables: list[pa.Table] = []
    for _, of_one in groupby(readings, key=lambda reading: reading.job):
        own = [reading for reading in of_one if reading.operators is not None]
        if len(own) < FEWEST_READINGS:
            continue
        names = {vertex: name for reading in own for vertex, name in (reading.operators or {}).items()}
        run = f"observed-{window}" + (f"-{len(tables) + 1}" if tables else "")
        table = samples_of([reading.counts for reading in own], job, names, run, Windows.began(window).timestamp())
        tables += [table] if table.num_rows else []
    return pa.concat_tables(tables) if tables else None
