"""What is known of the fullest task at one parallelism from tasks' shares seen at another, without the keys themselves.

Notation: G key groups; p tasks were seen, with shares s_1..s_p; q tasks are asked about. Both have contiguous ranges of key
groups. Nothing is known of how a task's share lies in its range: one key group may have all of it.
    from above   a task has at most the shares of all seen tasks whose ranges it meets
    from below   any seen tasks i..j in a row, which n of the q tasks meet, give one of these at least (s_i + .. + s_j) / n
"""

from collections.abc import Iterable, Sequence

import numpy as np

from models.errors import InvalidInput
from models.keys.groups import check_parallelism, key_groups
from models.plan.parts import Interval


def fullest_share(seen: Iterable[Sequence[float]], parallelism: int, total: int | None = None) -> Interval:
    """The fullest task's share of the records at a parallelism; its probability is 1, if shares stay as they were seen.

    The value within the bounds is that of keys which lie evenly in the range of each task, in the last run with most tasks.

    Args:
        seen: shares (or records) of each task, by its number, of each run.
        total: key groups; None: Flink's default for each parallelism. Then one seen at another number of groups says
            only what any keys would do.

    Raises:
        InvalidInput: nothing was seen, or there are fewer key groups than tasks.
    """
    groups = key_groups(parallelism) if total is None else total
    check_parallelism(parallelism, groups)
    of_runs: dict[int, list[tuple[float, float]]] = {}
    value = 1.0 / parallelism
    for shares in sorted(seen, key=len):
        of_tasks = np.asarray(shares, np.float64)
        if of_tasks.sum() <= 0 or (of_tasks < 0).any():
            raise InvalidInput(f"the shares of tasks must be 0 or more, and their sum above 0, but got {list(shares)}")
        if total is not None or key_groups(len(of_tasks)) == groups:
            share = of_tasks / of_tasks.sum()
            of_runs.setdefault(len(share), []).append(_bounds(share, parallelism, groups))
            value = _if_even(share, parallelism, groups)
    # Runs with as many tasks show how shares vary; those with other numbers of tasks narrow each other.
    low = max([1.0 / parallelism, *(min(low for low, _ in runs) for runs in of_runs.values())])
    high = min([1.0, *(max(high for _, high in runs) for runs in of_runs.values())])
    low, high = min(low, high), max(low, high)  # they contradict each other if shares changed between runs
    return Interval(value=min(max(value, low), high), low=low, high=high, probability=1.0)


def _bounds(shares: np.ndarray, parallelism: int, groups: int) -> tuple[float, float]:
    starts, ends = _ranges(len(shares), groups)
    own_starts, own_ends = _ranges(parallelism, groups)
    above = max(
        float(shares[(starts < end) & (ends > start)].sum()) for start, end in zip(own_starts, own_ends, strict=True)
    )
    before = np.concatenate([[0.0], np.cumsum(shares)])
    below = 0.0
    for first in range(len(shares)):
        last = np.arange(first, len(shares))
        met = np.searchsorted(own_starts, ends[last]) - np.searchsorted(own_ends, starts[first], side="right")
        below = max(below, float(((before[last + 1] - before[first]) / met).max()))
    return below, min(above, 1.0)


def _if_even(shares: np.ndarray, parallelism: int, groups: int) -> float:
    ends = np.concatenate([[0], _ranges(len(shares), groups)[1]])
    own = np.concatenate([[0], _ranges(parallelism, groups)[1]])
    return float(np.diff(np.interp(own, ends, np.concatenate([[0.0], np.cumsum(shares)]))).max())


def _ranges(tasks: int, groups: int) -> tuple[np.ndarray, np.ndarray]:
    """First key group of each task, and the one after its last."""
    starts = -(-np.arange(tasks + 1) * groups // tasks)
    return starts[:-1], starts[1:]
