"""What waits by the age of emitted records and by what Kafka's consumer has fetched."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from models.capacity.observed.counters.counts import JobCounts, LogCounts, TaskCounts, VertexCounts
from models.capacity.observed.waiting.estimated_lag import LagEstimator


def task(
    ran_s: float,
    emitted: float,
    age_s: float | None,
    *,
    idle_s: float = 0.0,
    pending: float | None = 0.0,
    unread: float | None = None,
    dropped: float = 0.0,
    polled_s: float | None = None,
    attempt: int = 0,
) -> TaskCounts:
    return TaskCounts(
        task=0,
        attempt=attempt,
        runs=True,
        finished=False,
        worker="tm1",
        busy_s=0.0,
        backpressured_s=ran_s - idle_s,
        idle_s=idle_s,
        emitted=emitted,
        pending=pending,
        age_s=age_s,
        read=emitted + dropped,
        fetched=None if unread is None else emitted + dropped + unread,
        polled_s=polled_s,
    )


def reading(one: TaskCounts) -> JobCounts:
    source = VertexCounts("s", "Source: cards", ("Source: cards",), 128, "", True, (one,))
    return JobCounts(one.ran_s or 0.0, 1, "RUNNING", (source,), {})


def waiting(tasks: Sequence[TaskCounts]) -> list[float | None]:
    lags = LagEstimator()
    return [lags.seen(reading(one)).vertices[0].tasks[0].pending for one in tasks]


ARRIVING = (4000 + 10 * 50) / (80 / 3 + 10)
"""Records/s, as `overloaded` shows them."""


def overloaded(off_s: float = 0.0) -> list[TaskCounts]:
    """Idle for half of ten seconds; then 100 records/s are emitted where 150 arrive, so that ages grow by 1/3 s a second."""
    held = [task(10.0 + s, 500 + 100.0 * s, off_s + s / 3, idle_s=5.0) for s in (10.0, 20.0, 30.0, 40.0)]
    return [task(0.0, 0.0, off_s), task(10.0, 500.0, off_s, idle_s=5.0), *held]


def test_an_overload_is_seen_though_the_source_reports_that_nothing_waits() -> None:
    # After 40 s the age is 40/3 s. The 4,000 records since arrived within 40 - 40/3 s; 50 records/s had come before, for
    # 10 s of them. So 123 records/s arrive, and 40/3 s of them wait.
    assert waiting(overloaded())[:2] == [0.0, 0.0]
    assert waiting(overloaded())[-1] == pytest.approx(40 / 3 * ARRIVING)


def test_time_stamps_of_the_past_do_not_count_as_waiting() -> None:
    assert waiting(overloaded(off_s=86_400.0)) == pytest.approx(waiting(overloaded()))


def test_nothing_waits_while_the_task_is_idle_for_a_part() -> None:
    # A recorded topic replayed at half its speed: time stamps fall behind by half a second a second.
    slow = [task(10.0 * k, 1000.0 * k, 5.0 * k, idle_s=1.0 * k) for k in range(6)]
    assert waiting(slow) == [0.0] * 6


def test_what_the_source_reports_counts_where_it_is_more() -> None:
    assert waiting([task(0.0, 0.0, 0.0, pending=9000.0), task(10.0, 1000.0, 1.0, pending=8000.0)]) == [9000.0, 8000.0]


def test_what_the_consumer_has_fetched_waits() -> None:
    assert waiting([task(0.0, 0.0, 0.0), task(10.0, 500.0, 0.1, idle_s=5.0, unread=7.0, polled_s=9.0)]) == [0.0, 7.0]


@pytest.mark.parametrize(("age_s", "since_s"), [(1.8, 1.5), (0.6, 0.6), (0.0, 0.0)])
def test_what_came_since_the_consumer_was_asked_for_more_waits_too(age_s: float, since_s: float) -> None:
    """50 records/s arrive, and it was asked 1 to 2 s ago; since the record came that was emitted last, if that is shorter."""
    held = task(20.0, 900.0, age_s, idle_s=5.0, unread=30.0, pending=60.0, polled_s=1.0)
    rate = (10 * 50 + 400) / (10 + 10 - age_s)
    assert waiting([task(0.0, 0.0, 0.0), task(10.0, 500.0, 0.0, idle_s=5.0), held])[-1] == pytest.approx(
        30 + 60 + since_s * rate
    )


def test_before_a_task_that_was_just_started_waits_what_it_has_fetched() -> None:
    """It is not known yet whether it is idle, but the record that it emitted last is new."""
    assert waiting([task(3.0, 100.0, 0.0, unread=2.0, polled_s=0.0)]) == [2.0]


def test_the_age_counts_where_a_large_fetch_is_not_counted_yet() -> None:
    *before, last = overloaded()
    assert waiting([*before, replace(last, read=last.emitted, fetched=last.emitted, polled_s=0.0)]) == waiting(
        overloaded()
    )


@pytest.mark.parametrize(
    ("idle_s", "age_s", "counted"),
    [(8.0, 0.1, 3.0), (8.0, 1.1, 3 + 1.0 * 40), (8.0, 5.1, 70.0), (5.0, 0.1, 70.0)],
    ids=["new records", "records of 1 s", "a backlog", "held"],
)
def test_what_a_broker_counts_is_no_more_than_can_wait_before_an_idle_task(
    idle_s: float, age_s: float, counted: float
) -> None:
    """The offsets that Flink shows are older than the logs' ends, so that 70 records seem to wait; 40 records/s arrive."""
    lags = LagEstimator()
    before = [task(ran_s, 40 * ran_s, 0.1, idle_s=ran_s / 2) for ran_s in (0.0, 10.0, 20.0, 30.0)]
    last = task(40.0, 1600.0, age_s, idle_s=10 + idle_s, unread=3.0, pending=70.0)
    for one in (*before, last):
        (source,) = reading(one).vertices
        by_broker = replace(source, logs=LogCounts(0.0, {}))
        seen = lags.seen(replace(reading(one), vertices=(by_broker,)))
    assert seen.vertices[0].tasks[0].pending == pytest.approx(counted)


