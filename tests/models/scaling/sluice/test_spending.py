"""The price of late records follows the tasks that ran."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.scaling.sluice.spending import LEAST, MOST, Spending


def test_the_price_stays_while_the_budget_is_used() -> None:
    spending = Spending(budget=1.25, memory_s=3600)
    assert spending.price_factor == 1.0
    for _ in range(10):
        spending.observe(tasks=25, needed=20, seconds=30)
    assert spending.price_factor == pytest.approx(1.0)


def test_saved_tasks_make_late_records_dear_and_spent_ones_cheap() -> None:
    thrifty, lavish = Spending(1.25, 3600), Spending(1.25, 3600)
    thrifty.observe(tasks=24, needed=20, seconds=30)
    lavish.observe(tasks=26, needed=20, seconds=30)
    # (25 / 24)^20 and (25 / 26)^20
    assert thrifty.price_factor == pytest.approx(2.262, abs=1e-3)
    assert lavish.price_factor == pytest.approx(0.456, abs=1e-3)


def test_the_past_is_forgotten() -> None:
    spending = Spending(1.25, memory_s=600)
    spending.observe(tasks=60, needed=20, seconds=600)
    assert spending.price_factor == LEAST
    for _ in range(200):
        spending.observe(tasks=25, needed=20, seconds=30)
    assert spending.price_factor == pytest.approx(1.0, abs=0.01)


@given(st.lists(st.tuples(st.floats(1, 1e4), st.floats(1, 1e4)), min_size=1, max_size=20))
def test_the_factor_stays_within_its_bounds(history: list[tuple[float, float]]) -> None:
    spending = Spending(1.25, 3600)
    for tasks, needed in history:
        spending.observe(tasks, needed, 30.0)
    assert LEAST <= spending.price_factor <= MOST
