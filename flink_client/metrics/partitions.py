"""What waits in the Kafka partitions that a running job reads: the ends of their logs, less the offsets that Flink reports."""

import math
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from flink_client.rest.client import FlinkRest
from models.capacity.observed.counters.counts import LogCounts
from models.errors import InvalidInput, SluiceError

Place = tuple[str, int]
"""Topic, by the name that Flink reports, and partition."""
LogEnds = Callable[[Collection[Place]], Mapping[Place, float]]
"""Offsets at which the logs of partitions end, as their broker knows them."""
_OFFSET: Final = re.compile(r"(\d+)\..*KafkaSourceReader\.topic\.(.+)\.partition\.(\d+)\.currentOffset")
_REPLACED: Final = str.maketrans(" .:,", "____")


def reported_name(topic: str) -> str:
    """A topic in the names of Flink's metrics, whose parts are joined by dots."""
    return topic.translate(_REPLACED)


@dataclass(frozen=True)
class _Ends:
    """An answer of the broker."""

    asked_s: float = 0.0
    of: Mapping[Place, float] = field(default_factory=dict)


class PartitionsReader:
    """Reads the offsets of one job's partitions and, where a broker is known, compares them with the ends of their logs."""

    def __init__(
        self, rest: FlinkRest, job: str, log_ends: LogEnds | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rest, self._job, self._log_ends, self._clock = rest, job, log_ends, clock
        self.faults: list[str] = []
        """Why what waits was unknown."""
        self._read_to: dict[Place, float] = {}
        """Offset of the last record that was read of each partition or, before the first, of the last one that it had when it
        was first seen."""
        self._at_start: Mapping[Place, float] = {}
        """The same when the job was started again."""
        self._assumed: set[Place] = set()
        """Partitions of which nothing was read since they were first seen."""
        self._unread: dict[str, frozenset[int]] = {}
        self._metrics: dict[str, dict[int, dict[Place, str]]] = {}
        """Of each vertex and task: the metric of each partition's offset."""
        self._places: dict[str, set[Place]] = {}
        """All that each vertex was seen to read: after a rescale it names them late."""
        self._ends = _Ends()
        """Where the logs ended when Flink was asked to fetch metrics: the offsets that it answers with are of then."""
        self._used: dict[str, _Ends] = {}
        """By the last call of `waiting` for each vertex."""

    @property
    def asks_broker(self) -> bool:
        return self._log_ends is not None

    def restarted(self) -> None:
        """The job was started again: where its tasks begin to read is unknown until they have read something."""
        self._at_start = dict(self._read_to)

    def unread(self, vertex: str) -> frozenset[int]:
        """Tasks that have not read yet, since they were started, of a partition in which records may wait: Flink reports an
        offset of before, or none. All of them while partitions are not named. By the last call of `waiting`."""
        return self._unread.get(vertex, frozenset())

    def find(self, vertex: str, reported: Iterable[str], tasks: int) -> None:
        """Take the partitions of a vertex from the names of its metrics."""
        of_task: dict[int, dict[Place, str]] = {}
        for match in filter(None, map(_OFFSET.fullmatch, reported)):
            of_task.setdefault(int(match[1]), {})[match[2], int(match[3])] = match[0].partition(".")[2]
        self._places.setdefault(vertex, set()).update(place for found in of_task.values() for place in found)
        # A task without a partition reports none.
        self._metrics[vertex] = {task: of_task.get(task, {}) for task in range(tasks)}

    def is_missing(self, vertex: str) -> bool:
        """Whether not all partitions are named that the vertex was seen to read, as in the first seconds after a rescale."""
        named = (place for of_task in self._metrics.get(vertex, {}).values() for place in of_task)
        return not self._places.get(vertex, set()) <= set(named)

    def number(self, vertex: str, task: int) -> int | None:
        """Partitions of a task; None where its vertex reports none."""
        of_vertex = self._metrics.get(vertex, {})
        return len(of_vertex.get(task, {})) if any(of_vertex.values()) else None

    def refresh(self) -> None:
        """Ask the broker for the ends of the partitions that are known; none while it is away, which the reading reports."""
        self._ends = _Ends()
        places = set().union(*self._places.values())
        if self._log_ends is not None and places:
            with suppress(SluiceError):
                self._ends = _Ends(self._clock(), self._log_ends(places))

    def logs(self, vertex: str) -> LogCounts | None:
        """The logs that a source reads, as of the last call of `waiting`; None where the broker did not answer."""
        if (used := self._used.get(vertex)) is None:
            return None
        ends = {f"{topic}-{number}": used.of[topic, number] for topic, number in self._places[vertex]}
        return LogCounts(used.asked_s, ends)

    def waiting(self, vertex: str) -> dict[int, float | None]:
        """Records that wait before each task of a source by its broker; empty without one, None while it is away.

        Raises:
            SluiceError: the broker has never answered.
        """
        self._used.pop(vertex, None)
        places = self._metrics.get(vertex, {})
        self._unread[vertex] = frozenset(places if self.is_missing(vertex) else ())
        if self._log_ends is None or not any(places.values()):
            return {}
        located = self._offsets(vertex)
        offsets = {place: offset for place, (offset, _) in located.items()}
        try:
            used = self._ends
            if not self._places[vertex] <= used.of.keys():
                used = _Ends(self._clock(), self._log_ends(self._places[vertex]))
        except InvalidInput:
            raise
        except SluiceError as error:
            if not self._read_to:  # it has never answered, so the address is wrong
                raise
            self.faults.append(f"what waits is unknown: {error}")
            return dict.fromkeys(places)
        self._used[vertex], ends = used, used.of
        for place, offset in offsets.items():
            # A source reports -1 until it has read a record of the partition.
            if offset >= 0:
                self._read_to[place] = offset
                self._assumed.discard(place)
            elif place not in self._read_to:
                self._read_to[place] = ends[place] - 1
                self._assumed.add(place)
        found: dict[int, list[float]] = {task: [] for task in places}
        unread = set()
        for place, (offset, task) in located.items():
            waits = max(ends[place] - self._read_to[place] - 1, 0.0)
            found[task].append(waits)
            may_wait = waits > 0 or (place in self._assumed and ends[place] > 0)
            if may_wait and (offset < 0 or offset == self._at_start.get(place)):
                unread.add(task)
        self._unread[vertex] |= unread
        return {task: math.fsum(waiting) for task, waiting in found.items()}

    def silent(self) -> dict[str, tuple[str, ...]]:
        """Partitions of which nothing was read since the job started, by vertex; none of a source that read nothing at all."""
        found = {}
        for vertex in self._metrics:
            offsets = self._offsets(vertex)
            silent = tuple(f"{topic}-{number}" for (topic, number), (at, _) in sorted(offsets.items()) if at < 0)
            if 0 < len(silent) < len(offsets):
                found[vertex] = silent
        return found

    def _offsets(self, vertex: str) -> dict[Place, tuple[float, int]]:
        """The offset of the last record that was read of each partition, and the task that read it.

        After a rescale in place Flink keeps reporting a partition of the task that it was taken from, too, which has read less.
        """
        reported = {
            f"{task}.{name}": (place, task)
            for task, of_task in self._metrics.get(vertex, {}).items()
            for place, name in of_task.items()
        }
        offsets: dict[Place, tuple[float, int]] = {}
        found = self._rest.task_metrics(self._job, vertex, reported)
        for name, (place, task) in reported.items():
            if name in found:
                offsets[place] = max(offsets.get(place, (-math.inf, task)), (found[name], task))
        return offsets
