"""Figures of each vertex of a running job, and the facts of its diagnosis, from the intervals of its tasks."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from models.capacity.diagnosis.facts import HELD_BACK, OperatorFacts
from models.capacity.diagnosis.finding import UNEVEN
from models.capacity.observed.counters.counts import StateCounts, VertexCounts
from models.capacity.observed.counters.intervals import TaskInterval
from models.plan.parts import Interval


@dataclass(frozen=True)
class TaskTotals:
    """What one task did in all of its intervals."""

    seconds: float
    records_in: float
    records_out: float
    bytes_out: float
    busy_s: float | None
    """None where it does not report it."""
    backpressured_s: float

    @classmethod
    def of(cls, intervals: Iterable[TaskInterval]) -> "TaskTotals":
        own = list(intervals)
        busy = [one.busy_s for one in own if one.busy_s is not None]
        return cls(
            seconds=sum(one.seconds for one in own),
            records_in=sum(one.records_in for one in own),
            records_out=sum(one.records_out for one in own),
            bytes_out=sum(one.bytes_out for one in own),
            busy_s=sum(busy) if len(busy) == len(own) else None,
            backpressured_s=sum(one.backpressured_s for one in own),
        )


@dataclass(frozen=True)
class VertexSeen:
    """A vertex with what its tasks did while it was observed. A figure is None before there is an interval, and where a
    task does not report it."""

    last: VertexCounts
    """The last reading of it."""
    label: str
    """Its name, unique in the job."""
    upstream: tuple[str, ...]
    """Labels of the vertices that send to it."""
    keyed: bool
    """Whether records are hash-partitioned to it."""
    intervals: tuple[TaskInterval, ...]
    compiled: tuple[TaskInterval, ...]
    """Those of them from which costs are taken."""

    @cached_property
    def tasks(self) -> tuple[TaskTotals, ...]:
        """Those that ran."""
        return _totals(self.intervals)

    @cached_property
    def _at_work(self) -> tuple[TaskTotals, ...]:
        """The same once their code was compiled."""
        return _totals(self.compiled)

    @property
    def parallelism(self) -> int:
        return max(1, len(self.last.tasks))

    @property
    def records_in(self) -> float | None:
        """Records/s into all tasks; emitted by them at a source."""
        return sum(t.records_in / t.seconds for t in self.tasks) if self.tasks else None

    @property
    def records_out(self) -> float | None:
        """Records/s."""
        return sum(t.records_out / t.seconds for t in self.tasks) if self.tasks else None

    @property
    def bytes_out(self) -> float | None:
        """Bytes/s."""
        return sum(t.bytes_out / t.seconds for t in self.tasks) if self.tasks else None

    @cached_property
    def state(self) -> StateCounts | None:
        """Accesses of all tasks together to their state, per second; None where none counts them."""
        known = [(one.state, one.seconds) for one in self.intervals if one.state is not None]
        if not known:
            return None
        seconds = sum(seconds for _, seconds in known) / len({one.task for one in self.intervals if one.state})
        return StateCounts(
            read_bytes=sum(state.read_bytes for state, _ in known) / seconds,
            written_bytes=sum(state.written_bytes for state, _ in known) / seconds,
            cache_hits=sum(state.cache_hits for state, _ in known) / seconds,
            cache_misses=sum(state.cache_misses for state, _ in known) / seconds,
        )

    @property
    def cache_hit_rate(self) -> float | None:
        """Share of the blocks of state that were in memory."""
        looked = 0.0 if self.state is None else self.state.cache_hits + self.state.cache_misses
        return self.state.cache_hits / looked if self.state is not None and looked > 0 else None

    @property
    def selectivity(self) -> float | None:
        into = sum(t.records_in for t in self.tasks)
        return sum(t.records_out for t in self.tasks) / into if into > 0 else None

    @cached_property
    def _busy(self) -> list[float] | None:
        """Busyness of each task."""
        shares = [min(t.busy_s / t.seconds, 1.0) for t in self._at_work if t.busy_s is not None]
        return shares if shares and len(shares) == len(self._at_work) else None

    @property
    def busyness(self) -> float | None:
        """Mean over the tasks."""
        return None if self._busy is None else float(np.mean(self._busy))

    @property
    def fullest_busyness(self) -> float | None:
        return None if self._busy is None else max(self._busy)

    @property
    def backpressure(self) -> float | None:
        """Mean over the tasks."""
        return min(float(np.mean([t.backpressured_s / t.seconds for t in self.tasks])), 1.0) if self.tasks else None

    @property
    def true_rate(self) -> float | None:
        """Records/s of useful time of one task, mean over the tasks that did something (DS2 Eq. 1)."""
        rates = [t.records_in / t.busy_s for t in self._at_work if t.busy_s and t.records_in > 0]
        return float(np.mean(rates)) if rates else None

    @property
    def fullest_share(self) -> float | None:
        """Share of the records that the fullest task gets."""
        rates = [t.records_in / t.seconds for t in self.tasks]
        return max(rates) / sum(rates) if sum(rates) > 0 else None

    @property
    def finished(self) -> bool:
        """Whether all of its input was bounded, and is read."""
        return all(task.finished for task in self.last.tasks)

    def facts(self) -> OperatorFacts:
        """The facts of its diagnosis. A source binds as one where more tasks would find no partition to read, and where
        nothing is chained to it; else its chain does."""
        partitions = self.last.partitions
        no_more = self.last.is_source and partitions is not None and self.parallelism >= partitions
        return OperatorFacts(
            name=self.label,
            parallelism=self.parallelism,
            upstream=self.upstream,
            is_source=no_more or (self.last.is_source and len(self.last.operators) == 1),
            keyed=self.keyed,
            windowed="window" in self.last.name.lower(),
            most_tasks=partitions if no_more else None,
            key_groups=self.last.max_parallelism if self.keyed else None,
            busyness=self.busyness,
            fullest_busyness=self.fullest_busyness,
            peak_busyness=None if self._busy is None else self._peak(),
            fullest_share=_counted(self.fullest_share),
            backpressure=self.backpressure,
        )

    def _peak(self) -> float | None:
        """Mean over the rounds of the busyness of the task that is busiest in each; that of the fullest task where it is not
        clearly more, since some task is the busiest in each round however even the load is. Without keys none moves between
        tasks: what is busy in turns there waits for its machine.
        """
        if not self.keyed:
            return self.fullest_busyness
        most: dict[float, float] = {}
        for one in self.compiled:
            most[one.ended_s] = max(most.get(one.ended_s, 0.0), (one.busy_s or 0.0) / one.seconds)
        peak, fullest = min(float(np.mean(list(most.values()))), 1.0), self.fullest_busyness or 0.0
        return peak if peak > UNEVEN * fullest else self.fullest_busyness


def _totals(intervals: Sequence[TaskInterval]) -> tuple[TaskTotals, ...]:
    """By task, in the order of their numbers."""
    numbers = sorted({one.task for one in intervals})
    return tuple(TaskTotals.of(one for one in intervals if one.task == number) for number in numbers)


def _counted(share: float | None) -> Interval | None:
    return None if share is None else Interval(value=share, low=share, high=share)


def held_back(seen: Sequence[VertexSeen]) -> bool:
    """Whether a source may emit less than arrives."""
    sources = [one for one in seen if one.last.is_source and not one.finished]
    return any(
        one.busyness is None or (one.backpressure or 0.0) > HELD_BACK or (one.fullest_busyness or 0.0) > 1 - HELD_BACK
        for one in sources
    )
