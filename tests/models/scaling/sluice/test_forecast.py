"""The forecast of the rate."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.scaling.sluice.forecast import RateForecast


def fed(rates: list[float], step_s: float = 60.0) -> RateForecast:
    forecast = RateForecast(step_s, memory_s=3600.0, probability=0.8)
    for rate in rates:
        forecast.observe(rate, step_s)
    return forecast


def test_a_constant_rate_stays() -> None:
    found = fed([500.0] * 30).forecast(5)
    for path in (found.mean, found.low, found.high):
        np.testing.assert_allclose(path, 500.0)


def test_a_line_goes_on_nearly_as_steep() -> None:
    found = fed([1000.0 + 10.0 * i for i in range(40)]).forecast(3)
    # 1390 was the last; a damped trend goes on with less than 10 a step.
    assert 1394 < found.mean[0] <= 1400.5
    assert found.mean[0] < found.mean[1] < found.mean[2] <= 1420.5


def test_a_short_history_goes_on_as_it_was_with_a_wide_interval() -> None:
    found = fed([100.0, 120.0, 80.0, 100.0]).forecast(4)
    np.testing.assert_allclose(found.mean, 100.0)
    assert found.low[3] < found.low[0] < 100 < found.high[0] < found.high[3]


def test_rates_are_averaged_over_a_step() -> None:
    forecast = RateForecast(60.0, 3600.0, 0.8)
    forecast.observe(100.0, 30.0)
    forecast.observe(300.0, 30.0)
    np.testing.assert_allclose(forecast.forecast(2).mean, 200.0)
    assert forecast.mean == 200.0


def test_a_step_that_has_only_begun_does_not_count_yet() -> None:
    forecast = fed([100.0, 100.0])
    forecast.observe(900.0, 15.0)
    np.testing.assert_allclose(forecast.forecast(1).mean, 100.0)
    assert forecast.mean == pytest.approx((120 * 100 + 15 * 900) / 135)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0, 1e7), min_size=1, max_size=70))
def test_the_interval_holds_the_mean_and_no_rate_is_negative(rates: list[float]) -> None:
    found = fed(rates).forecast(20)
    assert np.all(found.low >= 0) and np.all(np.isfinite(found.high))
    slack = 1e-6 * (1 + max(rates))
    assert np.all(found.low <= found.mean + slack) and np.all(found.mean <= found.high + slack)
