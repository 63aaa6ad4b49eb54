"""Records that arrive in a durable log, and records that wait in it."""

import numpy as np
import pytest

from testbeds.flink.feeding.durable_log import DurableLog


def test_records_come_at_the_rate_in_force():
    log = DurableLog({"source": 1.0})
    log.resume(100.0, now=10.0, came_meanwhile=0.0, positions={"source": 0.0})
    log.change(20.0, now=15.0)
    assert log.arrived([10.0, 12.0, 15.0, 20.0]) == pytest.approx([0.0, 200.0, 500.0, 600.0])


def test_what_is_not_read_waits():
    log = DurableLog({"source": 1.0})
    log.resume(100.0, now=0.0, came_meanwhile=0.0, positions={"source": 0.0})
    read = log.read({"source": np.array([100.0, 150.0, 300.0])})
    assert list(log.lag(log.arrived([1.0, 2.0, 3.0]), read)) == [0.0, 50.0, 0.0]


def test_events_taken_at_a_rate_are_not_of_the_log():
    """7 before it begins: the lanes must be readable up to event 107 when 100 have come."""
    log = DurableLog({"source": 1.0})
    log.resume(100.0, now=0.0, came_meanwhile=0.0, positions={"source": 7.0})
    assert log.in_lanes(1.0) == {"source": 107.0}
    assert log.read({"source": np.array([57.0])})["source"] == pytest.approx([50.0])


def test_a_log_that_stands_goes_on_with_other_tasks():
    """100 had come and 60 were read; 30 come while the job is down. New tasks count from 0 again."""
    log = DurableLog({"source": 1.0})
    log.resume(100.0, now=0.0, came_meanwhile=0.0, positions={"source": 0.0})
    log.stop(1.0, {"source": 60.0})
    assert log.stands and log.stopped_at == 100.0
    assert list(log.lag(np.array([100.0]), log.read_before)) == [40.0]
    log.redeployed({"source": 60.0})
    log.resume(10.0, now=5.0, came_meanwhile=30.0, positions={"source": 0.0})
    assert log.in_lanes(6.0) == {"source": 140.0}
    read = log.read({"source": np.array([0.0, 80.0])})
    assert list(log.lag(log.arrived([5.0, 6.0]), read)) == [70.0, 0.0]


def test_stopping_twice_changes_nothing():
    log = DurableLog({"source": 1.0})
    log.resume(100.0, now=0.0, came_meanwhile=0.0, positions={"source": 0.0})
    log.stop(1.0, {"source": 60.0})
    log.stop(9.0, {"source": 99.0})
    assert log.stopped_at == 100.0 and log.read_before == {"source": 60.0}
    log.wait(5.0)
    assert log.stopped_at == 105.0


def test_sources_have_their_shares():
    log = DurableLog({"bids": 0.75, "people": 0.25})
    log.resume(100.0, now=0.0, came_meanwhile=0.0, positions={"bids": 0.0, "people": 0.0})
    assert log.in_lanes(1.0) == {"bids": 75.0, "people": 25.0}
    read = log.read({"bids": np.array([70.0]), "people": np.array([25.0])})
    assert list(log.lag(log.arrived([1.0]), read)) == [5.0]


def test_what_came_between_two_windows_is_reported_with_the_second():
    log = DurableLog({"source": 1.0})
    first = log.since_last(np.array([100.0, 200.0]), np.array([90.0, 200.0]))
    assert [list(source) for source in first] == [[100.0, 100.0], [90.0, 110.0]]
    second = log.since_last(np.array([320.0, 420.0]), np.array([310.0, 420.0]))
    assert [list(source) for source in second] == [[120.0, 100.0], [110.0, 110.0]]
