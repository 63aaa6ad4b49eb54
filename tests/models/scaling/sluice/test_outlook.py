"""What deployments lead to; all figures by hand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.scaling.sluice.outlook import Options, Situation, outlook

MINUTES = 5


def options(*rows: tuple[float, float, float]) -> Options:
    """Options of (capacity, tasks, downtime), certain, that nothing follows."""
    capacity, tasks, down = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    return Options(capacity, np.zeros(len(rows)), tasks, down, np.full(len(rows), 1e9))


def situation(lag: float = 0.0, rate: float = 100.0, seen_after_s: float = 20.0) -> Situation:
    return Situation(
        lag,
        rate,
        restart_s=10.0,
        between_s=60.0,
        seen_after_s=seen_after_s,
        work=0.01,
        least_tasks=1.0,
        most_tasks=100.0,
        most_capacity=1e4,
    )


def of(
    found: Options, start: Situation, rate: float = 100.0, objective_s: float = 20.0
) -> tuple[list[float], list[float]]:
    held, late = outlook(found, start, np.full((3, MINUTES), rate), 60.0, objective_s)
    return held.tolist(), late.tolist()


def test_enough_tasks_cost_their_time() -> None:
    held, late = of(options((100.0, 1.0, 0.0), (300.0, 3.0, 0.0)), situation())
    assert held == pytest.approx([300.0, 900.0])
    assert late == [0.0, 0.0]


def test_a_short_downtime_makes_nothing_late_and_a_long_one_does() -> None:
    _, late = of(options((300.0, 3.0, 10.0), (300.0, 3.0, 40.0)), situation())
    assert late[0] == 0.0
    # 4000 records wait when the job is back after 40 s. The head has waited for 40 s, and the age falls by 2 s each second
    # (300 records are read of each 100 that come): 10 s until it is 20 s, in which 3000 records are read.
    assert late[1] == pytest.approx(3000.0, rel=0.05)


def test_records_that_wait_already_are_late_when_they_are_read() -> None:
    # 3000 records that came in the last 30 s, read at 300/s while 100/s come: late until the age is 20 s, after 5 s.
    _, late = of(options((300.0, 3.0, 0.0)), situation(lag=3000.0))
    assert late[0] == pytest.approx(1500.0, rel=0.1)


def test_an_overload_makes_all_late_once_the_wait_has_grown() -> None:
    held, late = of(options((50.0, 1.0, 0.0)), situation())
    # At t, records are read that came at t/2: their age t/2 is 20 s at t = 40 s. Until 300 s, 50 x 260 are late, then the
    # 15,000 that wait, and those that come until the 14,000 more than 20 s of work are read; 5 % of 50/s are assumed spare.
    assert late[0] == pytest.approx(13_000 + 15_000 + 100 * 14_000 / 2.5, rel=0.01)
    assert held[0] == pytest.approx(300.0 + 15_000 / 50)


def test_an_overload_that_is_seen_later_makes_more_late() -> None:
    overloaded = Options(*(np.array([x]) for x in (50.0, 0.0, 1.0, 0.0, 0.0)))
    late = [of(overloaded, situation(seen_after_s=s))[1][0] for s in (0.0, 20.0, 60.0)]
    # Seen at once, it is corrected before the wait is 20 s. Seen after 20 s, 1000 records have waited for 10 s, to which the
    # downtime of 10 s adds. After 60 s 3000 wait, the oldest for 30 s: all that were read after 40 s were late.
    assert late[0] == 0.0
    assert late[1] <= 1000.0 + 100 * 10
    assert late[2] >= 20 * 50 + 3000
    assert late == sorted(late)


def test_of_two_deployments_that_are_both_too_small_the_larger_makes_less_late() -> None:
    _, late = of(options((10.0, 1.0, 0.0), (50.0, 1.0, 0.0)), situation(lag=1e6))
    assert late[1] < late[0]


def test_a_later_rescale_ends_an_overload() -> None:
    found = options((50.0, 1.0, 0.0))
    free = Options(found.capacity, found.deviation, found.tasks, found.downtime_s, np.zeros(1))
    paths = np.full((3, MINUTES), 100.0)
    _, with_corrections = outlook(free, situation(), paths, 60.0, 20.0)
    _, without = outlook(free, situation(), paths, 60.0, 20.0, corrects=False)
    assert with_corrections[0] < 0.2 * without[0]


def test_no_rescale_follows_that_takes_longer_than_the_lag_takes_to_be_worked_off() -> None:
    # 6000 records wait after 60 s of downtime, and 100/s to spare work them off in 60 s, as long as another rescale is down.
    start = replace(situation(), restart_s=60.0, between_s=1e9)
    rescaled = Options(*(np.array([x]) for x in (200.0, 0.0, 2.0, 60.0, 60.0)))
    paths = np.full((3, MINUTES), 100.0)
    with_corrections = outlook(rescaled, start, paths, 60.0, 20.0)
    without = outlook(rescaled, start, paths, 60.0, 20.0, corrects=False)
    np.testing.assert_allclose(with_corrections, without)


def test_a_reduction_may_follow_but_not_before_a_rescale_could_be_followed() -> None:
    found = options((1000.0, 10.0, 0.0))
    free = Options(found.capacity, found.deviation, found.tasks, found.downtime_s, np.zeros(1))
    held, _ = outlook(free, situation(), np.full((3, MINUTES), 100.0), 60.0, 20.0)
    # Ten tasks for the first 70 s; then 110 records/s, 890 less, at 0.01 tasks per record/s: 1.1.
    assert held[0] == pytest.approx(10 * 70 + 1.1 * 230)


def test_what_a_path_needs_later_is_not_given_up_before() -> None:
    # 100 records/s for 4 min, then 1000: ten tasks stay, though one would do until then, and nothing is late.
    free = Options(np.array([1000.0]), np.zeros(1), np.array([10.0]), np.zeros(1), np.zeros(1))
    paths = np.tile([100.0, 100.0, 100.0, 100.0, 1000.0], (3, 1))
    held, late = outlook(free, situation(), paths, 60.0, 20.0)
    assert (held[0], late[0]) == (pytest.approx(10 * 300), 0.0)


@given(capacity=st.floats(60.0, 500.0), more=st.floats(1.0, 3.0), lag=st.floats(0, 5000), rate=st.floats(1.0, 300.0))
def test_more_capacity_makes_no_more_late(capacity: float, more: float, lag: float, rate: float) -> None:
    _, late = of(options((capacity, 1.0, 0.0), (more * capacity, 1.0, 0.0)), situation(lag, rate), rate)
    assert late[1] <= late[0] * (1 + 1e-6) + 1e-6


def test_an_uncertain_capacity_makes_some_late_on_average() -> None:
    certain = options((102.0, 1.0, 0.0))
    unsure = Options(certain.capacity, np.array([0.3]), certain.tasks, certain.downtime_s, certain.settled_s)
    paths = np.full((32, MINUTES), 100.0)
    _, at_once = outlook(certain, situation(), paths, 60.0, 20.0)
    _, spread = outlook(unsure, situation(), paths, 60.0, 20.0)
    assert at_once[0] == 0.0
    assert spread[0] > 100.0
