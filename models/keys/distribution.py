"""The key distribution of a recorded stream: its heavy hitters, its tail, its change over time, and tasks' shares of it."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np
from pydantic import Field

from models.errors import InvalidInput
from models.keys.groups import folded, key_groups, task_counts
from models.keys.sketch import KeySketch
from models.keys.sketches import WindowCounts
from models.keys.tail import zipf_exponent
from models.plan.parts import Interval
from models.schema import Format, NonNegative, Positive, PositiveInt, Ratio

HEAVY_HITTERS: Final = 20
"""So many are listed at most."""
LEAST_SHARE: Final = 0.001
"""A key with a smaller share is of the tail: it fills no task of up to 1,000."""
_NORMAL_QUANTILE: Final = 1.959963984540054

Key = bool | int | str | tuple[bool | int | str, ...]


class HeavyHitter(Format):
    """A key with a large share of the records."""

    key: Key = Field(description="Its value; a list of values for a key of several columns.")
    low: Ratio = Field(description="Its share of the records is at least this.")
    high: Ratio = Field(description="Its share of the records is at most this.")


class Tail(Format):
    """The keys other than the heavy hitters."""

    keys: NonNegative = Field(description="How many there are.")
    share: Ratio = Field(description="Their share of the records together.")
    exponent: Interval | None = Field(
        description="Of Zipf's law, 0 for keys that are alike; null for fewer than 50 keys, or without such a law."
    )


class Spread(Format):
    """Quantiles over the records: half of the records come in windows with at most the median."""

    median: Ratio = Field(description="Half of the records.")
    p95: Ratio = Field(description="95 % of the records.")
    highest: Ratio = Field(description="All of them.")


class TaskShares(Format):
    """The records of each task, by Flink's assignment of keys to tasks."""

    parallelism: PositiveInt = Field(description="Tasks.")
    key_groups: PositiveInt = Field(description="Flink's maximum parallelism.")
    records: tuple[int, ...] = Field(description="Records of each task, by its number.")
    fullest_task: int = Field(description="The number of the task with most records.")
    fullest_share: Ratio = Field(description="Its share of the records.")
    ideal_share: Ratio = Field(description="Of each task, if all had as many records.")
    in_windows: Spread | None = Field(
        None, description="Share of the task that is fullest in a window; null without a time."
    )


class ChangeOverTime(Format):
    """How the fullest key group changes; a key that is hot for a while makes its group the fullest for that time."""

    window_s: Positive = Field(description="Length of a window, seconds.")
    windows: PositiveInt = Field(description="Windows with records that were counted.")
    counted_share: Ratio = Field(
        description="Share of all windows that are counted: drawn at random where they are too many."
    )
    fullest_group: Spread = Field(description="Share of the key group that is fullest in a window.")
    fullest_group_overall: Ratio = Field(description="Share of the key group that is fullest in the whole stream.")
    groups_once_fullest: PositiveInt = Field(description="Key groups that are the fullest in some window.")
    stays_fullest: Ratio | None = Field(
        description="How often the fullest group of a window is that of the next one, too; null without such pairs."
    )


class KeyDistribution(Format):
    """What a recorded stream says of its keys."""

    records: PositiveInt = Field(description="Records with a key.")
    distinct_keys: Interval = Field(description="Distinct keys; exact where low and high are equal.")
    heavy_hitters: tuple[HeavyHitter, ...] = Field(description="The most frequent keys, the largest share first.")
    tail: Tail = Field(description="The other keys.")
    shares: tuple[TaskShares, ...] = Field(description="What tasks get, by parallelism.")
    change: ChangeOverTime | None = Field(description="Null without a time of the records.")


def key_distribution(
    sketch: KeySketch, parallelism: Sequence[int], total: int | None, window_s: float = 1.0
) -> KeyDistribution:
    """What a sketch says.

    Args:
        parallelism: for which shares are wanted.
        total: key groups; None: Flink's default for each parallelism.

    Raises:
        InvalidInput: there are no records, or a parallelism is above the number of key groups.
    """
    if sketch.records == 0:
        raise InvalidInput("there are no records with a key")
    heavy = heavy_hitters(sketch)
    return KeyDistribution(
        records=sketch.records,
        distinct_keys=_distinct(sketch),
        heavy_hitters=heavy,
        tail=_tail(sketch, heavy),
        shares=tuple(shares(sketch, p, key_groups(p) if total is None else total) for p in parallelism),
        change=None if sketch.windows is None else _change(sketch, sketch.windows, window_s),
    )


