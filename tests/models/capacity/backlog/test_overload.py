"""Measuring by overload against jobs that take a known rate."""

import pytest

from models.capacity.backlog.overload import OverloadMeasurement
from models.capacity.mst import MstSettings, Phase, Stop
from models.errors import SluiceError

SETTINGS = MstSettings(warmup_s=10.0, warmup_rate=50.0, observe_s=10.0, iterations=7, sensitivity=0.05)


def measured(*taken: float) -> tuple[OverloadMeasurement, list[tuple[float, Phase]]]:
    """What is offered to a job that takes at most these rates, one after the other, the last for good."""
    measurement, offered, rates = OverloadMeasurement(SETTINGS), [], list(taken)
    while (injection := measurement.next()) is not None:
        offered.append((injection.rate, injection.phase))
        measurement.observe(min(injection.rate, rates[0] if len(rates) == 1 else rates.pop(0)))
    return measurement, offered


def test_a_job_that_is_behind_takes_its_capacity_in_two_windows():
    found, offered = measured(40.0)
    # The warm-up, then twice what it takes, twice.
    assert offered == [(50.0, Phase.WARMUP), (80.0, Phase.OBSERVE), (80.0, Phase.OBSERVE)]
    assert found.mst == 40.0
    assert found.stop is Stop.CONVERGED
    assert found.reason == "it took 40 records/s while more was offered; two windows in a row agree within 5%"


def test_a_rate_that_it_keeps_up_with_is_doubled():
    found, offered = measured(300.0)
    assert [rate for rate, _ in offered] == [50.0, 100.0, 200.0, 400.0, 600.0]
    assert found.mst == 300.0


def test_windows_that_differ_are_followed_by_others():
    # 40 and 30 differ by a quarter, 30 and 31 by 3 %.
    found, offered = measured(40.0, 40.0, 30.0, 31.0)
    assert [rate for rate, _ in offered] == [50.0, 80.0, 80.0, 60.0]
    assert found.mst == 30.5


def test_where_no_two_agree_the_median_counts():
    found, _ = measured(40.0, 40.0, 20.0, 30.0, 40.0, 20.0, 30.0)
    assert found.stop is Stop.ITERATIONS
    assert found.mst == 30.0  # of 20, 20, 30, 30, 40, 40 the upper one in the middle


def test_a_job_that_keeps_up_with_everything_has_the_highest_rate():
    found, offered = measured(1e9)
    assert found.mst == offered[-1][0] == 50.0 * 2**6
    assert "kept up with all 6 rates" in (found.reason or "")


def test_a_job_that_takes_nothing_has_none():
    found, offered = measured(0.0)
    assert (found.mst, found.stop, len(offered)) == (None, Stop.NO_FLOW, 1)
    with pytest.raises(SluiceError, match="has ended"):
        found.observe(1.0)


@pytest.mark.parametrize("capacity", [1.0, 77.0, 1500.0])
def test_the_capacity_is_found_exactly(capacity):
    found, _ = measured(capacity)
    assert found.mst == pytest.approx(capacity)
