"""What waits before a source at least, from how long the records that it emits have waited.

Kafka's source reports `pendingRecords` of each partition as of the last fetch that returned its records. A job with few
expensive records polls rarely while it is held back, so that it may report 0 for minutes while records pile up. Flink reports
how old the record was that a source emitted last, too (`currentEmitEventTimeLag`, FLIP-33).

    d       age of the record emitted last, by its time stamp
    d_0     the same when the task was idle last, and nothing waited: by so much time stamps are off
    T, E    time since then, and records emitted meanwhile
    d_1     the age at its begin
    r_0     records/s that arrived before: those emitted while it was idle for a part, or known before it was started again

What was emitted in that time arrived within T - (d - d_1), and what arrived in the last d - d_0 waits:

    rate    = (W r_0 + E) / (W + T - (d - d_1))                                                    (1)
    waiting = (d - d_0) x rate                                                                     (2)

W lets r_0 count while T is short, as a task emits in bursts after a start. d is the median of three readings, as partitions of
a task are read in turns and not equally far.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Final

from models.capacity.observed.counts import JobCounts, TaskCounts, VertexCounts

HELD: Final = 0.05
"""Share of its time that a task is idle at most while records wait for it."""
PRIOR_S: Final = 10.0
"""W."""
_AGES: Final = 3


@dataclass
class _Followed:
    """A task since it was started."""

    began: TaskCounts
    """When it was idle last, or else seen first."""
    first_s: float
    """d_1."""
    prior: float | None
    """r_0; None where it is unknown."""
    last: TaskCounts
    ages: deque[float]
    is_idle: bool = False
    """Whether it was so for a part of the time up to the last reading."""

    def rate(self) -> float | None:
        """Eq. 1; None while nothing is known."""
        if self.is_idle:
            return self.prior
        prior_s = 0.0 if self.prior is None else PRIOR_S
        held_s = _ran_s(self.last) - _ran_s(self.began)
        within_s = prior_s + max(held_s - (median(self.ages) - self.first_s), 0.0)
        emitted = prior_s * (self.prior or 0.0) + _emitted(self.last) - _emitted(self.began)
        return emitted / within_s if within_s > 0 else None


@dataclass
class _Vertex:
    off_s: float
    """d_0."""
    rate: float | None = None
    """Records/s that arrive, as known last."""
    tasks: dict[int, _Followed] = field(default_factory=dict)


class EmitDelays:
    """Follows the tasks of the sources of one job from reading to reading."""

    def __init__(self) -> None:
        self._vertices: dict[str, _Vertex] = {}

    def seen(self, counts: JobCounts) -> JobCounts:
        """A further reading, with what waits before each source task by Eq. 2 where its source reports less.

        What waits stays unknown where the source does not report it at all.
        """
        return replace(counts, vertices=tuple(self._vertex(v) if v.is_source else v for v in counts.vertices))

    def _vertex(self, vertex: VertexCounts) -> VertexCounts:
        reported = [t for t in vertex.tasks if t.runs and None not in (t.pending, t.age_s, t.ran_s, t.emitted)]
        if not reported:
            return vertex
        youngest_s = min(map(_age_s, reported))
        known = self._vertices.setdefault(vertex.id, _Vertex(youngest_s))
        known.off_s = min(known.off_s, youngest_s)
        for task in reported:
            self._follow(known, task, len(vertex.tasks))
        waiting = {task.task: self._waiting(known, task) for task in reported}
        self._remember(known, reported)
        tasks = (
            replace(t, pending=max(t.pending or 0.0, waiting.get(t.task, 0.0))) if t in reported else t
            for t in vertex.tasks
        )
        return replace(vertex, tasks=tuple(tasks))

    @staticmethod
    def _follow(known: _Vertex, task: TaskCounts, tasks: int) -> None:
        one = known.tasks.get(task.task)
        if one is None or one.last.attempt != task.attempt or _ran_s(task) < _ran_s(one.last):
            prior = None if known.rate is None else known.rate / tasks
            known.tasks[task.task] = _Followed(task, _age_s(task), prior, task, deque([_age_s(task)], _AGES))
            return
        passed_s = _ran_s(task) - _ran_s(one.last)
        if passed_s <= 0:
            return
        one.ages.append(_age_s(task))
        one.is_idle = _idle_s(task) - _idle_s(one.last) >= HELD * passed_s
        if one.is_idle:
            one.prior = (_emitted(task) - _emitted(one.last)) / passed_s
            one.began, one.first_s, known.off_s = task, _age_s(task), _age_s(task)
        one.last = task

    @staticmethod
    def _waiting(known: _Vertex, task: TaskCounts) -> float:
        one = known.tasks[task.task]
        return 0.0 if one.is_idle else max(median(one.ages) - known.off_s, 0.0) * (one.rate() or 0.0)

    @staticmethod
    def _remember(known: _Vertex, reported: Sequence[TaskCounts]) -> None:
        rates = [known.tasks[task.task].rate() for task in reported]
        if None not in rates:
            known.rate = sum(rate or 0.0 for rate in rates)


def _ran_s(task: TaskCounts) -> float:
    return task.ran_s or 0.0


def _idle_s(task: TaskCounts) -> float:
    return task.idle_s or 0.0


def _emitted(task: TaskCounts) -> float:
    return task.emitted or 0.0


def _age_s(task: TaskCounts) -> float:
    return task.age_s or 0.0
