"""Ranges of a prediction."""

from models.plan.parts import Interval


def test_no_part_of_an_interval_is_above_a_limit() -> None:
    assert Interval(value=6000, low=4000, high=9000).at_most(5000) == Interval(value=5000, low=4000, high=5000)
    assert Interval(value=4000, low=3000, high=4500).at_most(5000) == Interval(value=4000, low=3000, high=4500)
