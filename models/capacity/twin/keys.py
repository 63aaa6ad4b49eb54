"""How the keys of an input are distributed: from a recorded stream, or from what tasks got while measuring.

Notation:

    p        tasks, which share the key groups as evenly as these can be shared
    s_jt     share of task j of the records in sample interval t, each interval of length D
    s_j      its share of all records
    e        share of the fullest task if all key groups had the same
    h        share of the records that carry a hot key

A key that stays hot shows in the totals:

    max_j s_j = h + (1 - h) e                                                                     (1)

and few keys show in them, too, whichever key groups they fall into. With q_k the share of key k,

    sum_j (s_j - e_j)^2 = (1 - sum_j e_j^2) sum_k q_k^2     on average                            (2)

where e_j is the share of the key groups that task j has. If most of the left side is one task's, (1) gives h; otherwise
the keys are as if 1 / sum_k q_k^2 of them had the same share each. Of keys that change, h^2 T of (3) over the whole time is
left in (2).

A hot key that lasts a time T, shorter than the measurement, goes to another task each time, so that the totals are even
and single intervals are not. In each interval some D / T hot keys share h:

    mean_t sum_j s_jt^2 - sum_j s_j^2 = h^2 (1 - sum_j s_j^2) T / D                               (3)

(3) determines h where T is known: behind an operator whose windows fire every T, the keys that come and go are windows, of
which each has all that fires at once. Elsewhere only h^2 T is known. If it is large, the longest T that (3) allows is D,
which is what is assumed. Otherwise, h^2 T counted in records is how many records with the same key follow each
other; how long bursts at a task are depends on this product alone, and h is taken to be BURST_SHARE.

A recorded stream shows the keys themselves. However many tasks there are, the fullest has at least the records of the most
frequent key, which is taken as h. If another key group is the fullest in most windows of time, the hot key changes, and h
is what the fullest group of a window has beyond an even share.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from models.job import Keys
from models.keys.distribution import KeyDistribution
from models.keys.groups import key_groups, task_counts

MANY_KEYS: Final = 10_000_000
"""So many fill the key groups evenly."""
FOR_GOOD: Final = 1e15
"""Records after which another key is hot, if one is hot all the time."""
LEAST_EXCESS: Final = 0.1
"""A key that has less than so much above an even share of the records is not hot."""
ONE_TASKS: Final = 0.5
"""Share of the left side of (2) from which on it is one task's."""
LEAST_CHANGING: Final = 0.05
"""Left side of (3), from which on keys last an interval: 1 where all records of an interval go to one task."""
LEAST_BURST: Final = 64.0
"""Records with the same key in a row; fewer are spread by the buffers before a task."""
BURST_SHARE: Final = 0.25
CLEARLY: Final = 3.0
"""What is left of changing keys varies from run to run; less than so many times its mean shows no few keys."""

MOSTLY: Final = 0.5
"""A key stays hot where the fullest key group is that of the window before in at least so many windows."""


@dataclass(frozen=True)
class TaskRecords:
    """What the tasks of one operator got in one measurement run."""

    records: np.ndarray
    """float64[intervals, tasks]: intervals in which none got any are left out."""
    interval_s: float

    @property
    def tasks(self) -> int:
        return int(self.records.shape[1])


def keys_seen(runs: Sequence[TaskRecords], fires_every_s: float | None, groups: int | None) -> Keys:
    """The keys of an input that is hash-partitioned.

    Args:
        runs: of the operator; those with the most tasks count.
        fires_every_s: T, of the nearest operator before it whose windows fire; None without one.
        groups: key groups that the job states; None: Flink's default.
    """
    most = max((run.tasks for run in runs), default=1)
    largest = [run for run in runs if run.tasks == most and run.records.sum() > 0]
    if most < 2 or not largest:
        return Keys(distinct=MANY_KEYS)
    changing = float(np.median([concentration(run) for run in largest]))
    if changing >= LEAST_CHANGING:
        interval_s = largest[0].interval_s
        period_s = interval_s if fires_every_s is None else fires_every_s
        hot = min(1.0, float(np.sqrt(changing * max(interval_s / period_s, 1.0))))
        return Keys(distinct=MANY_KEYS, hot_share=hot, hot_period_s=period_s)
    in_a_row = changing * float(np.median([run.records.sum(axis=1).mean() for run in largest]))
    keys = _lasting(largest, groups, chance=in_a_row / float(np.median([run.records.sum() for run in largest])))
    if keys.hot_share == 0 and fires_every_s is None and in_a_row >= LEAST_BURST:
        bursts = {"hot_share": BURST_SHARE, "hot_period_records": in_a_row / BURST_SHARE**2}
        return keys.model_copy(update=bursts)
    return keys


def _lasting(runs: Sequence[TaskRecords], groups: int | None, chance: float) -> Keys:
    """Keys that stay, by (1) and (2).

    Args:
        chance: (2)'s sum of q_k^2 that is left of keys which change, on average.
    """
    even = _even_shares(runs[0].tasks, groups)
    beyond = [run.records.sum(axis=0) / run.records.sum() - even for run in runs]
    repeats = float(np.median([(d**2).sum() for d in beyond])) / max(1 - float((even**2).sum()), 1e-9)
    most = max(even.max(), float(np.median([(d + even).max() for d in beyond])))
    of_fullest = float(np.median([(d**2)[d.argmax()] / max((d**2).sum(), 1e-300) for d in beyond]))
    if of_fullest >= ONE_TASKS and most > (1 + LEAST_EXCESS) * even.max():
        hot = (most - even.max()) / (1 - even.max())  # (1)
        return Keys(distinct=MANY_KEYS, hot_share=float(hot), hot_period_records=FOR_GOOD)
    if repeats <= CLEARLY * chance:
        return Keys(distinct=MANY_KEYS)
    return Keys(distinct=max(1, round(min(1 / max(repeats - chance, 1e-9), MANY_KEYS))))


def keys_recorded(distribution: KeyDistribution, groups: int) -> Keys:
    """The keys of an input of which a stream is recorded.

    Args:
        groups: key groups in which the fullest of a window was counted.
    """
    distinct, change = max(round(distribution.distinct_keys.value), 1), distribution.change
    if change is not None and change.stays_fullest is not None and change.stays_fullest < MOSTLY:
        hot = (change.fullest_group.median - 1 / groups) / (1 - 1 / groups)
        if hot >= LEAST_CHANGING:
            return Keys(distinct=distinct, hot_share=hot, hot_period_records=distribution.records / change.windows)
    first = distribution.heavy_hitters[:1]
    share = sum((one.low + one.high) / 2 for one in first)
    if share * distinct <= 1 + LEAST_EXCESS:
        return Keys(distinct=distinct)
    return Keys(distinct=distinct, hot_share=share, hot_period_records=FOR_GOOD)


def concentration(run: TaskRecords) -> float:
    """h^2 T / D of (3): 0 where tasks have the same shares in every interval, 1 where each interval is one task's."""
    shares = run.records / run.records.sum(axis=1, keepdims=True)
    overall = run.records.sum(axis=0) / run.records.sum()
    same = float((overall**2).sum())
    return 0.0 if same >= 1 else float(((shares**2).sum(axis=1).mean() - same) / (1 - same))


def even_share(tasks: int, groups: int | None) -> float:
    """e: the fullest task's share where all key groups have the same."""
    return float(_even_shares(tasks, groups).max())


def _even_shares(tasks: int, groups: int | None) -> np.ndarray:
    """e_j of each task."""
    total = key_groups(tasks) if groups is None else groups
    return np.asarray(task_counts(np.ones(total), tasks) / total)
