"""From readings of counters to what each vertex did."""

from dataclasses import replace

import pytest

from known_answers.counted import Doing, Vertex, readings
from models.capacity.observed.counters.counts import JobCounts
from models.scaling.control.activity import activity_since


def with_the_first_task_finished(reading: JobCounts) -> JobCounts:
    (source,) = reading.vertices
    first, *others = source.tasks
    ended = replace(first, runs=False, finished=True, pending=None)
    return replace(reading, vertices=(replace(source, tasks=(ended, *others)),))


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
