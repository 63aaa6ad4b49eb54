"""Which of a young job's intervals count: until Java has compiled its code, a record costs up to ten times as much.

    b_v, n_v   busy seconds and records of vertex v in a round, all of its tasks together
    c_v        what a record costs in the end: the median of b_v / n_v over the later half of the rounds

A round costs

    I = sum_v b_v / sum_v n_v c_v                                                                  (1)

times what the same records cost in the end, vertices counting by their work. Compiling makes rounds cheaper and cheaper,
so that those at the beginning which cost more by DEARER are left out; at most half of all, since c_v is of the rest.
Flink reports no time of compilation; that of a job which has run for long is not looked for, since nothing else ends.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import Final

from models.capacity.observed.counters.counts import JobCounts
from models.capacity.observed.counters.intervals import TaskInterval

DEARER: Final = 0.1
"""Share by which a round may cost more than those at the end and count."""
YOUNG_S: Final = 300.0
"""Tasks that ran for longer before they were observed have compiled what they often do."""
FEWEST_ROUNDS: Final = 3
"""With fewer there is no beginning to compare with an end."""


def settled(readings: Sequence[JobCounts], intervals: Sequence[TaskInterval]) -> list[TaskInterval]:
    """The intervals of a young job from the first round on that costs what the later ones do; of others, all."""
    counted = _counted_costs(readings, intervals)
    begun = min(counted, default=0.0)
    return [one for one in intervals if not counted or one.ended_s >= begun]


def still_falling(readings: Sequence[JobCounts], intervals: Sequence[TaskInterval]) -> float | None:
    """By which share records became cheaper from the first to the second half of the rounds that count; None where they hardly
    did, or the job is old."""
    kept = list(_counted_costs(readings, intervals).values())
    first, last = kept[: len(kept) // 2], kept[(len(kept) + 1) // 2 :]
    if not first or fmean(first) <= (1 + DEARER) * fmean(last):
        return None
    return 1 - fmean(last) / fmean(first)


def _counted_costs(readings: Sequence[JobCounts], intervals: Sequence[TaskInterval]) -> dict[float, float]:
    """I of the rounds of a young job that count, by their times; empty of others."""
    costs = _costs(intervals) if _ran_s(readings) < YOUNG_S else {}
    begun = next((time_s for time_s, cost in costs.items() if cost <= 1 + DEARER), 0.0)
    return {time_s: cost for time_s, cost in costs.items() if time_s >= begun}


def _ran_s(readings: Sequence[JobCounts]) -> float:
    """For how long the task that ran the least had run when it was first read; 0 where no task reports it."""
    first = [task.ran_s for vertex in readings[0].vertices for task in vertex.tasks if task.ran_s is not None]
    return min(first, default=0.0)


def _costs(intervals: Sequence[TaskInterval]) -> dict[float, float]:
    """I of each round, by its time; empty with too few rounds, or where tasks do not report busy times."""
    rounds: dict[float, dict[str, list[TaskInterval]]] = {}
    for one in intervals:
        rounds.setdefault(one.ended_s, {}).setdefault(one.vertex, []).append(one)
    if len(rounds) < FEWEST_ROUNDS:
        return {}
    in_the_end = _in_the_end(list(rounds.values())[len(rounds) // 2 :])
    found = {}
    for time_s, by_vertex in rounds.items():
        known = {vertex: of for vertex, of in by_vertex.items() if vertex in in_the_end}
        expected = sum(in_the_end[vertex] * one.records_in for vertex, of in known.items() for one in of)
        if expected > 0:
            found[time_s] = sum(one.busy_s or 0.0 for of in known.values() for one in of) / expected
    return found


def _in_the_end(later: Sequence[Mapping[str, Sequence[TaskInterval]]]) -> dict[str, float]:
    """c_v, busy seconds for a record."""
    costs: dict[str, list[float]] = {}
    for by_vertex in later:
        for vertex, of in by_vertex.items():
            records, busy = sum(one.records_in for one in of), sum(one.busy_s or 0.0 for one in of)
            if records > 0 and busy > 0:
                costs.setdefault(vertex, []).append(busy / records)
    return {vertex: median(of) for vertex, of in costs.items()}
