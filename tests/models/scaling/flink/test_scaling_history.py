"""What is remembered of scalings, waiting scale-downs and restarts."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.scaling.flink.scaling_history import (
    DelayedScaleDowns,
    PastScaling,
    RestartTimes,
    ScalingHistory,
    WantedTasks,
    is_ineffective,
    observed_scalability,
)
from models.scaling.flink.settings import FlinkSettings


def scaling(before: int, rate: float, time_s: float = 0.0) -> PastScaling:
    return PastScaling(time_s, before, before + 1, rate, rate)


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ([(2, 100), (4, 200)], 1.0),  # too few
        ([(2, 100), (4, 200), (8, 400)], 1.0),
        ([(2, 100), (4, 180), (8, 300)], 0.8),  # (200 + 720 + 2400) / (84 x 50) = 0.7905, rounded up
        ([(2, 100), (4, 110), (8, 120)], 0.5),  # (200 + 440 + 960) / 4200 = 0.38, held to the lowest
        ([(2, 100), (4, 300), (8, 700)], 1.0),  # better than linear counts as linear
        ([(2, 50), (2, 100), (4, 200)], 0.92),  # the later of the two baselines: (100 + 200 + 800) / (24 x 50)
        ([(2, math.inf), (4, 200), (8, 400)], 1.0),
    ],
)
def test_observed_scalability(rates, expected):
    assert observed_scalability([scaling(*each) for each in rates], 3, 0.5) == expected


@pytest.mark.parametrize(
    ("tasks", "rate", "expected"),
    [
        (20, 100.0, False),  # 10 of the 90 that were expected
        (20, 98.0, True),
        (20, 80.0, True),
        (18, 80.0, False),  # somebody else has scaled since
    ],
)
def test_ineffective_scale_ups(tasks, rate, expected):
    assert is_ineffective(PastScaling(0.0, 10, 20, 90.0, 180.0), tasks, rate, 0.1) is expected


def test_a_scale_down_is_never_ineffective():
    assert not is_ineffective(PastScaling(0.0, 20, 10, 180.0, 90.0), 10, 10.0, 0.1)
    assert not is_ineffective(None, 10, 10.0, 0.1)


def test_history_is_short_and_forgets_with_time():
    history = ScalingHistory(FlinkSettings())
    for i in range(5):
        history.add("a", scaling(i + 1, 100.0, time_s=3600.0 * i))
    assert [s.before for s in history.of("a", 5 * 3600)] == [3, 4, 5]
    assert [s.before for s in history.of("a", 27.5 * 3600)] == [5]
    assert list(history.of("b", 0.0)) == []


def test_a_scale_down_goes_to_the_most_wanted_in_the_last_interval():
    delayed = DelayedScaleDowns(60.0)
    wanted = [(0, 9), (30, 5), (60, 4), (70, 6), (100, 3), (129, 2), (131, 1)]
    got = {at: delayed.want("a", WantedTasks(at, tasks, True)) for at, tasks in wanted}
    # From 60 s on a whole interval has passed; 9 leaves it at 61 s, 6 at 131 s.
    assert {at: due and due.tasks for at, due in got.items()} == {
        0: None,
        30: None,
        60: 9,
        70: 6,
        100: 6,
        129: 6,
        131: 3,
    }


def test_a_scale_down_waits_again_once_it_was_not_wanted():
    delayed = DelayedScaleDowns(60.0)
    assert delayed.want("a", WantedTasks(0.0, 5, True)) is None
    delayed.keep(())
    assert delayed.want("a", WantedTasks(60.0, 5, True)) is None
    assert delayed.want("a", WantedTasks(120.0, 4, True)) == WantedTasks(60.0, 5, True)


def test_without_an_interval_a_scale_down_is_due_at_once():
    assert DelayedScaleDowns(0.0).want("a", WantedTasks(3.0, 5, False)) == WantedTasks(3.0, 5, False)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 50)), min_size=1, max_size=40))
def test_what_is_due_is_the_maximum_over_the_interval(steps):
    delayed, now, seen = DelayedScaleDowns(60.0), 0, []
    for gap, tasks in steps:
        now += gap
        seen.append((now, tasks))
        due = delayed.want("a", WantedTasks(now, tasks, True))
        if now - 60 < seen[0][0]:
            assert due is None
        else:
            assert due.tasks == max(tasks for at, tasks in seen if at >= now - 60)


def test_the_longest_restart_is_expected_if_it_is_tracked():
    tracked = RestartTimes(FlinkSettings.model_validate({"restart.time-tracking.enabled": True}))
    assert tracked.expected_s(0.0) == 300.0
    for time_s, downtime_s in [(100.0, 45.0), (200.0, 70.0), (300.0, 50.0)]:
        tracked.add(time_s, downtime_s)
    assert tracked.expected_s(400.0) == 70.0
    tracked.add(400.0, 2000.0)
    assert tracked.expected_s(500.0) == 900.0  # the limit
    assert tracked.expected_s(1e6) == 900.0  # the last one is never forgotten
    fixed = RestartTimes(FlinkSettings())
    fixed.add(100.0, 45.0)
    assert fixed.expected_s(200.0) == 300.0
