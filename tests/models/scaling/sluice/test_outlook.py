"""Expected costs of deployments, by hand."""

import numpy as np
import pytest

from models.scaling.sluice import SluiceSettings
from models.scaling.sluice.forecast import Forecast
from models.scaling.sluice.outlook import Options, Situation, costs

SETTINGS = SluiceSettings(horizon_s=600, patience_s=1e9, late_s=1, correction_s=1e9)
"""A second of late records costs 2 x 10 task-seconds, however late they are: 0.2 a record."""


def flat(rate: float) -> Forecast:
    path = np.full(10, rate)
    return Forecast(path, path, path)


def option(capacity: float, tasks: float, delay_s: float = 0.0, downtime_s: float = 0.0) -> Options:
    return Options(*(np.array([x]) for x in (capacity, tasks, delay_s, downtime_s)))


def situated(capacity: float, tasks: float, lag: float) -> Situation:
    return Situation(capacity, tasks, lag, mean_rate=100, need=10, downtime_s=30, most_tasks=np.inf, late_price=2)


def test_what_keeps_up_costs_its_tasks() -> None:
    situation = situated(capacity=120, tasks=12, lag=0)
    found = costs(option(120, 12), situation, flat(100), SETTINGS)
    assert found[0] == 12 * 600


def test_a_rescale_holds_records_up_until_they_are_caught_up_with() -> None:
    situation = situated(capacity=120, tasks=12, lag=0)
    found = costs(option(150, 15, downtime_s=30), situation, flat(100), SETTINGS)
    # 3000 records wait after 30 s; at 50 records/s they are caught up with after 60 s more. The last step, at whose end
    # nothing waits, is not late: 80 s.
    assert found[0] == pytest.approx(15 * 600 + 2 * 10 * 80)


def test_tasks_are_paid_for_from_the_rescale_on() -> None:
    situation = situated(capacity=200, tasks=20, lag=0)
    found = costs(option(200, 10, delay_s=120), situation, flat(100), SETTINGS)
    assert found[0] == 20 * 120 + 10 * 480


def test_what_cannot_keep_up_is_late_to_the_end_and_after() -> None:
    situation = situated(capacity=50, tasks=5, lag=0)
    found = costs(option(50, 5), situation, flat(100), SETTINGS)
    # Each step 500 records more wait, 10 s of reading: late from the first step on. 30 000 records are left, and with 5 %
    # of the capacity to spare (2.5 records/s) they take 12 000 s.
    assert found[0] == pytest.approx(5 * 600 + 2 * 10 * (600 + 12_000))


def test_the_paths_of_an_uncertain_rate_are_weighted() -> None:
    situation = situated(capacity=100, tasks=10, lag=0)
    forecast = Forecast(np.full(10, 100.0), np.full(10, 100.0), np.full(10, 110.0))
    found = costs(option(100, 10), situation, forecast, SETTINGS)
    # Only the high path is late: 100 records more each step are 1 s of reading, late from the second step on. 6000 are left,
    # and with 5 records/s to spare they take 1200 s, in which 110 records/s come.
    assert found[0] == pytest.approx(10 * 600 + 0.25 * 0.2 * 110 * (590 + 1200))


def test_patience_makes_late_records_dearer() -> None:
    situation = situated(capacity=100, tasks=10, lag=3000)
    calm = costs(option(100, 10), situation, flat(100), SETTINGS)
    hurried = costs(option(100, 10), situation, flat(100), SETTINGS.model_copy(update={"patience_s": 30.0}))
    # Every record waits 30 s: with as much patience each counts twice. 3000 left take 600 s at 5 records/s to spare.
    assert calm[0] == pytest.approx(6000 + 20 * (600 + 600))
    assert hurried[0] == pytest.approx(6000 + 20 * (1200 + 600))


def test_an_overload_is_assumed_to_be_corrected_later() -> None:
    situation = situated(capacity=100, tasks=10, lag=0)
    settings = SETTINGS.model_copy(update={"correction_s": 60.0})
    found = costs(option(100, 10), situation, flat(200), settings)
    # After 60 s 6000 records wait; a rescale to 260 records/s is down for 30 s, 12 000 wait, and 60 records/s are to
    # spare: caught up with after 200 s more. It is late from the first step on, and not in the last one of the 290 s.
    assert found[0] == pytest.approx(10 * 60 + 26 * 540 + 2 * 10 * 560)


def test_a_correction_is_limited_by_the_cluster() -> None:
    situation = Situation(100, 10, lag=0, mean_rate=100, need=10, downtime_s=30, most_tasks=15, late_price=1e-9)
    settings = SETTINGS.model_copy(update={"correction_s": 60.0})
    found = costs(option(100, 10), situation, flat(200), settings)
    assert found[0] == pytest.approx(10 * 60 + 15 * 540, rel=1e-4)
