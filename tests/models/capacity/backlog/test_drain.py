"""A drain gives the capacity of a fluid job, and agrees with the search by injection."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.capacity.backlog.drain import Backlog, DrainEnd, DrainMeasurement, DrainSettings, steepest
from models.capacity.backlog.lag import LagPoint
from models.errors import InvalidInput

from .conftest import POLL_S, FluidJob


def _drained(capacity: float, wanted: Backlog, commit_s: float = POLL_S, slow_for_s: float = 0.0) -> list[LagPoint]:
    """A job that starts behind, until its lag is gone or has been read for long enough."""
    job = FluidJob(capacity, commit_s, slow_for_s=slow_for_s, arrived=wanted.records)
    points = [job.point()]
    while points[-1].lag > 0 and points[-1].time_s < wanted.enough_s + commit_s:
        points += job.fed(0.0, POLL_S)[1:]
    return points


def _measured(capacity: float, wanted: DrainSettings, **how: float) -> tuple[DrainMeasurement, list[Backlog]]:
    measurement, done = DrainMeasurement(wanted), []
    while (backlog := measurement.next()) is not None:
        done.append(backlog)
        measurement.observe(_drained(capacity, backlog, **how))
    return measurement, done


@settings(max_examples=40)
@given(
    capacity=st.floats(100, 1e6),
    guess=st.floats(0.02, 10),
    commit_s=st.sampled_from([0.5, 1.0, 5.0]),
    slow_for_s=st.sampled_from([0.0, 4.0, 10.0]),
)
def test_it_measures_the_capacity_from_any_first_backlog(
    capacity: float, guess: float, commit_s: float, slow_for_s: float
) -> None:
    asked = DrainSettings(first_backlog=guess * 30 * capacity, most_backlog=1e9, attempts=6)
    measurement, done = _measured(capacity, asked, commit_s=commit_s, slow_for_s=slow_for_s)
    assert measurement.end is DrainEnd.MEASURED
    assert measurement.mst == pytest.approx(capacity, rel=1e-6)
    assert [one.records for one in done] == sorted(one.records for one in done)
    assert all(later.records <= 8 * one.records for one, later in pairwise(done))


def test_a_log_that_keeps_too_little_is_an_answer_in_words() -> None:
    measurement, done = _measured(1000.0, DrainSettings(first_backlog=1000, most_backlog=20_000))
    assert measurement.end is DrainEnd.TOO_SHORT and measurement.mst is None
    assert [one.records for one in done] == [1000, 8000, 20_000]
    assert measurement.reason is not None and "let the topics keep more records" in measurement.reason


def test_a_job_that_commits_nothing_is_an_answer_in_words() -> None:
    measurement = DrainMeasurement(DrainSettings(first_backlog=1000, most_backlog=20_000))
    measurement.observe([LagPoint(0.0, 1000.0, 1000.0), LagPoint(60.0, 1000.0, 1000.0)])
    assert measurement.end is DrainEnd.NOTHING_READ and measurement.next() is None
    assert measurement.reason is not None and "completes no checkpoint" in measurement.reason


def test_the_steepest_fall_is_the_fastest_stretch_that_is_long_enough() -> None:
    consumed = [0, 10, 20, 50, 80, 110, 120]
    points = [LagPoint(float(t), 1000.0, 1000.0 - c) for t, c in enumerate(consumed)]
    assert steepest(points, 3.0) == 30.0
    assert steepest(points, 1.0) == 30.0
    assert steepest(points, 5.0) == (110 - 0) / 5 == 22.0
    assert steepest(points, 7.0) is None
    with pytest.raises(InvalidInput, match="in the order of time"):
        steepest(points[::-1], 1.0)


@given(st.lists(st.tuples(st.floats(0.1, 5), st.floats(0, 100)), min_size=2, max_size=30), st.floats(0.1, 20))
def test_no_stretch_that_is_just_long_enough_is_steeper(gaps: list[tuple[float, float]], window_s: float) -> None:
    time, consumed, points = 0.0, 0.0, []
    for seconds, records in gaps:
        time, consumed = time + seconds, consumed + records
        points.append(LagPoint(time, 1e6, 1e6 - consumed))
    found = steepest(points, window_s)
    shortest = [
        next((a for a in reversed(points[:i]) if b.time_s - a.time_s >= window_s), None) for i, b in enumerate(points)
    ]
    rates = [
        (b.consumed - a.consumed) / (b.time_s - a.time_s)
        for a, b in zip(shortest, points, strict=True)
        if a is not None
    ]
    assert found == (max(rates) if rates else None)
