"""What tasks did between two readings."""

from dataclasses import replace

import pytest

from known_answers.counted import Doing, Vertex, job_counts, readings, without_times
from models.capacity.observed.counters.counts import JobCounts
from models.capacity.observed.counters.intervals import cpu_shares, intervals

MAP = Vertex("map", [Doing(records_in=50, records_out=25, busy=0.4, backpressure=0.1)])


def test_counters_belong_to_the_time_that_the_task_itself_counted() -> None:
    """Read ten seconds apart, but the second refresh was two seconds late: eight seconds of work."""
    (one,) = intervals([job_counts([MAP], 100.0, ran_s=100.0), job_counts([MAP], 110.0, ran_s=108.0)])
    assert one.seconds == pytest.approx(8.0)
    assert one.records_in / one.seconds == pytest.approx(50.0)
    assert (one.busy_s, one.backpressured_s, one.idle_s) == pytest.approx((3.2, 0.8, 4.0))
    assert one.bytes_out == pytest.approx(8 * 25 * 100)


def test_a_reading_without_a_refresh_makes_no_interval() -> None:
    first, second = readings(MAP, times=[10, 20])
    (one,) = intervals([first, replace(first, time_s=15.0), second])
    assert one.seconds == pytest.approx(10.0)


def test_nothing_is_said_over_a_restart() -> None:
    """Counters begin at 0 again: 20 s of the new attempt are known, not the time around the restart."""
    before = [job_counts([MAP], t) for t in (10.0, 20.0)]
    after = [job_counts([MAP], t, ran_s=t - 25.0, attempt=1, since_ms=2) for t in (30.0, 40.0, 50.0)]
    found = intervals(before + after)
    assert [one.ended_s for one in found] == [20.0, 40.0, 50.0]
    assert all(one.records_in / one.seconds == pytest.approx(50.0) for one in found)


def test_counters_that_fall_are_a_restart() -> None:
    first, second, third = readings(MAP, times=[10, 20, 30])
    low = job_counts([MAP], 20.0, ran_s=5.0)
    assert [one.ended_s for one in intervals([first, low, third])] == [30.0]
    assert len(intervals([first, second, third])) == 2


def test_a_task_that_ended_is_left_out() -> None:
    def ended(reading: JobCounts) -> JobCounts:
        vertex = reading.vertices[0]
        task = replace(vertex.tasks[0], runs=False, finished=True)
        return replace(reading, vertices=(replace(vertex, tasks=(task,)),))

    first, second, third = readings(MAP, times=[10, 20, 30])
    assert len(intervals([first, second, ended(third)])) == 1
    assert intervals([ended(first), ended(second)]) == []


def test_without_its_own_times_a_task_is_dated_by_the_readings() -> None:
    (one,) = intervals([without_times(r) for r in readings(MAP, times=[10, 20])])
    assert one.seconds == pytest.approx(10.0)
    assert one.busy_s is None


def test_cores_used_are_those_between_readings_that_have_them() -> None:
    first, second, third = readings(MAP, times=[10, 20, 30])
    assert cpu_shares([first, replace(second, workers={}), third]) == pytest.approx({"tm1": 0.5})
    restarted = replace(third, workers={"tm1": replace(third.workers["tm1"], cpu_s=0.1)})
    assert cpu_shares([first, restarted]) == {}
