"""Counters of tasks and TaskManagers: names, and how they are read from Flink's REST interface."""

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from flink_client.rest.answers import Vertex
from flink_client.rest.client import FlinkRest

BUSY_TIME: Final = "accumulateBusyTimeMs"
TIMES: Final = (BUSY_TIME, "accumulateBackPressuredTimeMs", "accumulateIdleTimeMs")
COUNTERS: Final = ("numRecordsIn", "numRecordsOut", "numBytesOut", *TIMES)
STATE_COUNTERS: Final = (
    "rocksdb_bytes_read",
    "rocksdb_bytes_written",
    "rocksdb_block_cache_hit",
    "rocksdb_block_cache_miss",
)
"""RocksDB metrics of a task, which Flink updates every five seconds; it prefixes them with the operator's name."""
STATE_LATENCY: Final = "state_latency_s"
"""Mean duration over the kinds of access in LATENCIES, seconds; a gauge, not a counter."""
LATENCIES: Final = tuple(
    f"{kind}State{access}Latency"
    for kind, accesses in {
        "value": ("Get", "Update"),
        "map": ("Get", "Put", "Contains"),
        "list": ("Get", "Add", "AddAll", "Update"),
        "aggregating": ("Get", "Add"),
        "reducing": ("Get", "Add"),
    }.items()
    for access in accesses
)
"""Accesses of one key's state (nanoseconds); Flink times one in a hundred of them."""
READ_BY_SOURCE: Final = re.compile(r"Source__.*\.numRecordsIn")
"""Records that a source has read. Its task counts them as its own on Flink 2.3, and none on 1.20."""
CPU_TIME: Final = "Status.JVM.CPU.Time"
"""CPU time of a TaskManager since its JVM started, nanoseconds."""
REST_REFRESH_S: Final = 1.0
"""How often clusters that Sluice starts refresh the metrics of their REST interface (`metrics.fetcher.update-interval`)."""
_LEAST_GAP_S: Final = 5.0
_REFRESHES_MISSED: Final = 2.5
_LOOK_EVERY_S: Final = 5.0
"""Interval of looking for new state metrics: Flink reports latencies only once it has timed an access."""


@dataclass(frozen=True)
class Reading:
    """Values of one task at one time."""

    task: int
    time_s: float
    """`time.monotonic`."""
    values: Mapping[str, float]
    """Those of COUNTERS, STATE_COUNTERS and STATE_LATENCY that are known."""


class Readings(Protocol):
    """New metric values of one job."""

    @property
    def refresh_s(self) -> float:
        """Interval at which values are updated, seconds."""
        ...

    def of_vertex(self, vertex: Vertex, by_operator: bool) -> list[Reading]:
        """New values of the tasks of a vertex, in the order of time.

        Args:
            by_operator: whether metrics that Flink names after an operator are wanted, too: those of state, and the records
                that a source has read.

        Raises:
            SluiceError: there is no answer, or a task was restarted.
        """
        ...

    def cpu_s(self, task_manager: str) -> list[tuple[float, float]]:
        """Times (`time.monotonic`) and CPU seconds since its start."""
        ...


def longest_gap_s(readings: Readings) -> float:
    """Time without updates after which a measurement is aborted: one refresh may fail, two in a row may not."""
    return max(_LEAST_GAP_S, _REFRESHES_MISSED * readings.refresh_s)


class RestReadings:
    """Values from Flink's REST interface, which must be polled at least once a second, since it fetches lazily."""

    def __init__(self, rest: FlinkRest, job: str, refresh_s: float = REST_REFRESH_S) -> None:
        self._rest, self._job, self._refresh_s = rest, job, refresh_s
        self._names: dict[str, frozenset[str]] = {}
        self._looked_at: dict[str, float] = {}

    @property
    def refresh_s(self) -> float:
        return self._refresh_s

    def of_vertex(self, vertex: Vertex, by_operator: bool) -> list[Reading]:
        if by_operator:
            self._find_names(vertex)
        names = COUNTERS + tuple(sorted(self._names.get(vertex.id, ())))
        tasks = self._rest.vertex_metrics(self._job, vertex.id, names, vertex.parallelism)
        now = time.monotonic()
        return [Reading(task, now, _together(values)) for task, values in enumerate(tasks)]

    def cpu_s(self, task_manager: str) -> list[tuple[float, float]]:
        value = self._rest.task_manager_metrics(task_manager, [CPU_TIME]).get(CPU_TIME)
        return [] if value is None else [(time.monotonic(), value / 1e9)]

    def _find_names(self, vertex: Vertex) -> None:
        """These names include operator and state, and are known only once Flink reports them."""
        known = self._names.get(vertex.id, frozenset())
        if known and time.monotonic() - self._looked_at[vertex.id] < _LOOK_EVERY_S:
            return
        self._looked_at[vertex.id] = time.monotonic()
        reported = (name.partition(".") for name in self._rest.metric_names(self._job, vertex.id))
        wanted = STATE_COUNTERS + tuple(f".{name}_mean" for name in LATENCIES)
        found = {
            name
            for task, _, name in reported
            if task.isdecimal() and (name.endswith(wanted) or READ_BY_SOURCE.fullmatch(name))
        }
        self._names[vertex.id] = known | found


def _together(values: Mapping[str, float]) -> dict[str, float]:
    """All states of one task together, by the plain name of each counter."""
    known = (*COUNTERS, *STATE_COUNTERS)
    if any(READ_BY_SOURCE.fullmatch(name) for name in values):
        values = {name: value for name, value in values.items() if name != COUNTERS[0]}
    counters = ((next((c for c in known if name.endswith(c)), None), value) for name, value in values.items())
    latencies = (value for name, value in values.items() if name.endswith("Latency_mean"))
    return summed(((name, value) for name, value in counters if name is not None), latencies)


def summed(counters: Iterable[tuple[str, float]], latencies_ns: Iterable[float]) -> dict[str, float]:
    """All states of one task together: counters are summed, latencies above 0 averaged."""
    totals: dict[str, float] = {}
    for name, value in counters:
        totals[name] = totals.get(name, 0.0) + value
    if timed := [latency / 1e9 for latency in latencies_ns if latency > 0]:
        totals[STATE_LATENCY] = sum(timed) / len(timed)
    return totals
