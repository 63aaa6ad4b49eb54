"""What the autopilot sees of a job: one reading of its counters, and the rates since the last ones. Only GET requests.

Slots, checkpoints and requirements change rarely, and are read every SLOWLY_S seconds and after each change.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from flink_client.jobs.checkpoints import CheckpointHealth, checkpoint_health
from flink_client.jobs.deployment import AvailableTaskManager
from flink_client.jobs.running import Scheduler, room_for, scheduler, settings
from flink_client.metrics.counts import CountsReader
from flink_client.metrics.partitions import LogEnds
from flink_client.rest.answers import VertexEdge, graph
from flink_client.rest.client import FlinkRest
from models.capacity.observed.counters.counts import JobCounts, VertexCounts
from models.capacity.observed.counters.intervals import starts_of
from models.dataflow import Partitioning
from models.errors import InvalidInput
from models.scaling.control.activity import JobActivity, activity_since
from models.scaling.meter import Meter, MeteredGraph
from models.scaling.rates import Rates
from pipelines.control.senders import partitioning, sole_senders
from pipelines.observe.job_file import operator_names

SLOWLY_S: Final = 30.0
_KEPT: Final = 6
"""Readings that say how late counters are."""
_QUEUE: Final = "buffers.inPoolUsage"
_MIB: Final = 2.0**20


@dataclass(frozen=True)
class Slowly:
    """What is read from time to time."""

    room: tuple[AvailableTaskManager, ...]
    health: CheckpointHealth
    required: Mapping[str, int] | None
    """Requested tasks by vertex id; None where the scheduler does not rescale a running job."""

    @property
    def slots(self) -> int:
        return sum(one.slots for one in self.room)


@dataclass(frozen=True)
class Sight:
    """One look at the job."""

    time_s: float
    """By the clock of the process."""
    counts: JobCounts | None = None
    """None while Flink does not answer, or the job is not there."""
    slowly: Slowly | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    """Name of each vertex, as the policy knows it, by id; in topological order."""
    activity: JobActivity | None = None
    """Since the last complete reading; None while counters of a running task are not newer."""
    restarted: bool = False
    """Whether the job was started again since the last look."""
    fault: str | None = None
    """Why it was not read."""
    ended: tuple[str, ...] = ()
    """Vertices, by name, that have read all of their input since the last look, and that a meter still counts on."""

    @property
    def tasks(self) -> dict[str, int]:
        """Of each vertex that is not done, by name."""
        return {self.names[v.id]: len(v.tasks) for v in self.vertices}

    @property
    def vertices(self) -> list[VertexCounts]:
        """Those that are not done."""
        counts = self.counts
        return [] if counts is None else [v for v in counts.vertices if not all(task.finished for task in v.tasks)]

    @property
    def runs(self) -> bool:
        """Whether all tasks run that have not finished."""
        return bool(self.vertices) and all(t.runs or t.finished for v in self.vertices for t in v.tasks)


class Sensor:
    """Looks at one job again and again. Another job id takes another sensor."""

    def __init__(
        self,
        rest: FlinkRest,
        job: str,
        reads: frozenset[str],
        clock: Callable[[], float],
        log_ends: LogEnds | None = None,
        longest_s: float = 60.0,
    ) -> None:
        """
        Args:
            reads: metrics that cost requests of their own, as `PolicyKind.reads`.
            clock: monotonic, seconds.
            longest_s: rates over a longer time are none of the present, and left out.
            log_ends: where what waits is counted by the broker.
        """
        self.job = job
        self._rest, self._reads, self._clock = rest, reads, clock
        self._longest_s = longest_s
        self._reader = CountsReader(rest, job, log_ends, clock)
        self._kept: list[JobCounts] = []
        self._edges: tuple[VertexEdge, ...] = ()
        self._slowly: tuple[float, Slowly] | None = None
        self._names: tuple[tuple[str, ...], dict[str, str]] = ((), {})
        self._unended: tuple[int, float] | None = None
        """The oldest checkpoint in progress, and when it was seen first."""
        self._adaptive: bool | None = None
        self._metered: frozenset[str] = frozenset()
        """Vertices of the newest meter, by id, that have not ended."""

    @property
    def newest_s(self) -> float | None:
        """When the counters were read last that were all newer than those before."""
        return self._kept[-1].time_s if self._kept else None

    def changed(self) -> None:
        """The job was changed on purpose: what was read of it is not compared with what comes."""
        self._slowly, self._kept = None, []

    def ask(self) -> None:
        """Have Flink fetch the metrics that the next look shows, which takes it a moment. Raises SluiceError."""
        self._reader.refresh()

    def look(self) -> Sight:
        """One look.

        Raises:
            NotRunning: the job has ended.
            SluiceError: Flink does not answer.
        """
        faults = len(self._reader.faults)
        counts = self._reader.read(workers="cpu_cores" in self._reads)
        restarted = bool(self._kept) and bool(starts_of([self._kept[-1], counts]))
        if restarted:  # slots may be gone
            self._slowly = None
        slowly, activity = self._read_slowly(counts.time_s), None
        if not self._kept or restarted or not _complete(self._kept[-1]) or not _complete(counts):
            self._kept = [counts]
        else:
            activity = activity_since(
                [*self._kept, counts],
                state_bytes=slowly.health.by_vertex,
                queue_shares=self._queues(counts),
                senders=sole_senders(self._read_edges()),
            )
            if activity is not None and activity.seconds > self._longest_s:
                activity, self._kept = None, [counts]
            elif activity is not None and not activity.growth_unknown.keys() & activity.lag_unknown:
                # Else the next reading that has a lag is compared with the last one that had, over the whole time.
                self._kept = [*self._kept, counts][-_KEPT:]
        said, names = list(self._reader.faults[faults:]), self._named(counts.vertices)
        if activity is not None and activity.growth_unknown:
            unknown = [f"{names[id_]}, since {why}" for id_, why in activity.growth_unknown.items()]
            said.append(f"it is unknown by how much the lag grew of {' and of '.join(unknown)}")
            activity = None
        sight = Sight(counts.time_s, counts, slowly, names, activity, restarted, said[-1] if said else None)
        ended = self._metered - {v.id for v in sight.vertices}
        self._metered -= ended
        return replace(sight, ended=tuple(names[v.id] for v in counts.vertices if v.id in ended))

    def _read_slowly(self, now_s: float) -> Slowly:
        if self._slowly is None or now_s - self._slowly[0] >= SLOWLY_S:
            if self._adaptive is None:
                self._adaptive = scheduler(settings(self._rest)) is Scheduler.ADAPTIVE
            required = self._rest.requirements(self.job) if self._adaptive else None
            found = Slowly(room_for(self._rest, self.job), checkpoint_health(self._rest, self.job), required)
            self._slowly = (now_s, found)
            in_progress = found.health.in_progress
            if in_progress is None or self._unended is None or self._unended[0] != in_progress:
                self._unended = None if in_progress is None else (in_progress, now_s)
        return self._slowly[1]

    def failing_checkpoints(self, longest_s: float) -> int:
        """Checkpoints that failed in a row, one that has not ended for so long included."""
        if self._slowly is None:
            return 0
        since_s = self._clock() if self._unended is None else self._unended[1]
        return self._slowly[1].health.failed + (self._clock() - since_s >= longest_s)

    def _named(self, vertices: Sequence[VertexCounts]) -> dict[str, str]:
        ids = tuple(v.id for v in vertices)
        if ids != self._names[0]:
            self._names = (ids, operator_names(vertices))
        return self._names[1]

    def _queues(self, counts: JobCounts) -> dict[str, list[float]] | None:
        if "input_queue_share" not in self._reads:
            return None
        found = {}
        for vertex in counts.vertices:
            if not vertex.is_source:
                values = self._rest.vertex_metrics(self.job, vertex.id, [_QUEUE], len(vertex.tasks))
                found[vertex.id] = [min(max(one.get(_QUEUE, 0.0), 0.0), 1.0) for one in values]
        return found

    def _read_edges(self) -> tuple[VertexEdge, ...]:
        """Those of the job, which stay; none until it is scheduled."""
        if not self._edges:
            self._edges = graph(self._rest.get(f"/jobs/{self.job}/plan")["plan"])[1]
        return self._edges

    def meter(self, sight: Sight) -> Meter:
        """A meter of the job as it runs now.

        Raises:
            InvalidInput: it runs as one vertex, so that there is none whose tasks a policy could set.
        """
        running = {v.id: v for v in sight.vertices}
        self._metered = frozenset(running)
        edges = [e for e in self._read_edges() if e.upstream in running and e.downstream in running]
        if not edges:
            raise InvalidInput(
                f"a policy needs a source and another vertex, but the job runs as {len(running)} vertex: Flink chained all of "
                "it; split the chain with disableChaining() or startNewChain(), or switch chaining off"
            )
        hashed = {e.downstream for e in edges if partitioning(e) is Partitioning.HASH}
        sources = [id_ for id_, v in running.items() if v.is_source]
        limits = {
            sight.names[id_]: {
                "max_parallelism": v.max_parallelism,
                "key_groups": v.max_parallelism if id_ in hashed else None,
            }
            for id_, v in running.items()
        }
        links = tuple(dict.fromkeys((sight.names[e.upstream], sight.names[e.downstream]) for e in edges))
        meter = Meter(MeteredGraph(links, {sight.names[id_]: 1 / len(sources) for id_ in sources}, limits))
        meter.deployed(sight.tasks, {})
        return meter


def _complete(counts: JobCounts) -> bool:
    """Whether all tasks run, but for those that have finished, and report their counters."""
    tasks = [task for v in counts.vertices for task in v.tasks if not task.finished]
    return bool(tasks) and all(task.runs and None not in (task.records_in, task.records_out) for task in tasks)


def record(meter: Meter, sight: Sight) -> None:
    """Add to a meter what was done since the last complete reading."""
    activity = sight.activity
    if activity is not None:
        vertices = {sight.names[id_]: done for id_, done in activity.vertices.items()}
        shares = {sight.names[id_]: share for id_, share in activity.shares.items()}
        meter.record(vertices, activity.arrival_rate, shares)


def known_rates(rates: Rates, sight: Sight, reads: frozenset[str]) -> Rates:
    """The rates without what was not read, with the records in flight, and with partitions that sources name only now."""
    activity = sight.activity
    partitions = {sight.names[v.id]: known for v in sight.vertices if v.is_source and (known := v.partitions)}
    in_flight = {} if activity is None else {sight.names[id_]: n for id_, n in activity.in_flight.items()}
    no_lag = set() if activity is None else {sight.names[id_] for id_ in activity.lag_unknown}
    not_busy = set() if activity is None else {sight.names[id_] for id_ in activity.busy_unknown}
    operators = {}
    for name, metrics in rates.operators.items():
        if name in not_busy and name in rates.source_rates:
            continue  # a policy may do without a source's metrics
        unread: dict[str, object] = {"state_latency_s": None, "in_flight_records": in_flight.get(name)}
        unread |= {"partitions": partitions[name]} if name in partitions else {}
        unread |= {} if "cpu_cores" in reads else {"cpu_cores": None}
        unread |= {} if "input_queue_share" in reads else {"input_queue_share": None}
        unread |= {"lag_records": None, "lag_change_per_s": None} if name in no_lag else {}
        operators[name] = metrics.model_copy(update=unread)
    return rates.model_copy(update={"operators": operators})


def state_mb(sight: Sight) -> float | None:
    """State in the last checkpoint, MiB; None without one."""
    known = None if sight.slowly is None else sight.slowly.health.state_bytes
    return None if known is None else known / _MIB