def heavy_hitters(sketch: KeySketch, most: int = HEAVY_HITTERS) -> tuple[HeavyHitter, ...]:
    """The most frequent keys, largest first; those of which the sketch may miss more than half are left out."""
    error, total = sketch.heavy.error, sketch.records
    found = sorted(sketch.heavy.counts.items(), key=lambda one: (-one[1], str(one[0])))[:most]
    return tuple(
        HeavyHitter(key=key, low=low / total, high=min((low + _missed(sketch, key, low, error)) / total, 1.0))
        for key, low in found
        if low >= max(error, LEAST_SHARE * total)
    )


def _missed(sketch: KeySketch, key: object, low: int, error: int) -> int:
    """At most so many records of a key are missing in its count; none where the sample holds it."""
    exact = sketch.sample.counts.get(key)
    return error if exact is None else exact - low


def shares(sketch: KeySketch, parallelism: int, total: int) -> TaskShares:
    """What each task gets.

    Args:
        total: key groups, a divisor of those counted.

    Raises:
        InvalidInput: there are fewer key groups than tasks.
    """
    of_tasks = task_counts(folded(sketch.groups, total), parallelism)
    fullest = int(of_tasks.argmax())
    return TaskShares(
        parallelism=parallelism,
        key_groups=total,
        records=tuple(of_tasks.tolist()),
        fullest_task=fullest,
        fullest_share=of_tasks[fullest] / sketch.records,
        ideal_share=1 / parallelism,
        in_windows=_in_windows(sketch.windows, parallelism, total),
    )


def _in_windows(windows: WindowCounts | None, parallelism: int, total: int) -> Spread | None:
    if windows is None or not windows.counts or windows.groups % total:
        return None
    return _spread(task_counts(folded(np.array(list(windows.counts.values())), total), parallelism))


def _spread(counts: np.ndarray) -> Spread:
    """Of the largest share in each window; counts of shape (windows, parts)."""
    records, largest = counts.sum(axis=1), counts.max(axis=1) / counts.sum(axis=1)
    order = np.argsort(largest)
    reached = np.cumsum(records[order]) / records.sum()
    at = [largest[order][np.searchsorted(reached, q - 1e-12)] for q in (0.5, 0.95)]
    return Spread(median=at[0], p95=at[1], highest=largest.max())


def _distinct(sketch: KeySketch) -> Interval:
    sample = sketch.sample
    half = _NORMAL_QUANTILE * sample.distinct_deviation
    low = max(sample.distinct - half, float(len(sample.counts)))
    return Interval(value=sample.distinct, low=low, high=sample.distinct + half, probability=0.95)


def _tail(sketch: KeySketch, heavy: Sequence[HeavyHitter]) -> Tail:
    inside = {one.key for one in heavy}
    least = min((round(one.low * sketch.records) for one in heavy), default=sketch.records)
    counts = [count for key, count in sketch.sample.counts.items() if key not in inside]
    in_law = np.array([count for count in counts if count <= least], np.int64)
    return Tail(
        keys=len(counts) / sketch.sample.rate,
        share=max(1.0 - sum((one.low + one.high) / 2 for one in heavy), 0.0),
        exponent=zipf_exponent(in_law, least),
    )


def _change(sketch: KeySketch, windows: WindowCounts, window_s: float) -> ChangeOverTime:
    numbers = sorted(windows.counts)
    fullest = {number: int(windows.counts[number].argmax()) for number in numbers}
    pairs = [fullest[one] == fullest[other] for one, other in pairwise(numbers) if other == one + 1]
    return ChangeOverTime(
        window_s=window_s,
        windows=len(numbers),
        counted_share=windows.rate,
        fullest_group=_spread(np.array([windows.counts[number] for number in numbers])),
        fullest_group_overall=folded(sketch.groups, windows.groups).max() / sketch.records,
        groups_once_fullest=len(set(fullest.values())),
        stays_fullest=sum(pairs) / len(pairs) if pairs else None,
    )
