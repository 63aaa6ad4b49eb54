import pytest

from models.errors import SluiceError
from testbeds.flink.measuring.counters import Counter


def _counter(*readings: tuple[float, float]) -> Counter:
    counter = Counter()
    for time_s, value in readings:
        counter.read(time_s, value, refreshed=True)
    return counter


def test_between_two_refreshes_a_counter_grows_evenly() -> None:
    counter = _counter((0.0, 100.0), (1.0, 110.0), (3.0, 130.0), (4.0, 170.0))
    assert counter.covers(0.5, 3.5)
    assert counter.increments([0.5, 2.0, 3.5]) == pytest.approx([15.0, 30.0])


def test_a_reading_that_is_no_news_is_not_taken_for_a_standstill() -> None:
    counter = _counter((0.0, 0.0))
    counter.read(0.5, 0.0, refreshed=False)
    counter.read(1.0, 10.0, refreshed=True)
    assert counter.increments([0.0, 0.5]) == pytest.approx([5.0])


def test_a_standstill_that_is_news_counts() -> None:
    assert _counter((0.0, 5.0), (1.0, 5.0), (2.0, 9.0)).increments([0.0, 1.0, 2.0]) == pytest.approx([0.0, 4.0])


def test_times_outside_the_readings_are_not_covered() -> None:
    counter = _counter((1.0, 0.0), (2.0, 1.0))
    assert not counter.covers(0.9, 1.5) and not counter.covers(1.0, 2.1) and counter.covers(1.0, 2.0)
    assert not _counter((1.0, 0.0)).covers(1.0, 1.0)


def test_a_counter_that_goes_backwards_reveals_a_restart() -> None:
    counter = _counter((0.0, 10.0))
    with pytest.raises(SluiceError, match=r"from 10 back to 3.*restarted"):
        counter.read(1.0, 3.0, refreshed=True)


def test_gaps_are_those_that_touch_the_stretch() -> None:
    counter = _counter((0.0, 0.0), (7.0, 1.0), (8.0, 2.0), (9.0, 3.0), (20.0, 4.0))
    assert counter.longest_gap_s(7.5, 8.5) == 1.0
    assert counter.longest_gap_s(6.0, 8.5) == 7.0
    assert counter.longest_gap_s(8.0, 10.0) == 11.0


def test_what_is_forgotten_is_not_needed_for_later_times() -> None:
    counter = _counter((0.0, 0.0), (1.0, 10.0), (2.0, 20.0), (3.0, 30.0))
    counter.forget_before(1.5)
    assert len(counter.times) == 3
    assert counter.increments([1.5, 2.5]) == pytest.approx([10.0])
