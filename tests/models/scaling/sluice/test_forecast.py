"""Paths that the rate may take."""

import numpy as np
import pytest

from models.scaling.sluice.forecast import ASSUMED_ERROR, KEPT_ERRORS, RateForecast


def fed(rates: np.ndarray, **given: bool) -> RateForecast:
    """A forecast of 5 steps in 32 paths that has seen `rates`, one a step, and was asked after each."""
    forecast = RateForecast(60.0, 60.0, 5, 32, **given)
    for rate in rates:
        forecast.observe(float(rate))
        forecast.forecast()
    return forecast


def test_one_rate_is_continued_with_the_assumed_error() -> None:
    forecast = RateForecast(60.0, 10.0, 5, 1001)
    forecast.observe(1000.0)
    paths = forecast.forecast()
    assert paths.shape == (1001, 5)
    np.testing.assert_allclose(np.mean(paths, axis=0), 1000.0)
    # It grows with the square root of the step; the ends of 1001 normal quantiles are cut a little.
    expected = 1000 * ASSUMED_ERROR * np.sqrt(np.arange(1, 6))
    np.testing.assert_allclose(np.std(paths, axis=0), expected, rtol=0.01)


def test_a_constant_rate_becomes_certain() -> None:
    paths = fed(np.full(KEPT_ERRORS + 20, 500.0)).forecast()
    np.testing.assert_allclose(paths, 500.0)


def test_a_steady_rise_is_continued() -> None:
    rising = 1000.0 + 50.0 * np.arange(90)
    with_trend = np.mean(fed(rising).forecast(), axis=0)
    without = np.mean(fed(rising, trend=False, season=False).forecast(spread=False), axis=0)
    np.testing.assert_allclose(with_trend, rising[-1] + 50.0 * np.arange(1, 6), rtol=0.01)
    np.testing.assert_allclose(without, rising[-1])


def test_a_season_is_found_and_foreseen() -> None:
    # Every 40 steps a rate jumps from 100 to 300 for 10 steps, which no trend foresees.
    at = np.arange(360)
    rates = np.where(at % 40 < 10, 300.0, 100.0)
    forecast = fed(rates[:357])
    assert forecast.period_steps is not None and forecast.period_steps % 40 == 0
    np.testing.assert_allclose(np.mean(forecast.forecast(), axis=0), [100, 100, 100, 300, 300], rtol=0.05)


def test_a_present_rate_that_is_known_better_raises_the_paths() -> None:
    forecast = fed(np.full(30, 100.0))
    assert float(np.min(forecast.forecast(now=250.0))) >= 249.0
    np.testing.assert_allclose(forecast.forecast(now=50.0), forecast.forecast())


def test_paths_are_what_the_forecast_was_wrong_by() -> None:
    # A fall from 300 to 200 within the remembered forecasts stays possible, and so does a rise by as much.
    rates = np.concatenate([np.full(60, 300.0), np.full(30, 200.0)])
    paths = fed(rates, trend=False, season=False).forecast()
    assert float(np.max(paths)) == pytest.approx(300.0)
    assert float(np.median(paths)) == pytest.approx(200.0)
    assert float(np.min(paths)) >= 0.0


def test_above_the_highest_rate_errors_count_half() -> None:
    # A jump from 100 to 200 was an error of 100; the next one would be to a rate that never was.
    rates = np.concatenate([np.full(60, 100.0), np.full(30, 200.0)])
    assert float(np.max(fed(rates, trend=False, season=False).forecast())) == pytest.approx(250.0)


def test_a_rate_that_has_fallen_to_nothing_may_leap_as_far_as_before() -> None:
    rates = np.concatenate([np.tile([1000.0, 600.0], 30), np.zeros(3)])
    paths = fed(rates, trend=False, season=False).forecast()
    # The last forecast that can be judged was made five steps ago, at a rate of 1000, of which nothing was left.
    assert float(np.max(paths)) == pytest.approx(1000.0)


def test_a_rate_that_has_only_fallen_may_rise_as_fast() -> None:
    # 10 less each step: the last rate was wrong by -10, -20, ..., -50 each time.
    falling = 2000.0 - 10.0 * np.arange(60)
    paths = fed(falling, trend=False, season=False).forecast()
    assert float(np.min(paths[:, -1])) < falling[-1] - 40.0
    assert float(np.max(paths[:, -1])) > falling[-1] + 40.0


def test_forecasts_are_judged_whether_or_not_somebody_asks() -> None:
    asked, silent = fed(np.full(30, 100.0)), RateForecast(60.0, 60.0, 5, 32)
    for _ in range(30):
        silent.observe(100.0)
    np.testing.assert_allclose(silent.forecast(), asked.forecast())
