"""What waits before a source, from what Flink reports of it.

Kafka's source reports `pendingRecords` of each partition as of the last fetch that returned its records. A job with few
expensive records polls rarely while it is held back, so that it may report next to nothing for minutes while records pile up.
Two more are reported: what the consumer has fetched, and how old the record was that a source emitted last
(`currentEmitEventTimeLag`, FLIP-33).

    p       `pendingRecords`
    f, u    records that the consumer has fetched (`records-consumed-total`), and that the source has read (`numRecordsIn`)
    s       time since the consumer was asked for more (`last-poll-seconds-ago`, whole seconds, so that half of one is missing)
    d       age of the record emitted last, by its time stamp
    d_0     the median of the last three that were seen when a task had been idle, and nothing waited: by so much time stamps
            are off. Not the last alone, as a task that was idle at first may be held at the end.
    T, E    time since then, and records emitted meanwhile
    d_1     the age at its begin
    r_0     records/s that arrived before: those emitted while it was idle for a part, or known before it was started again

What was emitted in that time arrived within T - (d - d_1), and what arrived in the last d - d_0 waits:

    rate    = (W r_0 + E) / (W + T - (d - d_1))                                                    (1)
    waiting = max(f - u + p + min(s + 1/2, d - d_0) rate, (d - d_0) rate)                          (2)

and f - u + p while the task is idle for a part, as then it waits for records, and not they for it. What is not fetched came
after the record that was emitted last, so that it cannot have come for longer than d - d_0. W lets r_0 count while T is short,
as a task emits in bursts after a start.

Neither part of (2) is enough. The consumer counts a fetch only once all of it was handed out, so that f is too small while it
has a large one. And what was fetched is emitted partition by partition, each from its oldest record to its newest, so that d
is small where a new record was emitted last.

Where a broker counts what waits, the offsets to which it was read are as old as Flink's metrics, up to a refresh
(`metrics.fetcher.update-interval`). Before a task that is idle for a part no more waits than

    f - u + (d - d_0) rate                                                                         (3)
"""

from collections import deque
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Final, Self

from models.capacity.observed.counters.counts import JobCounts, TaskCounts, VertexCounts

HELD: Final = 0.05
"""Share of its time that a task is idle at most while records wait for it."""
PRIOR_S: Final = 10.0
"""W."""
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
    fetched: float | None
    """f - u, in records that are emitted; None where it is not reported."""
    pending: float
    """p, or by the broker."""
    polled_s: float | None
    """s; None where it is not reported."""

    @classmethod
    def of(cls, task: TaskCounts) -> Self | None:
        """None where some of it, or what waits, is unknown."""
        if not task.runs or task.pending is None:
            return None
        if task.ran_s is None or task.idle_s is None or task.emitted is None or task.age_s is None:
            return None
        fetched = None if task.fetched is None or task.read is None else max(task.fetched - task.read, 0.0)
        return cls(
            task.attempt,
            task.ran_s,
            task.idle_s,
            task.emitted,
            task.age_s,
            None if fetched is None else fetched * task.emitted_per_read,
            task.pending,
            task.polled_s,
        )


@dataclass
class _Followed:
    """A task since it was started."""

    began: _Reading
    """When it was idle last, or else seen first."""
    prior: float | None
    """r_0; None where it is unknown."""
    last: _Reading
    is_idle: bool = False
    """Whether it was so for a part of the time up to the last reading."""

    def delay_s(self, off_s: float) -> float:
        """d - d_0."""
        return max(self.last.age_s - off_s, 0.0)

    def rate(self) -> float | None:
        """Eq. 1; None while nothing is known."""
        if self.is_idle:
            return self.prior
        prior_s = 0.0 if self.prior is None else PRIOR_S
        held_s = self.last.ran_s - self.began.ran_s
        within_s = prior_s + max(held_s - (self.last.age_s - self.began.age_s), 0.0)
        emitted = prior_s * (self.prior or 0.0) + self.last.emitted - self.began.emitted
        return emitted / within_s if within_s > 0 else None

    def waiting(self, off_s: float) -> float:
        """Eq. 2."""
        known = (self.last.fetched or 0.0) + self.last.pending
        if self.is_idle:
            return known
        rate, delay_s = self.rate() or 0.0, self.delay_s(off_s)
        since_s = 0.0 if self.last.polled_s is None else min(self.last.polled_s + 0.5, delay_s)
        return max(known + since_s * rate, delay_s * rate)

    def counted(self, off_s: float) -> float:
        """What the broker counts, at most Eq. 3."""
        if not self.is_idle or self.last.fetched is None:
            return self.last.pending
        return min(self.last.pending, self.last.fetched + self.delay_s(off_s) * (self.prior or 0.0))


@dataclass
class _Vertex:
    ages_idle: deque[float]
    """Of the last readings with a task that had been idle, the least of each."""
    rate: float | None = None
    """Records/s that arrive, as known last."""
    tasks: dict[int, _Followed] = field(default_factory=dict)

    @property
    def off_s(self) -> float:
        """d_0."""
        return median(self.ages_idle)

    def follow(self, number: int, now: _Reading, tasks: int) -> _Followed:
        """Take in a further reading of one of its tasks."""
        one = self.tasks.get(number)
        if one is None or one.last.attempt != now.attempt or now.ran_s < one.last.ran_s:
            prior = None if self.rate is None else self.rate / tasks
            one = self.tasks[number] = _Followed(now, prior, now)
            return one
        passed_s = now.ran_s - one.last.ran_s
        if passed_s <= 0:
            return one
        one.is_idle = now.idle_s - one.last.idle_s >= HELD * passed_s
        if one.is_idle:
            one.prior = (now.emitted - one.last.emitted) / passed_s
            one.began = now
        one.last = now
        return one


class LagEstimator:
    """Follows the tasks of the sources of one job from reading to reading."""

    def __init__(self) -> None:
        self._vertices: dict[str, _Vertex] = {}

    def seen(self, counts: JobCounts) -> JobCounts:
        """A further reading, with what waits before each source task by Eq. 2 or, where a broker counts it, at most Eq. 3. It
        stays unknown where it is not reported."""
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
        if idle := [one.last.age_s for one in followed.values() if one.is_idle]:
            known.ages_idle.append(min(idle))
        rates = [one.rate() for one in followed.values()]
        if None not in rates:
            known.rate = sum(rate or 0.0 for rate in rates)
        waiting = {
            number: one.waiting(known.off_s) if vertex.logs is None else one.counted(known.off_s)
            for number, one in followed.items()
        }
        tasks = (replace(t, pending=waiting[t.task]) if t.task in waiting else t for t in vertex.tasks)
        return replace(vertex, tasks=tuple(tasks))
