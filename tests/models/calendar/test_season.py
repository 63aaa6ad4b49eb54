"""Seasons are found in a history, and no season where there is none."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from models.calendar.season import Season, learn
from models.errors import InvalidInput

BERLIN = ZoneInfo("Europe/Berlin")
BEGIN = datetime(2026, 11, 2, tzinfo=UTC)  # a Monday


def hours(days: int) -> list[datetime]:
    return [BEGIN + timedelta(hours=hour) for hour in range(24 * days)]


def noisy(rates: list[float], seed: int) -> list[float]:
    factors = np.random.default_rng(seed).uniform(0.95, 1.05, len(rates))
    return [float(rate * factor) for rate, factor in zip(rates, factors, strict=True)]


def test_a_day_is_found_and_its_quantile_is_of_the_days_at_that_hour() -> None:
    times = hours(4)
    rates = [100.0 + (10 * at.day if at.hour == 18 else 0) for at in times]  # at 18:00: 120, 130, 140, 150
    season = learn(times, rates, ZoneInfo("UTC"), 3600.0, quantile=0.75)
    assert (season.period, season.days, len(season.rates)) == ("day", 4, 24)
    # The quantile 0.75 of four is at 2.25 from the least, and the higher neighbour is taken.
    assert season.at(datetime(2026, 12, 1, 18, 59)) == 150.0
    assert season.at(datetime(2026, 12, 1, 19, 0)) == 100.0


@pytest.mark.parametrize("seed", range(3))
def test_a_week_is_found_where_weekends_differ(seed: int) -> None:
    times = hours(21)
    rates = noisy([1000.0 + (2000.0 if at.weekday() == 5 and 10 <= at.hour < 20 else 0.0) for at in times], seed)
    season = learn(times, rates, ZoneInfo("UTC"), 3600.0, 0.95)
    assert season.period == "week"
    assert 2850 <= season.at(datetime(2026, 12, 5, 12)) <= 3150  # a Saturday
    assert 950 <= season.at(datetime(2026, 12, 4, 12)) <= 1050


@pytest.mark.parametrize("seed", range(3))
def test_without_a_season_none_is_found(seed: int) -> None:
    season = learn(hours(21), noisy([1000.0] * 21 * 24, seed), ZoneInfo("UTC"), 3600.0, 0.95)
    assert season.period == "none"
    assert season.at(datetime(2026, 12, 1, 3)) == pytest.approx(1045, abs=5)  # 0.95 of what lies in 950 to 1050


def test_one_day_of_history_has_no_season() -> None:
    assert learn(hours(1), [float(hour + 1) for hour in range(24)], ZoneInfo("UTC"), 3600.0, 1.0) == Season(
        "none", 3600.0, (24.0,), 1
    )


def test_a_season_follows_the_wall_clock_through_the_end_of_summer_time() -> None:
    """Records at 18:00 in Berlin are at 16:00 UTC in summer, and from 25 October on at 17:00 UTC."""
    times = [datetime(2026, 10, 20, tzinfo=UTC) + timedelta(hours=hour) for hour in range(24 * 12)]
    rates = [900.0 if at.astimezone(BERLIN).hour == 18 else 100.0 for at in times]
    season = learn(times, rates, BERLIN, 3600.0, 1.0)
    assert season.period == "day"
    assert [hour for hour in range(24) if season.at(datetime(2026, 12, 1, hour)) == 900.0] == [18]


def test_a_step_without_readings_has_the_higher_of_its_neighbours() -> None:
    times = [at for at in hours(3) if at.hour not in (0, 5, 6)]
    rates = [float(100 + at.hour) for at in times]
    season = learn(times, rates, ZoneInfo("UTC"), 3600.0, 1.0)
    assert season.rates[4:8] == (104.0, 107.0, 107.0, 107.0)
    assert season.rates[0] == 123.0  # of 23:00 and 01:00


@pytest.mark.parametrize("rates", [[], [0.0, 0.0]])
def test_a_history_without_records_is_refused(rates: list[float]) -> None:
    with pytest.raises(InvalidInput, match="a season needs rates above 0"):
        learn(hours(1)[: len(rates)], rates, BERLIN, 3600.0, 0.9)
