import pytest

from models.capacity.backlog.lag import LagPoint, LagWindow, steps, window
from models.errors import InvalidInput


def _points(*readings: tuple[float, float, float]) -> list[LagPoint]:
    return [LagPoint(*one) for one in readings]


def test_between_commits_rates_are_exact_though_the_lag_saws() -> None:
    # 100/s arrive and are taken; commits at 3 s and 13 s. From the first reading to the last, the lag grows by 400.
    readings = [(0.0, 0.0, 0.0), (2.0, 200.0, 200.0), (3.0, 300.0, 0.0), (12.0, 1200.0, 900.0), (13.0, 1300.0, 0.0)]
    points = _points(*readings, (17.0, 1700.0, 400.0))
    assert [one.time_s for one in steps(points)] == [3.0, 13.0]
    assert window(points) == LagWindow(10.0, 100.0, 100.0, 0.0, 0.0)


def test_without_two_commits_it_is_all_of_the_readings() -> None:
    found = window(_points((0.0, 0.0, 50.0), (10.0, 1000.0, 650.0)))
    assert (found.arriving, found.consumed, found.kept_up) == (100.0, 40.0, 40.0)


def test_an_older_lag_that_is_worked_off_is_not_taken_of_what_arrives() -> None:
    assert window(_points((0.0, 0.0, 900.0), (10.0, 1000.0, 0.0))).kept_up == 100.0


@pytest.mark.parametrize("readings", [[], [(0.0, 1.0, 1.0)], [(1.0, 1.0, 1.0), (1.0, 2.0, 1.0)]])
def test_rates_need_two_readings(readings: list[tuple[float, float, float]]) -> None:
    with pytest.raises(InvalidInput, match="two readings of the lag, one after the other"):
        window(_points(*readings))
