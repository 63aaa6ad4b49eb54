"""The downtime of a rescale."""

import pytest

from models.scaling.sluice.learned.downtime import Downtime


def test_before_the_first_rescale_it_is_the_assumed_one() -> None:
    assert Downtime(30.0).of(0.0) == pytest.approx(30.0)


def test_it_is_a_share_fixed_and_a_share_by_state() -> None:
    learned = Downtime(30.0)
    for state_mb in (0.0, 1000.0, 2000.0) * 20:
        learned.observe(5.0 + 0.01 * state_mb, state_mb)
    assert learned.of(0.0) == pytest.approx(5.0, abs=0.1)
    assert learned.of(4000.0) == pytest.approx(45.0, abs=0.5)


def test_what_cold_code_loses_comes_on_top() -> None:
    learned = Downtime(10.0)
    learned.observe_lost(20.0)
    assert learned.of(0.0) == pytest.approx(10.0 + 20.0)
    learned.observe_lost(10.0)
    # 0.4 of the new value, 0.6 of the one before.
    assert learned.of(0.0) == pytest.approx(10.0 + 16.0)


def test_without_learning_nothing_changes_it() -> None:
    fixed = Downtime(10.0, learns=False)
    fixed.observe(100.0, 0.0)
    fixed.observe_lost(100.0)
    assert fixed.of(1e6) == pytest.approx(10.0)


def test_more_state_is_never_expected_to_take_less_time() -> None:
    learned = Downtime(10.0)
    learned.observe(20.0, 0.0)
    learned.observe(1.0, 5000.0)
    assert learned.of(5000.0) >= learned.of(0.0) - 1e-9
