"""What waits before a source at least, from how long the records that it emits have waited.

Kafka's source reports `pendingRecords` of each partition as of the last fetch that returned its records. A job with few
expensive records polls rarely while it is held back, so that it may report next to nothing for minutes while records pile up.
Flink reports how old the record was that a source emitted last, too (`currentEmitEventTimeLag`, FLIP-33).

    d       age of the record emitted last, by its time stamp
    d_0     the median of the last three that were seen when a task had been idle, and nothing waited: by so much time stamps
            are off. Not the last alone, as a task that was idle at first may be held at the end.
    T, E    time since then, and records emitted meanwhile
    d_1     the age at its begin
    r_0     records/s that arrived before: those emitted while it was idle for a part, or known before it was started again

What was emitted in that time arrived within T - (d - d_1), and what arrived in the last d - d_0 waits:

    rate    = (W r_0 + E) / (W + T - (d - d_1))                                                    (1)
    waiting = (d - d_0) x rate                                                                     (2)

W lets r_0 count while T is short, as a task emits in bursts after a start. What a task fetches it emits partition by partition,
each from its oldest record to its newest, so that the age falls and rises again while records wait for as long as the oldest:
d is the larger of the last two ages.

That is the age of one record of any partition, which is old after a backlog though others have none left. So where what Kafka's
consumer has fetched shows what waits, that counts instead (`waiting_by_fetches`).
"""

from collections import deque
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Final, Self

from models.capacity.observed.counters.counts import JobCounts, TaskCounts, VertexCounts
from models.capacity.observed.waiting.fetched import waiting_by_fetches

HELD: Final = 0.05
"""Share of its time that a task is idle at most while records wait for it."""
PRIOR_S: Final = 10.0
"""W."""
_AGES: Final = 2
"""Of which d is the largest."""
_IDLE: Final = 3
"""Readings of which d_0 is the median."""


@dataclass(frozen=True)
class _Reading:
    """What a task reports of itself at one time."""

    attempt: int
    ran_s: float
    idle_s: float
    emitted: float
    age_s: float

    @classmethod
    def of(cls, task: TaskCounts) -> Self | None:
        """None where some of it, or what waits, is unknown."""
        if not task.runs or task.pending is None:
            return None
        if task.ran_s is None or task.idle_s is None or task.emitted is None or task.age_s is None:
            return None
        return cls(task.attempt, task.ran_s, task.idle_s, task.emitted, task.age_s)


@dataclass
class _Followed:
    """A task since it was started."""

    began: _Reading
    """When it was idle last, or else seen first."""
    prior: float | None
    """r_0; None where it is unknown."""
    recent: deque[_Reading]
    is_idle: bool = False
    """Whether it was so for a part of the time up to the last reading."""

    def age_s(self) -> float:
        """d."""
        return max(one.age_s for one in self.recent)

    def rate(self) -> float | None:
        """Eq. 1; None while nothing is known."""
        if self.is_idle:
            return self.prior
        prior_s = 0.0 if self.prior is None else PRIOR_S
        held_s = self.recent[-1].ran_s - self.began.ran_s
        within_s = prior_s + max(held_s - (self.age_s() - self.began.age_s), 0.0)
        emitted = prior_s * (self.prior or 0.0) + self.recent[-1].emitted - self.began.emitted
        return emitted / within_s if within_s > 0 else None

    def waiting(self, off_s: float) -> float:
        """Eq. 2."""
        return 0.0 if self.is_idle else max(self.age_s() - off_s, 0.0) * (self.rate() or 0.0)


@dataclass
class _Vertex:
    ages_idle: deque[float]
    """Of the last readings with a task that had been idle, the least of each."""
    rate: float | None = None
    """Records/s that arrive, as known last."""
    tasks: dict[int, _Followed] = field(default_factory=dict)
    last: dict[int, TaskCounts] = field(default_factory=dict)

    @property
    def off_s(self) -> float:
        """d_0."""
        return median(self.ages_idle)

    def follow(self, number: int, now: _Reading, tasks: int) -> _Followed:
        """Take in a further reading of one of its tasks."""
        one = self.tasks.get(number)
        if one is None or one.recent[-1].attempt != now.attempt or now.ran_s < one.recent[-1].ran_s:
            prior = None if self.rate is None else self.rate / tasks
            one = self.tasks[number] = _Followed(now, prior, deque([now], _AGES))
            return one
        passed_s = now.ran_s - one.recent[-1].ran_s
        if passed_s <= 0:
            return one
        one.is_idle = now.idle_s - one.recent[-1].idle_s >= HELD * passed_s
        if one.is_idle:
            one.prior = (now.emitted - one.recent[-1].emitted) / passed_s
            one.began = now
        one.recent.append(now)
        return one

    def waiting(self, task: TaskCounts, followed: _Followed) -> float:
        """Records before a task that reports something of them."""
        fetched = waiting_by_fetches(self.last.get(task.task), task, followed.rate() or 0.0)
        return max(task.pending or 0.0, followed.waiting(self.off_s)) if fetched is None else fetched


class EmitDelays:
    """Follows the tasks of the sources of one job from reading to reading."""

    def __init__(self) -> None:
        self._vertices: dict[str, _Vertex] = {}

    def seen(self, counts: JobCounts) -> JobCounts:
        """A further reading, with what waits before each source task by its fetches or, where these do not show it, by Eq. 2 if
        its source reports less. It stays unknown where the source does not report it at all.
        """
        return replace(counts, vertices=tuple(self._vertex(v) if v.is_source else v for v in counts.vertices))

    def _vertex(self, vertex: VertexCounts) -> VertexCounts:
        reported = {task.task: now for task in vertex.tasks if (now := _Reading.of(task)) is not None}
        if not reported:
            return vertex
        youngest_s = min(now.age_s for now in reported.values())
        known = self._vertices.setdefault(vertex.id, _Vertex(deque([youngest_s], _IDLE)))
        if youngest_s < known.off_s:  # it can be no more, whether a task was idle or not
            known.ages_idle = deque([youngest_s], _IDLE)
        followed = {number: known.follow(number, now, len(vertex.tasks)) for number, now in reported.items()}
        if idle := [one.recent[-1].age_s for one in followed.values() if one.is_idle]:
            known.ages_idle.append(min(idle))
        rates = [one.rate() for one in followed.values()]
        if None not in rates:
            known.rate = sum(rate or 0.0 for rate in rates)
        waiting = {
            task.task: known.waiting(task, followed[task.task]) for task in vertex.tasks if task.task in followed
        }
        tasks = tuple(replace(t, pending=waiting[t.task]) if t.task in waiting else t for t in vertex.tasks)
        known.last = {task.task: task for task in vertex.tasks}
        return replace(vertex, tasks=tasks)
