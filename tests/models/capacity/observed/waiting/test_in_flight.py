"""Records on their way from one vertex to the next."""

from dataclasses import replace

import pytest

from known_answers.counted import Doing, Vertex, job_counts, without_times
from models.capacity.observed.counters.counts import JobCounts
from models.capacity.observed.counters.intervals import intervals
from models.capacity.observed.waiting.in_flight import in_flight

FAST = Vertex("source", [Doing(records_in=150, records_out=150, busy=0.1)], is_source=True)
SLOW = Vertex("map", [Doing(records_in=60, records_out=60, busy=1.0), Doing(records_in=40, records_out=40, busy=1.0)])
SENDERS = {"id-map": ["id-source"]}


def read(source_ran_s: float = 20.0, map_ran_s: float = 20.0) -> JobCounts:
    """After 20 s, each vertex as it counted when its tasks had run for so long."""
    source, slow = job_counts([FAST], 20.0, ran_s=source_ran_s), job_counts([SLOW], 20.0, ran_s=map_ran_s)
    return replace(source, vertices=(*source.vertices, *slow.vertices))


def found(last: JobCounts, senders: dict[str, list[str]] = SENDERS) -> dict[str, float]:
    return in_flight(last, intervals([job_counts([FAST, SLOW], 10.0), last]), senders)


def test_what_is_sent_and_not_taken_is_on_its_way() -> None:
    # 150 records/s are sent, and 100 taken, for 20 s.
    assert found(read()) == pytest.approx({"id-map": 1000.0})


def test_a_vertex_that_counted_earlier_is_not_taken_for_a_full_buffer() -> None:
    # The map counted after 18 s: 1800 taken of the 2700 that were sent until then.
    assert found(read(map_ran_s=18.0)) == pytest.approx({"id-map": 900.0})
    # And where the source counted earlier, at least what is known: 2700 sent, 2000 taken.
    assert found(read(source_ran_s=18.0)) == pytest.approx({"id-map": 700.0})


def test_a_task_that_has_finished_is_not_taken_for_counters_that_are_late() -> None:
    # One of the map's tasks finished after 10 s: 1200 and 400 taken of the 3000 that were sent.
    last, early = read(), job_counts([SLOW], 20.0, ran_s=10.0).vertices[0]
    ended = replace(early.tasks[1], finished=True, runs=False)
    slow = replace(last.vertices[1], tasks=(last.vertices[1].tasks[0], ended))
    assert found(replace(last, vertices=(last.vertices[0], slow))) == pytest.approx({"id-map": 1400.0})


def test_both_senders_count() -> None:
    other = replace(FAST, name="other", tasks=[Doing(records_in=10, records_out=10, busy=0.1)])
    counts = job_counts([FAST, other, SLOW], 20.0)
    done = intervals([job_counts([FAST, other, SLOW], 10.0), counts])
    assert in_flight(counts, done, {"id-map": ["id-source", "id-other"]}) == pytest.approx({"id-map": 1200.0})


def test_what_a_task_does_not_report_is_unknown() -> None:
    assert found(without_times(read())) == {}
    source, slow = read().vertices
    silent = replace(slow, tasks=(slow.tasks[0], replace(slow.tasks[1], records_in=None)))
    assert found(replace(read(), vertices=(source, silent))) == {}
    assert found(read(), {}) == {}
