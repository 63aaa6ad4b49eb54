"""Keys from what tasks got, by shares that can be checked by hand."""

import numpy as np
import pytest

from models.capacity.twin.keys import (
    BURST_SHARE,
    FOR_GOOD,
    MANY_KEYS,
    TaskRecords,
    concentration,
    even_share,
    keys_recorded,
    keys_seen,
)
from models.job import Keys
from models.keys.distribution import ChangeOverTime, HeavyHitter, KeyDistribution, Spread, Tail
from models.plan.parts import Interval

EVEN = Keys(distinct=MANY_KEYS)


def seen(*intervals: list[float]) -> TaskRecords:
    return TaskRecords(np.array(intervals), interval_s=5.0)


def test_tasks_that_get_the_same_have_even_keys() -> None:
    assert keys_seen([seen([10, 10, 10, 10], [20, 20, 20, 20])], None, None) == EVEN


def test_of_a_single_task_nothing_is_known() -> None:
    assert keys_seen([seen([10], [20])], 2.0, None) == EVEN
    assert keys_seen([], 2.0, None) == EVEN


def test_a_key_that_stays_hot_has_what_the_fullest_task_gets_beyond_an_even_share() -> None:
    # 4 of 128 groups in 4: the even share is 1/4, and 0.4 = h + (1 - h) / 4 has h = 0.2.
    found = keys_seen([seen([40, 20, 20, 20], [80, 40, 40, 40])], None, None)
    assert found.hot_share == pytest.approx(0.2)
    assert (found.hot_period_records, found.hot_period_s) == (FOR_GOOD, None)


def test_few_keys_make_all_tasks_differ() -> None:
    # Shares of 16 tasks that differ by a tenth: 16 * (0.1 / 16)^2 = (1 - 1 / 16) / K has K = 1,500.
    found = keys_seen([seen([90, 110] * 8, [90, 110] * 8)], None, 16)
    assert found == Keys(distinct=1500)


def test_hot_keys_that_change_within_an_interval_come_in_bursts() -> None:
    # Two tasks get 5.2 and 4.8 of 10 thousand records, and the other way round: 2 (0.02)^2 / (1/2) * 10,000 = 16 in a row.
    short = seen([5200, 4800], [4800, 5200])
    assert keys_seen([short], None, 2).hot_share == 0
    # With ten times the records 160 in a row: a quarter of the records for 2,560.
    found = keys_seen([seen([52_000, 48_000], [48_000, 52_000])], None, 2)
    assert found.hot_share == BURST_SHARE
    assert found.hot_period_records == pytest.approx(160 / BURST_SHARE**2)


def test_key_groups_that_do_not_divide_evenly_are_no_hot_key() -> None:
    # 128 groups over 35 tasks: some have 4, others 3.
    groups = np.bincount(np.arange(128) * 35 // 128, minlength=35).astype(float)
    assert groups.max() == 4
    assert even_share(35, None) == 4 / 128
    assert keys_seen([TaskRecords(np.stack([groups, groups]), 5.0)], None, None) == EVEN
    # The job may state more groups, which can be shared more evenly.
    assert even_share(35, 32768) == 937 / 32768


def test_each_interval_to_one_task_is_as_concentrated_as_can_be() -> None:
    assert concentration(seen([10, 0], [0, 10])) == pytest.approx(1.0)
    assert concentration(seen([5, 5], [5, 5])) == 0.0
    # Half of each interval's records go to one task: h^2 = 1/4.
    assert concentration(seen([75, 25], [25, 75])) == pytest.approx(0.25)


def test_keys_that_are_windows_show_in_intervals_of_few_tasks() -> None:
    # Two and a half windows fire in 5 s; h^2 * 2 / 5 = 0.4 for h = 1.
    runs = [seen([40, 40, 20, 0], [20, 0, 40, 40], [40, 20, 0, 40], [0, 40, 40, 20])]
    overall = 0.25
    expected = (0.36 - overall) / (1 - overall)
    assert concentration(runs[0]) == pytest.approx(expected)
    found = keys_seen(runs, 2.0, None)
    assert found.hot_period_s == 2.0
    assert found.hot_share == pytest.approx(np.sqrt(expected * 2.5))
    assert keys_seen(runs, None, None).hot_period_s == 5.0


def test_the_runs_with_the_most_tasks_count() -> None:
    assert keys_seen([seen([90, 10]), seen([10, 10, 10, 10])], None, None) == EVEN


def recorded(share: float, change: ChangeOverTime | None = None) -> KeyDistribution:
    """Of 1,000 keys, the first of which has a share of 10,000 records."""
    return KeyDistribution(
        records=10_000,
        distinct_keys=Interval(value=1000, low=1000, high=1000, probability=0.95),
        heavy_hitters=(HeavyHitter(key="a", low=share, high=share),),
        tail=Tail(keys=999, share=1 - share, exponent=None),
        shares=(),
        change=change,
    )


def changes(stays: float, fullest: float) -> ChangeOverTime:
    spread = Spread(median=fullest, p95=fullest, highest=fullest)
    return ChangeOverTime(
        window_s=1.0,
        windows=50,
        counted_share=1.0,
        fullest_group=spread,
        fullest_group_overall=0.01,
        groups_once_fullest=40,
        stays_fullest=stays,
    )


def test_the_most_frequent_recorded_key_stays_hot() -> None:
    assert keys_recorded(recorded(0.2), 128) == Keys(distinct=1000, hot_share=0.2, hot_period_records=FOR_GOOD)
    assert keys_recorded(recorded(0.001), 128) == Keys(distinct=1000)
    assert keys_recorded(recorded(0.2, changes(0.9, 0.2)), 128).hot_period_records == FOR_GOOD


def test_a_recorded_key_that_is_hot_for_a_window_changes_with_the_windows() -> None:
    # 200 records a window; 0.5 = h + (1 - h) / 128.
    found = keys_recorded(recorded(0.02, changes(0.1, 0.5)), 128)
    assert found.hot_period_records == 200
    assert found.hot_share == pytest.approx((0.5 - 1 / 128) / (1 - 1 / 128))
    # Chance makes a group the fullest of a window, too.
    assert keys_recorded(recorded(0.001, changes(0.1, 0.02)), 128) == Keys(distinct=1000)