def test_what_the_source_will_drop_does_not_wait() -> None:
    """It emits one record of four."""
    some = task(10.0, 500.0, 0.1, idle_s=5.0, unread=80.0, dropped=1500.0)
    assert waiting([task(0.0, 0.0, 0.0), some])[-1] == 80 / 4


def test_what_is_unknown_stays_unknown() -> None:
    assert waiting([task(0.0, 0.0, 0.0, pending=None), task(10.0, 1000.0, 9.0, pending=None)]) == [None, None]
    assert waiting([task(0.0, 0.0, None), task(10.0, 1000.0, None)]) == [0.0, 0.0]


def test_a_backlog_outlives_the_restart_of_a_task() -> None:
    after = [task(5.0, 1000.0, 12.0, attempt=1), task(15.0, 3000.0, 12.0, attempt=1)]
    # ARRIVING before; then it emits 200 records/s whose age stays 12 s, so as many arrive.
    assert waiting([*overloaded(), *after])[-2:] == pytest.approx(
        [12 * ARRIVING, 12 * (2000 + 10 * ARRIVING) / (10 + 10)]
    )


def test_a_task_that_is_held_after_it_was_idle_does_not_hide_what_waits_from_then_on() -> None:
    # Buffers take 100 records/s for half of ten seconds, then the task is held: its age at the end is no offset of time stamps.
    filling = [task(0.0, 0.0, 0.1), task(10.0, 500.0, 0.1, idle_s=5.0), task(20.0, 1500.0, 2.0, idle_s=10.0)]
    held = [task(30.0, 2500.0, 4.0, idle_s=10.0)]
    # d is 4 s, with d_0 of 0.1 s; 1,000 records arrived within 10 - (4 - 2) s, and 100 records/s for 10 s before.
    assert waiting([*filling, *held]) == pytest.approx([0.0, 0.0, 0.0, 3.9 * (1000 + 10 * 100) / (8 + 10)])


def test_other_vertices_are_left_alone() -> None:
    counts = reading(task(1.0, 1.0, 1.0))
    sink = VertexCounts("k", "sink", ("sink",), 128, "", False, (task(1.0, 1.0, 1.0),))
    both = JobCounts(1.0, 1, "RUNNING", (counts.vertices[0], sink), {})
    assert LagEstimator().seen(both).vertices[1] is sink
