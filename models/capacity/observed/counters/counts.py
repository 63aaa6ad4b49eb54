"""What the tasks of a running job have counted since they started, read at one time."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class StateCounts:
    """Accesses of a task to its state on disk."""

    read_bytes: float
    written_bytes: float
    cache_hits: float
    """Blocks that were in memory."""
    cache_misses: float

    def since(self, before: "StateCounts") -> "StateCounts":
        """What was counted since an earlier reading."""
        return StateCounts(
            read_bytes=max(self.read_bytes - before.read_bytes, 0.0),
            written_bytes=max(self.written_bytes - before.written_bytes, 0.0),
            cache_hits=max(self.cache_hits - before.cache_hits, 0.0),
            cache_misses=max(self.cache_misses - before.cache_misses, 0.0),
        )


@dataclass(frozen=True)
class TaskCounts:
    """Counters of one task. None: Flink does not report it (yet)."""

    task: int
    attempt: int
    """Grows when the task is started again, and its counters with it."""
    runs: bool
    """False while it is being started, and once it has ended."""
    finished: bool
    """All of its input was bounded, and is read."""
    worker: str
    """TaskManager; empty while it has none."""
    records_in: float | None = None
    records_out: float | None = None
    bytes_out: float | None = None
    busy_s: float | None = None
    """Older sources do not report it."""
    backpressured_s: float | None = None
    idle_s: float | None = None
    emitted: float | None = None
    """Records that the sources of its vertex emitted, those that they dropped left out; None where it has no source."""
    read: float | None = None
    """Records that they read, those that they dropped included; None where they do not count it."""
    fetched: float | None = None
    """Records that their Kafka consumers have fetched; None where these do not count it."""
    polled_s: float | None = None
    """Since these consumers were asked for more; None where that is unknown."""
    pending: float | None = None
    """Records that wait before its sources; None where they do not report it."""
    age_s: float | None = None
    """Of the record that its sources emitted last, by its time stamp; None where that is unknown."""
    partitions: int | None = None
    """Partitions of a topic that it reads; None where the source does not report them."""
    state: StateCounts | None = None
    """None where it has no state on disk, or the state backend does not count."""

    @property
    def emitted_per_read(self) -> float:
        """Records wait to be read; of those that are read, a source may drop some."""
        return self.emitted / self.read if self.emitted and self.read else 1.0

    @property
    def ran_s(self) -> float | None:
        """How long it had run when the counters were taken: a task is always busy, backpressured or idle."""
        times = (self.busy_s, self.backpressured_s, self.idle_s)
        known = [one for one in times if one is not None]
        return sum(known) if len(known) == len(times) else None


@dataclass(frozen=True)
class LogCounts:
    """The logs of the partitions that a source reads, as their broker knows them."""

    asked_s: float
    """When, by the clock of the readings."""
    ends: Mapping[str, float]
    """Offset that the next record will get, by topic and partition, such as `clicks-0`."""


@dataclass(frozen=True)
class VertexCounts:
    """A vertex with the counters of its tasks."""

    id: str
    name: str
    """Flink's, such as `Source: clicks -> parse`."""
    operators: tuple[str, ...]
    """Those that Flink chained in it."""
    max_parallelism: int
    slot_group: str
    is_source: bool
    tasks: tuple[TaskCounts, ...]
    logs: LogCounts | None = None
    """None where it reads none, and where no broker was asked, or did not answer."""

    @property
    def emitted_per_read(self) -> float:
        """As of a task, of all of them together."""
        emitted, read = sum(task.emitted or 0.0 for task in self.tasks), sum(task.read or 0.0 for task in self.tasks)
        return emitted / read if emitted and read else 1.0

    @property
    def partitions(self) -> int | None:
        """Of topics, that its tasks read together; None where they report none."""
        known = [task.partitions for task in self.tasks if task.partitions is not None]
        return sum(known) or None


@dataclass(frozen=True)
class WorkerCounts:
    """A TaskManager."""

    cpu_s: float | None
    """Of its JVM since it started."""
    gc_s: float | None
    """Time in garbage collection since it started."""
    heap_used: float | None
    """Share of the heap."""


@dataclass(frozen=True)
class JobCounts:
    """A running job at one time."""

    time_s: float
    """At the end of the reading, by a clock that is the same for all readings of a job."""
    running_since_ms: int
    """By Flink's clock; another one after a restart."""
    state: str
    vertices: tuple[VertexCounts, ...]
    """In topological order."""
    workers: Mapping[str, WorkerCounts]
