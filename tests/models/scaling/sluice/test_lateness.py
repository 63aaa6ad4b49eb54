"""The budget of late records and its price."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.scaling.sluice.lateness import MOST, PRICE, UNSPENT, LatenessBudget


def test_the_price_begins_at_its_value_for_the_attainment() -> None:
    assert LatenessBudget(0.99, 3600).price == pytest.approx(PRICE / 0.01)
    assert LatenessBudget(0.9, 3600).price == pytest.approx(PRICE / 0.1)


@pytest.mark.parametrize(
    ("late", "factor"),
    [(0.0, UNSPENT), (10.0, 1.0), (1000.0, MOST), (40.0, math.sqrt(UNSPENT**2 + (1 - UNSPENT**2) * 4))],
)
def test_it_follows_what_was_spent(late: float, factor: float) -> None:
    # Of 1000 records, 10 may be late.
    budget = LatenessBudget(0.99, 3600)
    budget.observe(1000.0, late, 10.0)
    assert budget.price == pytest.approx(PRICE / 0.01 * factor)


def test_it_stays_where_it_is_not_to_follow() -> None:
    budget = LatenessBudget(0.99, 3600, follows=False)
    budget.observe(1000.0, 1000.0, 10.0)
    assert budget.price == pytest.approx(PRICE / 0.01)


def test_the_past_is_forgotten() -> None:
    budget = LatenessBudget(0.99, 100.0)
    budget.observe(1000.0, 1000.0, 10.0)
    budget.observe(1000.0, 0.0, 100.0 * math.log(2))
    # Half of the first thousand counts: 500 of 1500.
    assert budget.late_share == pytest.approx(1 / 3)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.floats(0.5, 0.999))
def test_the_price_has_bounds(shares: list[float], attainment: float) -> None:
    budget = LatenessBudget(attainment, 600.0)
    for share in shares:
        budget.observe(100.0, 100.0 * share, 10.0)
    assert UNSPENT * PRICE / (1 - attainment) * 0.999 <= budget.price <= MOST * PRICE / (1 - attainment) * 1.001
