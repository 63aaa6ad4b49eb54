"""Frontiers, their cost at an attainment and their hypervolume, by numbers that can be checked by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.arena.scoring.frontier import (
    LEAST_LATE,
    AttainedCost,
    FrontierPoint,
    NotAttained,
    attainment_cost,
    frontier,
    holds,
    hypervolume,
)


def front(*points: tuple[float, float]) -> tuple[FrontierPoint, ...]:
    return frontier(FrontierPoint(i, *point) for i, point in enumerate(points))


def test_the_frontier_goes_from_cheap_to_punctual() -> None:
    found = front((300, 0.001), (100, 0.5), (200, 0.6), (200, 0.1), (400, 0.001), (500, 0.0))
    assert [(p.task_hours, p.late_share) for p in found] == [(100, 0.5), (200, 0.1), (300, 0.001), (500, 0.0)]
    assert [p.value for p in found] == [1, 3, 0, 5]


def test_shares_below_the_resolution_are_equal() -> None:
    assert [p.task_hours for p in front((10, 0.9 * LEAST_LATE), (20, 0.0))] == [10]


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=12))
def test_no_point_dominates_one_of_the_frontier_and_each_other_is_dominated(pairs: list[tuple[int, int]]) -> None:
    points = [(cost, late / 10) for cost, late in pairs]
    found = [(p.task_hours, p.late_share) for p in front(*points)]
    assert found == sorted(set(found))
    for point in points:
        assert not any(point != f and point[0] <= f[0] and point[1] <= f[1] for f in found)
        assert any(f[0] <= point[0] and f[1] <= point[1] for f in found)


def test_the_cost_is_that_of_two_settings_in_turns() -> None:
    # 1 % late of 10 and 0.1 %: (10 - 1) / (10 - 0.1) of the records with the punctual one, the others with the cheap one.
    found = front((100, 0.1), (140, 0.001))
    assert attainment_cost(found, 0.99) == AttainedCost(pytest.approx(100 + 40 * 9 / 9.9), interpolated=True)
    assert attainment_cost(found, 0.999) == AttainedCost(pytest.approx(140), interpolated=True)


def test_of_all_pairs_of_settings_the_cheapest_serves() -> None:
    # The middle one is no help: 10 to 0.1 % directly costs 136.4, from 5 % on (100 to 138 for 5 points) more.
    found = front((100, 0.1), (138, 0.05), (140, 0.001))
    assert attainment_cost(found, 0.99) == AttainedCost(pytest.approx(100 + 40 * 9 / 9.9), interpolated=True)


def test_nobody_gets_a_cost_for_nothing_from_a_setting_that_is_late_all_the_time() -> None:
    # On a logarithmic scale 1 % is half of the way from 100 % to 0.01 %, and so would be the tasks.
    assert attainment_cost(front((10, 1.0), (100, 1e-4)), 0.99).task_hours == pytest.approx(99.1, abs=0.1)


def test_a_cost_below_all_settings_is_that_of_the_cheapest_and_one_beyond_all_is_typed() -> None:
    found = front((100, 0.1), (140, 0.001))
    assert attainment_cost(found, 0.5) == AttainedCost(100, interpolated=False)
    assert attainment_cost(found, 0.9995) == NotAttained(0.001)
    # An attainment beyond the resolution is held by whatever is late by no more than the resolution.
    assert attainment_cost(front((100, 0.0)), 0.999999) == AttainedCost(100, interpolated=False)


def test_an_attainment_is_held_exactly_at_its_share() -> None:
    assert holds(0.01, 0.99) and not holds(0.0101, 0.99)


def test_the_hypervolume_is_the_dominated_share_of_the_box() -> None:
    # The box is 200 task-hours by 4 decades. From 100 to 140: 1 decade; from 140 to 200: 3 decades.
    expected = (40 * 1 + 60 * 3) / (200 * 4)
    assert hypervolume(front((100, 0.1), (140, 0.001)), 200) == pytest.approx(expected)
    assert hypervolume(front((0, 0.0)), 200) == pytest.approx(1)
    assert hypervolume(front((200, 0.0)), 200) == 0
    assert hypervolume(front((100, 1.0)), 200) == 0


@given(
    st.lists(st.tuples(st.floats(1, 99), st.floats(0, 1)), min_size=1, max_size=8),
    st.tuples(st.floats(1, 99), st.floats(0, 1)),
)
def test_another_setting_never_takes_anything_away(
    points: list[tuple[float, float]], more: tuple[float, float]
) -> None:
    before, after = front(*points), front(*points, more)
    assert hypervolume(after, 100) >= hypervolume(before, 100) - 1e-12
    first, second = attainment_cost(before, 0.99), attainment_cost(after, 0.99)
    if isinstance(first, AttainedCost):
        assert isinstance(second, AttainedCost)
        assert math.isfinite(second.task_hours)
