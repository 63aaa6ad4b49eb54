"""The least memory whose number of task slots is within 1 % of the fewest."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from known_answers.capacity_laws import regression
from models.capacity.growth.capacity_model import CapacityModel
from models.capacity.growth.dataset import Dataset
from models.capacity.sizing import Margin
from models.capacity.target import choose_budget, most_that_fell_short
from models.errors import Infeasible

AS_ASKED, TENTH_MORE = Margin(headroom=1.0), Margin(headroom=1.1)
ELSEWHERE = Dataset(np.array([1.0]), np.array([1.0]), np.array([1.0]))
"""Measured with a memory that is not asked about."""


def test_less_memory_is_taken_where_it_costs_at_most_one_percent_more_slots() -> None:
    # 1000 a slot, 1 a MiB: 110 000 need 99 slots with 11 000 MiB, 100 with 10 000 MiB, 110 with none.
    model = CapacityModel.of(regression("linear", 1.0, 1000.0, 0.0))
    choice = choose_budget(model, ELSEWHERE, [11_000, 10_000, 100], rate=110_000, margin=AS_ASKED, fewest_task_slots=1)
    assert choice.task_slots_by_memory_mb == {100: 110, 10_000: 100, 11_000: 99}
    assert choice.budget.memory_mb == 11_000

    choice = choose_budget(model, ELSEWHERE, [10_900, 10_000], rate=110_000, margin=AS_ASKED, fewest_task_slots=1)
    assert choice.task_slots_by_memory_mb == {10_000: 100, 10_900: 100}
    assert choice.budget.memory_mb == 10_000
    assert "100 with 10,900 MiB" in choice.reason


def test_every_operator_gets_a_slot() -> None:
    model = CapacityModel.of(regression("linear", 0.0, 1000.0, 0.0))
    assert choose_budget(model, ELSEWHERE, [1024], rate=1, margin=AS_ASKED, fewest_task_slots=9).budget.task_slots == 9


def test_a_rate_out_of_reach_is_infeasible() -> None:
    model = CapacityModel.of(regression("linear", 0.0, 0.0, 10.0))
    with pytest.raises(Infeasible, match="never reached"):
        choose_budget(model, ELSEWHERE, [1024], rate=100, margin=TENTH_MORE, fewest_task_slots=1)


def measured(*points: tuple[float, int, float]) -> Dataset:
    memory_mb, slots, mst = (np.array(column) for column in zip(*points, strict=True))
    return Dataset(memory_mb, slots, mst)


def test_slots_that_were_measured_to_fall_short_are_not_planned() -> None:
    # The model says 1000 a slot, so 9 for 8 800; 9 slots were measured, and took 7 163.
    model = CapacityModel.of(regression("linear", 0.0, 1000.0, 0.0))
    points = measured((1024, 9, 7_163), (1024, 13, 17_042), (2048, 9, 8_900))
    choice = choose_budget(model, points, [1024], rate=8_000, margin=TENTH_MORE, fewest_task_slots=9)
    assert choice.budget.task_slots == 10
    assert choice.reason.endswith("; 9 were measured, and took less")
    choice = choose_budget(model, points, [2048], rate=8_000, margin=TENTH_MORE, fewest_task_slots=9)
    assert (choice.budget.task_slots, "measured" in choice.reason) == (9, False)


def test_what_fewer_slots_reached_is_not_out_of_reach_for_more() -> None:
    # 13 slots fell short of 20 000 once, but 12 did not.
    points = measured((1024, 9, 7_163), (1024, 11, 17_362), (1024, 12, 24_812), (1024, 13, 17_042))
    assert most_that_fell_short(points, 1024, 20_000) == 11
    assert most_that_fell_short(points, 1024, 30_000) == 13
    assert most_that_fell_short(points, 1024, 7_000) == 0
    assert most_that_fell_short(points, 2048, 30_000) == 0


@given(
    st.lists(st.tuples(st.integers(1, 20), st.floats(1, 1e6)), min_size=1, max_size=10),
    st.floats(1, 1e6),
    st.floats(1, 2),
)
def test_a_higher_rate_never_needs_fewer_slots(points: list[tuple[int, float]], target: float, more: float) -> None:
    data = measured(*((1024.0, slots, mst) for slots, mst in points))
    assert most_that_fell_short(data, 1024, target) <= most_that_fell_short(data, 1024, more * target)
