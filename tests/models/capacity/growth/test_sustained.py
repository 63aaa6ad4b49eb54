"""A capacity model that knows what production took."""

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from known_answers.capacity_laws import line, one_curve
from models.capacity.growth.capacity_model import CapacityModel, Weighted
from models.capacity.growth.sustained import Sustained, given
from models.capacity.selection import select


def took(rate: float, slots: int = 48) -> Sustained:
    return Sustained(memory_mb=8192.0, task_slots=slots, rate=rate, plan_version=3)


def two_curves() -> CapacityModel:
    """Each half sure, with two draws next to without noise: with 4 slots 40,000 and 20,000, 10,000 and 5,000 records/s."""
    two = {"noise": (1e-6,) * 2, "memory_effect": (0.5,) * 2, "drift": (1.0,) * 2, "shape": ((0.25,),) * 2}
    levels = {"linear": (4e4, 2e4), "log": (1e4, 5e3)}
    laws = [one_curve(law=law, level=tuple(np.log(level)), **two) for law, level in levels.items()]
    return CapacityModel(components=tuple(Weighted(weight=0.5, predicts=curves) for curves in laws))


def test_laws_and_draws_that_fall_short_no_longer_count() -> None:
    # Linear keeps all of its weight, log the half that takes 7,000.
    model = given(two_curves(), [took(7e3, slots=4)])
    assert model.weights == pytest.approx({"linear": 2 / 3, "log": 1 / 3})
    assert model.sustains(8192.0, 4, 7e3) == pytest.approx([1.0])
    assert model.sustains(8192.0, 4, 3e4) == pytest.approx([1 / 3])
    assert given(two_curves(), [took(3e4, slots=4)]).weights["linear"] == pytest.approx(1.0)


def test_a_rate_that_any_law_takes_says_nothing(published) -> None:
    model = select(published("q5", 14)).model
    before, after = model.interval(65536, 400), given(model, [took(1.0)]).interval(65536, 400)
    assert (after.low, after.value, after.high) == pytest.approx((before.low, before.value, before.high), rel=1e-6)


@pytest.mark.parametrize("rate", [3.75e6, 20e6])
def test_an_interval_of_published_rows_is_narrowed_from_below(published, rate: float) -> None:
    # StreamBed's production held 3.75 M with 1,079 slots; 20 M is made up.
    model = select(published("q5", 14)).model
    before, after = model.interval(65536, 1079), given(model, [took(rate, 1079)]).interval(65536, 1079)
    assert before.low < rate < after.high
    assert after.low > before.low and after.high / after.low < before.high / before.low


@settings(max_examples=25, deadline=None)
@drawn(st.floats(1e3, 1e6), st.floats(1e3, 1e6))
def test_a_rate_that_was_taken_makes_no_rate_less_likely(rate: float, other: float) -> None:
    model, budget = two_curves(), (8192.0, 48, other)
    assert given(model, [took(rate)]).sustains(*budget)[0] >= model.sustains(*budget)[0] - 1e-9


def test_a_regression_stays_as_it_is() -> None:
    assert given(line(1e4), [took(9e5)]) == line(1e4)
