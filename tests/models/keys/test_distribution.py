"""What a sketch says of a stream, with figures that can be counted."""

import numpy as np
import pytest

from models.errors import InvalidInput
from models.keys.columns import Integers, row_hash
from models.keys.distribution import key_distribution
from models.keys.groups import group_of
from models.keys.sketch import KeySketch, Measure


def sketch(keys: list[int], windows: list[int] | None = None, **measure: int) -> KeySketch:
    made = KeySketch.empty(Measure(window_groups=None if windows is None else 128, **measure))
    values, counts = np.unique(np.array(keys), return_counts=True)
    made.add_keys([Integers(values, 8)], counts, lambda places: values[places].tolist())
    if windows is not None:
        made.add_windows([Integers(np.array(keys), 8)], np.array(windows), np.ones(len(keys), np.int64))
    return made


def test_a_hot_key_is_found_and_fills_its_task() -> None:
    found = key_distribution(sketch([7] * 60 + list(range(1000, 1040))), [1, 4], None)
    assert found.records == 100
    assert (found.distinct_keys.low, found.distinct_keys.value, found.distinct_keys.high) == (41, 41, 41)
    hot = found.heavy_hitters[0]
    assert (hot.key, hot.low, hot.high) == (7, 0.6, 0.6)
    assert found.tail.keys == 21 and found.tail.share == pytest.approx(0.21)  # 20 keys are listed
    one, four = found.shares
    assert one.records == (100,) and one.fullest_share == one.ideal_share == 1.0
    task = int(group_of(row_hash([Integers(np.array([7]), 8)]), 128)[0]) * 4 // 128
    assert four.fullest_task == task and four.records[task] >= 60 and sum(four.records) == 100
    assert found.change is None and four.in_windows is None


def test_key_groups_that_the_job_states_are_those_of_the_shares() -> None:
    keys = list(range(300))
    (stated,) = key_distribution(sketch(keys, groups=100), [7], 100).shares
    groups = group_of(row_hash([Integers(np.array(keys), 8)]), 100)
    assert stated.records == tuple(np.bincount(groups * 7 // 100, minlength=7).tolist()) and stated.key_groups == 100
    with pytest.raises(InvalidInput, match="between 1 and the 100 key groups"):
        key_distribution(sketch(keys, groups=100), [101], 100)


def test_a_key_that_is_hot_for_a_while_shows_in_windows_and_not_in_the_whole() -> None:
    """In each of 50 windows, 9 of 10 records have a key of that window; the fullest of 4 tasks then has 90 % or more."""
    keys = [1000 + window if at else 5 for window in range(50) for at in range(10)]
    windows = [window for window in range(50) for _ in range(10)]
    found = key_distribution(sketch(keys, windows), [4], None)
    (four,) = found.shares
    assert four.in_windows is not None and found.change is not None
    assert four.fullest_share < 0.5 < 0.9 <= four.in_windows.median <= four.in_windows.p95 <= four.in_windows.highest
    assert (found.change.windows, found.change.counted_share) == (50, 1.0)
    assert found.change.fullest_group.median >= 0.9 and found.change.fullest_group_overall < 0.3
    assert found.change.groups_once_fullest > 25 and (found.change.stays_fullest or 0) < 0.2


def test_a_key_that_stays_hot_shows_in_both() -> None:
    found = key_distribution(sketch([7] * 100, list(range(10)) * 10), [4], None)
    assert found.change is not None
    assert (found.change.groups_once_fullest, found.change.stays_fullest) == (1, 1.0)
    assert found.change.fullest_group.median == found.change.fullest_group_overall == 1.0


def test_windows_count_by_their_records() -> None:
    """One window of 98 records that lie alike in two groups, and two of one record."""
    keys = [0, 1] * 49 + [0, 0]
    found = key_distribution(sketch(keys, [1] * 98 + [2, 3]), [1], None)
    assert found.change is not None
    assert (found.change.fullest_group.median, found.change.fullest_group.highest) == (0.5, 1.0)


def test_the_share_of_a_heavy_hitter_has_bounds_where_keys_were_left_out() -> None:
    random = np.random.default_rng(3)
    keys = random.zipf(1.3, 20_000)
    found = key_distribution(sketch(keys.tolist(), most_keys=200), [2], None)
    for one in found.heavy_hitters:
        assert one.low <= (keys == one.key).mean() <= one.high
    assert found.distinct_keys.low <= len(np.unique(keys)) <= found.distinct_keys.high
    assert found.distinct_keys.low < found.distinct_keys.high


def test_without_records_there_is_no_distribution() -> None:
    with pytest.raises(InvalidInput, match="no records"):
        key_distribution(KeySketch.empty(Measure()), [1], None)
