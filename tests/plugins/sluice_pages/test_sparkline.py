"""The small curve of rates over time."""

from datetime import UTC, datetime, timedelta

from pipelines.pages.operation import RatePoint
from sluice_pages.sparkline import sparkline

BEGAN = datetime(2026, 3, 1, 12, tzinfo=UTC)


def _points(*rates: tuple[float, float]) -> list[RatePoint]:
    return [RatePoint(seen_at=BEGAN + timedelta(hours=hours), rate=rate) for hours, rate in rates]


def test_rates_stand_at_their_time_and_between_the_lowest_and_the_highest() -> None:
    # Of 120 by 30 a margin of 3 is left: 0 h is at 3, 4 h at 117; 100 records/s at 27, 300 at 3.
    line = sparkline(_points((0, 100), (1, 300), (4, 200)), 150)
    assert line is not None
    assert line.points == "3,27 31.5,3 117,15"
    assert (line.target, line.low, line.high) == (21.0, 100, 300)


def test_a_target_beyond_the_rates_is_in_the_picture() -> None:
    line = sparkline(_points((0, 100), (1, 100)), 200)
    assert line is not None and (line.points, line.target) == ("3,27 117,27", 3.0)


def test_rates_that_equal_the_target_are_a_line_in_the_middle() -> None:
    line = sparkline(_points((0, 100), (1, 100)), 100)
    assert line is not None and (line.points, line.target) == ("3,15 117,15", 15.0)


def test_there_is_no_curve_of_a_single_time() -> None:
    assert sparkline([], 100) is None
    assert sparkline(_points((0, 100)), 100) is None
    assert sparkline(_points((0, 100), (0, 120)), 100) is None
