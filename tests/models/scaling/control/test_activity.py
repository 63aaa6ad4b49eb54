"""From readings of counters to what each vertex did."""

from dataclasses import replace

import pytest

from known_answers.counted import Doing, Vertex, job_counts, readings
from models.capacity.observed.counters.counts import JobCounts, LogCounts
from models.scaling.control.activity import activity_since


def with_the_first_task_finished(reading: JobCounts) -> JobCounts:
    (source,) = reading.vertices
    first, *others = source.tasks
    ended = replace(first, runs=False, finished=True, pending=None)
    return replace(reading, vertices=(replace(source, tasks=(ended, *others)),))


def with_logs(reading: JobCounts, asked_s: float, ends: dict[str, float], emitted_per_read: float = 1.0) -> JobCounts:
    (source,) = reading.vertices
    tasks = tuple(replace(task, read=(task.emitted or 0.0) / emitted_per_read) for task in source.tasks)
    return replace(reading, vertices=(replace(source, tasks=tasks, logs=LogCounts(asked_s, ends)),))


def test_what_arrives_is_of_now_after_a_task_has_finished() -> None:
    """Readings of before, in which the task still ran, do not keep the lag at what it was then."""
    tasks = [
        Doing(50, 50, 0.5, pending=0.0, pending_grows=0.0),
        Doing(100, 100, 0.5, pending=0.0, pending_grows=20.0),
    ]
    read = readings(Vertex("source", tasks, is_source=True))
    kept = [*read[:3], *map(with_the_first_task_finished, read[3:])]
    found = activity_since(kept)
    assert found is not None and found.lag_unknown == frozenset()
    done = found.vertices["id-source"]
    assert done.records_in.tolist() == pytest.approx([0.0, 1000.0])
    assert done.idle_s.tolist() == pytest.approx([10.0, 5.0])
    assert done.lag_records.sum() == pytest.approx(70 * 20.0)
    assert found.arrival_rate == pytest.approx(100 + 20)


def test_growth_of_the_lag_is_unknown_where_the_reading_before_has_none() -> None:
    """The source reads 584 of 2,500 records/s, as one that is held back does: what arrives cannot be known from that."""
    held = Doing(584, 584, 0.0, backpressure=1.0, pending=0.0, pending_grows=1916.0)
    before, *others = readings(Vertex("source", [held], is_source=True))
    (source,) = before.vertices
    unread = replace(before, vertices=(replace(source, tasks=(replace(source.tasks[0], pending=None),)),))
    unknown, known = activity_since([unread, *others[:1]]), activity_since([unread, *others[:2]])
    assert unknown is not None and unknown.lag_unknown == frozenset()
    assert unknown.growth_unknown == {"id-source": "not all of its tasks report it"}
    assert known is not None and not known.growth_unknown
    assert known.arrival_rate == pytest.approx(2500.0)


def test_a_source_that_never_reports_a_lag_counts_by_what_it_reads() -> None:
    found = activity_since(readings(Vertex("source", [Doing(584, 584, 0.5)], is_source=True)))
    assert found is not None and found.lag_unknown == {"id-source"} and not found.growth_unknown
    assert found.arrival_rate == pytest.approx(584.0)


def test_counters_that_are_late_do_not_say_by_how_much_the_lag_grew() -> None:
    """By the broker 100 records/s more arrive than are read; the last counters are 8 s older than those before."""
    tasks = [Doing(100, 100, 0.5, pending=0.0, pending_grows=100.0)]
    source = Vertex("source", tasks, is_source=True)
    on_time = readings(source, times=(10, 20, 30))
    late = job_counts([source], 40.0, ran_s=32.0)
    found = activity_since([with_logs(one, one.time_s, {"clicks-0": 200 * one.time_s}) for one in (*on_time, late)])
    assert found is not None and found.lag_unknown == {"id-source"}
    assert found.growth_unknown == {"id-source": "its counters are more than 6 s late"}


@pytest.mark.parametrize("emitted_per_read", [1.0, 0.5], ids=["all", "half are dropped"])
def test_what_arrives_is_what_was_appended_to_the_logs(emitted_per_read: float) -> None:
    """The counters say 100 emitted records/s and a lag that grows by 12, the logs 100 and 50 records/s more within 8 s."""
    tasks = [Doing(100, 100, 0.5, pending=0.0, pending_grows=12.0)]
    before, after = readings(Vertex("source", tasks, is_source=True), times=(10, 20))
    seen = [
        with_logs(before, 9.0, {"clicks-0": 7000.0, "clicks-1": 300.0}, emitted_per_read),
        with_logs(after, 17.0, {"clicks-0": 7800.0, "clicks-1": 700.0}, emitted_per_read),
    ]
    by_counters, by_logs = activity_since([before, after]), activity_since(seen)
    assert by_counters is not None and by_counters.arrival_rate == pytest.approx(100 + 12)
    assert by_logs is not None and by_logs.arrival_rate == pytest.approx(emitted_per_read * (100 + 50))


@pytest.mark.parametrize(
    ("asked_s", "ends"),
    [(9.5, {"clicks-0": 7075.0}), (19.0, {"clicks-0": 8500.0, "clicks-1": 90.0}), (19.0, {})],
    ids=["within half a second", "with a partition that is new", "of no partition"],
)
def test_logs_that_cannot_be_compared_leave_it_to_the_counters(asked_s: float, ends: dict[str, float]) -> None:
    tasks = [Doing(100, 100, 0.5, pending=0.0, pending_grows=12.0)]
    before, after = readings(Vertex("source", tasks, is_source=True), times=(10, 20))
    found = activity_since([with_logs(before, 9.0, {"clicks-0": 7000.0}), with_logs(after, asked_s, ends)])
    assert found is not None and found.arrival_rate == pytest.approx(100 + 12)


def test_a_topic_that_was_created_again_takes_nothing_away() -> None:
    source = Vertex("source", [Doing(100, 100, 0.5, pending=0.0)], is_source=True)
    before, after = readings(source, times=(10, 20))
    ends = ({"clicks-0": 900.0, "clicks-1": 5.0}, {"clicks-0": 30.0, "clicks-1": 1005.0})
    found = activity_since([with_logs(before, 9.0, ends[0]), with_logs(after, 19.0, ends[1])])
    assert found is not None and found.arrival_rate == pytest.approx(1000 / 10)


def test_logs_say_what_arrives_where_the_growth_of_the_lag_is_unknown() -> None:
    """As after a rescale, before each partition was read."""
    held = Doing(584, 584, 0.0, backpressure=1.0, pending=0.0, pending_grows=1916.0)
    before, after = readings(Vertex("source", [held], is_source=True), times=(10, 20))
    (source,) = before.vertices
    unread = replace(before, vertices=(replace(source, tasks=(replace(source.tasks[0], pending=None),)),))
    found = activity_since([with_logs(unread, 9.0, {"clicks-0": 0.0}), with_logs(after, 19.0, {"clicks-0": 25000.0})])
    assert found is not None and not found.growth_unknown
    assert found.arrival_rate == pytest.approx(2500.0)
