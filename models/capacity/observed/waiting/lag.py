"""What arrives, and what a job takes at its limit, from the lag of its sources.

    c_k    records/s that the sources emitted in round k
    L_k    records that waited before them at its end
    t_k    time of its reading
    r_k    for how long a task had run by its own clock when its counters were taken

    a_k    when the broker was asked for the ends of the logs, before t_k

Where the broker counts what waits, the end of its log is of a_k, but what was read of it is as old as the task's counters.
A task's clock runs as ours does, so that these are late by

    l_k = (a_k - r_k) - min_j (t_j - r_j)                                                          (1)

against the freshest reading, and c l_k of the records between the two were read meanwhile. Counters that are newer than a_k are
not late.

What arrives is the mean of c + dL/dt: an overloaded source emits less than that, one that catches up emits more. While
records wait from the beginning of a round to its end, nothing but the job itself limits what it takes, so that c_k is its
MST; a catch-up after an outage measures it without anyone asking.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from models.capacity.diagnosis.facts import HELD_BACK
from models.capacity.diagnosis.finding import BUSY
from models.capacity.observed.counters.counts import JobCounts
from models.capacity.observed.counters.intervals import TaskInterval
from models.plan.parts import Interval

BACKLOG_S: Final = 3.0
"""From so many seconds of records on, what waits is a backlog: less is under way to the sources."""
MOST_LATE_S: Final = 6.0
"""Counters that are older do not say what waits: what was read since is not known so far, seconds."""
STEADY: Final = 0.05
"""Share of what is taken by which a backlog changes at least where the job is at its limit, or else a task is busy."""
WARM_S: Final = 20.0
"""After a start, caches are cold and code is not compiled, seconds."""
FEWEST_ROUNDS: Final = 2
OF_SEEN: Final = 0.15
"""Half-width of the interval of an MST that was seen, at 95 %, as a share: runs of the same configuration differ so much."""
Z_95: Final = 1.96


@dataclass(frozen=True)
class Round:
    """All sources together between two readings."""

    ended_s: float
    seconds: float
    emitted: float
    """Records/s."""
    lag: float | None
    """Records that wait at its end; None where a source does not report them."""
    is_held: bool = True
    """Whether a task was busy, or backpressured, for most of it; true where that is unknown."""


def rounds(readings: Sequence[JobCounts], intervals: Sequence[TaskInterval]) -> list[Round]:
    """The rounds in which every source task reported that had not finished."""
    sources = {v.id for r in readings for v in r.vertices if v.is_source}
    tasks = {(one.vertex, one.task) for one in intervals if one.vertex in sources}
    late = _late_s(readings)
    by_end: dict[float, list[TaskInterval]] = {}
    for one in intervals:
        by_end.setdefault(one.ended_s, []).append(one)
    found = []
    for reading in readings:
        ended = by_end.get(reading.time_s, [])
        own = [one for one in ended if one.vertex in sources]
        done = {(v.id, task.task) for v in reading.vertices for task in v.tasks if task.finished}
        if own and {(one.vertex, one.task) for one in own} >= tasks - done:
            found.append(
                Round(
                    ended_s=reading.time_s,
                    seconds=max(one.seconds for one in own),
                    emitted=sum(one.records_in / one.seconds for one in own),
                    lag=_corrected(reading, own, late),
                    is_held=any(map(_is_held, ended)),
                )
            )
    return found


def lag_before(readings: Sequence[JobCounts], intervals: Sequence[TaskInterval]) -> float | None:
    """Records that waited at the last reading but one, where that is the first after a start, which ends no round."""
    before, after = readings[-2:]
    own = [one for one in intervals if one.ended_s == after.time_s]
    return _corrected(before, own, _late_s(readings))


_Key = tuple[str, int, float]
"""Vertex, task, and time of the reading."""


def _corrected(reading: JobCounts, own: Sequence[TaskInterval], late: Mapping[_Key, float]) -> float | None:
    """What waits at a reading, less what was read since its counters were taken, at the rates of these intervals."""
    by_task = [(one, late.get((one.vertex, one.task, reading.time_s), 0.0)) for one in own]
    lag = None if any(seconds > MOST_LATE_S for _, seconds in by_task) else reported_lag(reading)
    read = sum(one.records_in / one.seconds * seconds for one, seconds in by_task)
    return None if lag is None else max(lag - read, 0.0)


def _late_s(readings: Sequence[JobCounts]) -> dict[_Key, float]:
    """By how much the counters of source tasks are older than the ends of their logs, Eq. 1; only of those with logs."""
    asked: dict[tuple[str, int, int], dict[float, float]] = {}
    freshest: dict[tuple[str, int, int], float] = {}
    for reading in readings:
        for vertex in reading.vertices:
            if (logs := vertex.logs) is None:
                continue
            for task in vertex.tasks:
                if task.runs and task.ran_s is not None:
                    key = (vertex.id, task.task, task.attempt)
                    asked.setdefault(key, {})[reading.time_s] = logs.asked_s - task.ran_s
                    freshest[key] = min(freshest.get(key, math.inf), reading.time_s - task.ran_s)
    return {
        (*key[:2], time_s): max(since - freshest[key], 0.0) for key, at in asked.items() for time_s, since in at.items()
    }


def _is_held(one: TaskInterval) -> bool:
    busy = one.busy_s is None or one.busy_s >= BUSY * one.seconds
    return busy or one.backpressured_s > HELD_BACK * one.seconds


def reported_lag(reading: JobCounts) -> float | None:
    """Records that wait by what the sources report, uncorrected; None where a task that still runs does not report it."""
    tasks = [task for v in reading.vertices if v.is_source for task in v.tasks if task.runs]
    known = [task.pending for task in tasks if task.pending is not None]
    return sum(known) if tasks and len(known) == len(tasks) else None


def consumption(of: Sequence[Round]) -> float:
    """Records/s that the sources emitted, mean over the rounds."""
    seconds = sum(one.seconds for one in of)
    return sum(one.emitted * one.seconds for one in of) / seconds if seconds > 0 else 0.0


def growth(of: Sequence[Round]) -> float | None:
    """Records/s by which the lag grows (Theil and Sen, so that one late report does not count); None where it is unknown."""
    known = [(one.ended_s, one.lag) for one in of if one.lag is not None]
    if len(known) < 2:
        return None
    times, lags = np.array(known, dtype=np.float64).T
    first, second = np.triu_indices(len(times), k=1)
    return float(np.median((lags[second] - lags[first]) / (times[second] - times[first])))


def arriving(of: Sequence[Round]) -> float | None:
    """Records/s that arrive: all that were taken, and by how much more wait in the end; None where the lag is unknown."""
    known = [one for one in of if one.lag is not None]
    if len(known) < 2:
        return None
    first, last = known[0], known[-1]
    between = [one for one in of if first.ended_s < one.ended_s <= last.ended_s]
    waits = ((last.lag or 0.0) - (first.lag or 0.0)) / (last.ended_s - first.ended_s)
    return max(consumption(between) + waits, 0.0)


def at_capacity(of: Sequence[Round], started_s: Sequence[float] = (), late_s: float = 0.0) -> list[Round]:
    """The rounds from whose beginning to whose end records waited.

    A backlog that neither grows nor falls while no task is busy is none: such records are not visible yet, as those of
    a transaction that is open.

    Args:
        late_s: by how much what was taken is reported later than what arrived: so much seems to wait beside the backlog.
        started_s: when the job started or restarted; rounds that begin less than WARM_S later are left out.
    """
    found = []
    for before, after in pairwise(of):
        if before.lag is None or after.lag is None:
            continue
        least = (BACKLOG_S + late_s) * after.emitted
        warm = all(not (after.ended_s - after.seconds - WARM_S < s <= after.ended_s) for s in started_s)
        changes = abs(after.lag - before.lag) > STEADY * after.emitted * (after.ended_s - before.ended_s)
        if warm and after.emitted > 0 and min(before.lag, after.lag) > least and (after.is_held or changes):
            found.append(after)
    return found


def mst_seen(of: Sequence[Round]) -> Interval | None:
    """The MST by rounds at capacity, records/s; None with fewer than two of them."""
    if len(of) < FEWEST_ROUNDS:
        return None
    rates = np.array([one.emitted for one in of])
    value = float(np.median(rates))
    scatter = 1.4826 * float(np.median(np.abs(rates - value))) / value
    half = float(np.hypot(OF_SEEN, Z_95 * scatter / np.sqrt(len(rates))))
    return Interval(value=value, low=value / (1 + half), high=value * (1 + half))
