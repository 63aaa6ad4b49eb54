"""What arrives, and what a job takes at its limit."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from known_answers.counted import Doing, Vertex, job_counts, readings
from models.capacity.observed.counters.counts import JobCounts, LogCounts
from models.capacity.observed.counters.intervals import intervals
from models.capacity.observed.waiting.lag import (
    Round,
    arriving,
    at_capacity,
    consumption,
    growth,
    lag_before,
    mst_seen,
    rounds,
)


def source(rate: float, pending: float | None, grows: float) -> Vertex:
    one = Doing(records_in=rate, records_out=rate, busy=0.5, pending=pending, pending_grows=grows)
    return Vertex("source", [one, one], is_source=True)


def test_what_arrives_is_consumption_and_growth_of_the_lag() -> None:
    """Two tasks take 1,000 records/s each, and what waits before each grows by 300 records/s: 2,600 arrive."""
    read = readings(source(1000.0, pending=0.0, grows=300.0))
    of = rounds(read, intervals(read))
    assert len(of) == 6
    assert consumption(of) == pytest.approx(2000.0)
    assert growth(of) == pytest.approx(600.0)
    assert arriving(of) == pytest.approx(2600.0)


def test_a_source_task_that_finishes_meanwhile_ends_no_round() -> None:
    """The input of the second one is bounded, and read after the third of six rounds: then 1,300 records/s arrive."""
    read = readings(source(1000.0, pending=0.0, grows=300.0))
    for number, reading in enumerate(read[4:], start=4):
        (vertex,) = reading.vertices
        done = replace(vertex.tasks[1], finished=True, runs=False, pending=None)
        read[number] = replace(reading, vertices=(replace(vertex, tasks=(vertex.tasks[0], done)),))
    of = rounds(read, intervals(read))
    assert [r.emitted for r in of] == pytest.approx([2000.0] * 3 + [1000.0] * 3)
    assert growth(of[3:]) == pytest.approx(300.0)


def test_a_catch_up_takes_more_than_arrives() -> None:
    """It takes 2,000 records/s, though no task is busy for more than half of the time: something else limits it."""
    read = readings(source(1000.0, pending=90_000.0, grows=-400.0))
    of = rounds(read, intervals(read))
    assert arriving(of) == pytest.approx(1200.0)
    seen = mst_seen(at_capacity(of))
    assert seen is not None
    assert seen.value == pytest.approx(2000.0)
    assert (seen.low, seen.high) == pytest.approx((2000 / 1.15, 2000 * 1.15))


def test_a_backlog_that_ends_meanwhile_counts_once() -> None:
    """500 records/s arrive; 3,000 that waited are taken at 800 records/s in ten seconds, and then nothing waits."""
    taken, lags = [800.0, 800.0, 500.0, 500.0, 500.0], [3000.0, 0.0, 0.0, 0.0, 0.0]
    of = [
        Round(ended_s=10.0 * i, seconds=10.0, emitted=c, lag=lag)
        for i, (c, lag) in enumerate(zip(taken, lags, strict=True))
    ]
    assert arriving(of) == pytest.approx(500.0)


def test_without_a_lag_what_arrives_is_unknown() -> None:
    read = readings(source(1000.0, pending=None, grows=0.0))
    of = rounds(read, intervals(read))
    assert arriving(of) is None
    assert at_capacity(of) == []


def test_records_that_are_under_way_are_no_backlog() -> None:
    """4,000 records at 2,000 records/s are two seconds of them, less than a backlog is."""
    read = readings(source(1000.0, pending=2000.0, grows=0.0))
    assert at_capacity(rounds(read, intervals(read))) == []
    assert mst_seen([]) is None


def test_rounds_soon_after_a_start_do_not_count() -> None:
    of = [Round(ended_s=t, seconds=10.0, emitted=100.0, lag=10_000.0) for t in range(10, 61, 10)]
    assert [r.ended_s for r in at_capacity(of)] == [20, 30, 40, 50, 60]
    assert [r.ended_s for r in at_capacity(of, started_s=[15.0])] == [50, 60]


def by_source(rate: float, waits: float, late_s: Sequence[float], busy: float = 0.6) -> list[JobCounts]:
    """Readings every ten seconds whose counters are late, so that what was read meanwhile seems to wait."""
    return [
        job_counts(
            [Vertex("source", [Doing(rate, rate, busy=busy, pending=waits + rate * late)], is_source=True)],
            at,
            at - late,
        )
        for at, late in zip(range(10, 10 * len(late_s) + 1, 10), late_s, strict=True)
    ]


def by_broker(
    rate: float, waits: float, late_s: Sequence[float], busy: float = 0.6, asked_before_s: float = 0.0
) -> list[JobCounts]:
    """The same, where the broker was asked for the ends of the logs."""
    return [
        replace(reading, vertices=(replace(reading.vertices[0], logs=LogCounts(reading.time_s - asked_before_s, {})),))
        for reading in by_source(rate, waits, late_s, busy)
    ]


def test_what_was_read_since_the_counters_does_not_wait() -> None:
    """700 records/s; counters that are five seconds older than the freshest seem to leave 3,500 more records waiting."""
    read = by_broker(700.0, 100.0, late_s=[0, 5, 5, 0, 5, 5])
    of = rounds(read, intervals(read))
    assert [one.lag for one in of] == pytest.approx([100.0] * 5)
    assert at_capacity(of) == []
    assert arriving(of) == pytest.approx(700.0)


def test_the_first_counters_after_a_start_may_be_old_too() -> None:
    """As above, where the first reading ends no round: 3,600 records seem to wait at it, and 100 do."""
    read = by_broker(700.0, 100.0, late_s=[5, 0])
    assert lag_before(read, intervals(read)) == pytest.approx(100.0)


def test_counters_of_the_time_when_the_broker_was_asked_are_not_late() -> None:
    """That is 2 s before the reading. In the second one the counters are newer, so that 2 * 700 records fewer seem to wait."""
    read = by_broker(700.0, 600.0, late_s=[2, 0, 2], asked_before_s=2.0)
    assert lag_before(read[:2], intervals(read[:2])) == pytest.approx(2000.0)
    assert [one.lag for one in rounds(read, intervals(read))] == pytest.approx([600.0, 2000.0])


def test_counters_that_are_too_old_do_not_say_what_waits() -> None:
    read = by_broker(700.0, 100.0, late_s=[0, 0, 8, 0])
    lags = [one.lag for one in rounds(read, intervals(read))]
    assert lags == [pytest.approx(100.0), None, pytest.approx(100.0)]


def test_the_age_of_counters_does_not_count_what_the_source_itself_reports() -> None:
    read = by_source(700.0, 100.0, late_s=[0, 5, 5])
    assert [one.lag for one in rounds(read, intervals(read))] == pytest.approx([3600.0] * 2)
    assert lag_before(read[1:], intervals(read[1:])) == pytest.approx(3600.0)


def test_records_that_are_not_visible_yet_are_no_backlog() -> None:
    """A transaction is committed every ten seconds, so that 7,000 records seem to wait before tasks that are busy for 60 %."""
    read = by_broker(700.0, 7000.0, late_s=[0] * 6)
    assert at_capacity(rounds(read, intervals(read))) == []
    full = by_broker(700.0, 7000.0, late_s=[0] * 6, busy=0.95)
    assert len(at_capacity(rounds(full, intervals(full)))) == 4


@given(st.floats(1.0, 1e6), st.floats(-0.4, 0.4), st.integers(3, 30), st.floats(1.0, 60.0))
def test_arrivals_do_not_depend_on_how_fast_they_are_taken(
    rate: float, behind: float, count: int, every: float
) -> None:
    """Whatever share is left waiting or caught up, as many arrive."""
    of = [
        Round(ended_s=i * every, seconds=every, emitted=rate * (1 - behind), lag=1e9 + i * every * rate * behind)
        for i in range(count)
    ]
    assert arriving(of) == pytest.approx(rate, rel=1e-6)
