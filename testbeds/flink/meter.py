"""What the tasks of a job did in each reporting interval, from Flink's counters."""

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from models.errors import SluiceError
from testbeds.flink.answers import Vertex
from testbeds.flink.counters import Counter
from testbeds.flink.rest import FlinkRest

BUSY_TIME: Final = "accumulateBusyTimeMs"
TIMES: Final = (BUSY_TIME, "accumulateBackPressuredTimeMs", "accumulateIdleTimeMs")
COUNTERS: Final = ("numRecordsIn", "numRecordsOut", "numBytesOut", *TIMES)
STATE_COUNTERS: Final = (
    "rocksdb_bytes_read",
    "rocksdb_bytes_written",
    "rocksdb_block_cache_hit",
    "rocksdb_block_cache_miss",
)
"""Of the RocksDB of a task, which Flink brings up to date every five seconds; it puts the operator's name before them."""
LONGEST_GAP_S: Final = 5.0
"""Flink refreshes metrics each second; without news for this long, a measurement is given up."""


@dataclass(frozen=True)
class Increments:
    """By how much the counters of one task grew; each array float64[intervals]."""

    values: Mapping[str, np.ndarray]

    def __getitem__(self, counter: str) -> np.ndarray:
        return self.values[counter]


class Meter:
    """Reads the counters of all tasks of a running job, at least once a second while something is measured."""

    def __init__(self, rest: FlinkRest, job: str, vertices: Iterable[Vertex], stateful: Collection[str]) -> None:
        """
        Args:
            vertices: of the job, once all of its tasks run.
            stateful: ids of the vertices that keep state in RocksDB.
        """
        self._rest, self._job, self._vertices, self._stateful = rest, job, tuple(vertices), frozenset(stateful)
        self._counters: dict[tuple[str, int], dict[str, Counter]] = {
            (v.id, task): {} for v in self._vertices for task in range(v.parallelism)
        }
        self._state_names: dict[str, tuple[str, ...]] = {}

    def read(self) -> None:
        """Read all counters once.

        Raises:
            SluiceError: the job does not run any more, or a task was restarted.
        """
        for vertex in self._vertices:
            if vertex.id in self._stateful and not self._state_names.get(vertex.id):
                self._find_state_names(vertex)
            names = COUNTERS + self._state_names.get(vertex.id, ())
            readings = self._rest.vertex_metrics(self._job, vertex.id, names, vertex.parallelism)
            now = time.monotonic()
            for task, values in enumerate(readings):
                self._note((vertex.id, task), _summed(values), now)

    def _find_state_names(self, vertex: Vertex) -> None:
        """State is reported under names that hold that of the operator; known once Flink reports them."""
        reported = self._rest.metric_names(self._job, vertex.id)
        first = (name.removeprefix("0.") for name in reported if name.startswith("0."))
        self._state_names[vertex.id] = tuple(sorted(name for name in first if name.endswith(STATE_COUNTERS)))

    def _note(self, task: tuple[str, int], values: Mapping[str, float], now: float) -> None:
        counters = self._counters[task]
        times = [values[name] for name in TIMES if name in values]
        before = [counters[name].values[-1] for name in TIMES if name in counters]
        # The three times grow with every refresh, whatever the task does.
        refreshed = times != before
        for name, value in values.items():
            counter = counters.setdefault(name, Counter(may_fall=name == BUSY_TIME))
            news = refreshed if name in COUNTERS else value not in counter.values[-1:]
            counter.read(now, value, news)

    @property
    def has_read_all(self) -> bool:
        """Whether each counter of each task was read at least once."""
        return all(name in counters for counters in self._counters.values() for name in COUNTERS)

    def covers(self, begin: float, end: float) -> bool:
        """Whether all counters of all tasks are known at both times (`time.monotonic`)."""
        return all(
            all(name in counters and counters[name].covers(begin, end) for name in COUNTERS)
            for counters in self._counters.values()
        )

    def increments(self, boundaries: Sequence[float]) -> dict[tuple[str, int], Increments]:
        """By vertex id and task: how much each counter grew from each time to the next.

        Raises:
            SluiceError: there was no news of a task for too long in between.
        """
        found = {}
        for task, counters in self._counters.items():
            gap = counters[COUNTERS[0]].longest_gap_s(boundaries[0], boundaries[-1])
            if gap > LONGEST_GAP_S:
                raise SluiceError(
                    f"Flink reported nothing of task {task[1]} of vertex {task[0]} for {gap:.1f} s while it was measured "
                    f"({LONGEST_GAP_S:g} s at most); measure again, on a machine that is less busy"
                )
            none = np.zeros(len(boundaries) - 1)
            found[task] = Increments(
                {
                    name: counters[name].increments(boundaries) if name in counters else none
                    for name in COUNTERS + STATE_COUNTERS
                }
            )
            for counter in counters.values():
                counter.forget_before(boundaries[-1])
        return found


def _summed(values: Mapping[str, float]) -> dict[str, float]:
    """Column families of one task together."""
    totals = {name: value for name, value in values.items() if name in COUNTERS}
    for name, value in values.items():
        for counter in STATE_COUNTERS:
            if name.endswith(counter):
                totals[counter] = totals.get(counter, 0.0) + value
    return totals
