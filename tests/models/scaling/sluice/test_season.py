"""The period of a rate."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.scaling.sluice.season import find_period


@given(period=st.integers(20, 100), level=st.floats(1.0, 1e7), seed=st.integers(0, 5))
def test_a_noisy_cosine_shows_its_period(period: int, level: float, seed: int) -> None:
    steps = np.arange(4 * period)
    noise = np.random.default_rng(seed).normal(0, 0.02, len(steps))
    found = find_period(level * (1 + 0.5 * np.cos(2 * np.pi * steps / period) + noise))
    # The peak of a cosine is flat: noise of 2 % moves it by up to a tenth of the period. Twice the period repeats it, too.
    assert found is not None
    assert min(abs(found - period), abs(found - 2 * period)) <= 0.1 * period


@pytest.mark.parametrize(
    "rates",
    [
        np.full(200, 5.0),
        np.arange(200.0),
        np.cumsum(np.random.default_rng(1).normal(size=40)),
        np.cos(2 * np.pi * np.arange(20) / 15),
    ],
    ids=["constant", "trend", "short walk", "one period"],
)
def test_what_does_not_repeat_itself_has_no_period(rates: np.ndarray) -> None:
    assert find_period(rates) is None


def test_no_period_is_read_into_less_than_two_of_it() -> None:
    steps = np.arange(150)
    found = find_period(np.cos(2 * np.pi * steps / 100))
    assert found is None or found <= 75
