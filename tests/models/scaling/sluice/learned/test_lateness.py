"""The budget of late records and its price."""

import math

import pytest

from models.scaling.sluice.learned.lateness import PRICE, LatenessBudget


def test_the_price_of_a_late_record_grows_as_fewer_may_be_late() -> None:
    assert LatenessBudget(0.99, 3600).price == pytest.approx(PRICE / 0.01)
    assert LatenessBudget(0.9, 3600).price == pytest.approx(PRICE / 0.1)


def test_the_past_is_forgotten() -> None:
    budget = LatenessBudget(0.99, 100.0)
    assert budget.late_share == 0
    budget.observe(1000.0, 1000.0, 10.0)
    budget.observe(1000.0, 0.0, 100.0 * math.log(2))
    # Half of the first thousand counts: 500 of 1500.
    assert budget.late_share == pytest.approx(1 / 3)
