"""Limits outside Flink, by hand: a sink's quota of 600 records/s, and TaskManagers that use half a core."""

from dataclasses import replace

import pytest

from known_answers.counted import Doing, Vertex, readings
from models.capacity.observed.external import suspected_limit
from models.capacity.observed.observing import observe
from models.capacity.observed.record import ObservedJob, SuspectedLimit
from models.capacity.observed.surroundings import Surroundings, VertexLink
from models.dataflow import Partitioning


def about(cores: float | None = 4.0, how: Partitioning = Partitioning.REBALANCE) -> Surroundings:
    edges = [VertexLink("id-source", "id-sink", how)]
    return Surroundings(name="a job", id="1", edges=edges, cores={} if cores is None else {"tm1": cores})


def seen(tasks: int, rate: float, busy: float = 1.0, held: float = 0.8, arriving: float | None = None) -> ObservedJob:
    """A sink of so many tasks that are busy alike, and take so much together."""
    grows = 0.0 if arriving is None else arriving - rate
    pending = None if arriving is None else 100_000.0
    doing = Doing(rate, rate, busy=0.1, backpressure=held, pending=pending, pending_grows=grows)
    sink = Vertex("sink", [Doing(rate / tasks, 0, busy=busy)] * tasks)
    return observe(readings(Vertex("source", [doing], is_source=True), sink), about())


def found(now: ObservedJob, *earlier: ObservedJob, around: Surroundings | None = None) -> SuspectedLimit:
    limit = suspected_limit(now, around or about(), earlier)
    assert limit is not None
    return limit


def test_a_busy_vertex_without_cpu_may_wait_for_a_limit() -> None:
    """Two tasks busy all the time are 2 seconds each second, of which the half core that is used is 25 % at most."""
    limit = found(seen(2, 600))
    assert (limit.vertex, limit.rate_limit, limit.certainty) == ("sink", 600, "possible")
    assert limit.job_file_line == "rate_limit: 600"
    assert limit.evidence == (
        "2 tasks of sink are busy for 100% of the time and take 600 records/s together, while records wait before it",
        "all TaskManagers of the job use 0.5 cores, so that at most 25% of that busy time is work, and the rest is waiting",
    )
    assert limit.unclear[0].startswith("calls that take long look the same, and then more tasks take more")
    assert len(limit.unclear) == 2


def test_another_number_of_tasks_that_takes_the_same_makes_it_likely() -> None:
    limit = found(seen(4, 590), seen(2, 600))
    assert (limit.certainty, limit.rate_limit) == ("likely", 590)
    assert limit.evidence[2] == "with 2 tasks it took 600 records/s, which is the same: 300 a task, and 148 now"
    assert limit.unclear == ("whether it is a quota, or a server at its own limit, which may change with its load",)


def test_more_tasks_that_take_more_are_no_limit() -> None:
    """300 records/s a task with 2 and with 4 of them: each call takes its time."""
    assert suspected_limit(seen(4, 1200), about(), [seen(2, 600)]) is None
    # 2 tasks took 700 of 900: neither the same nor in proportion, so that nothing is claimed.
    assert suspected_limit(seen(4, 900), about(), [seen(2, 700)]) is None


def test_the_newest_numbers_of_tasks_that_contradict_each_other_are_both_said() -> None:
    limit = found(seen(4, 600), seen(2, 600), seen(8, 900))
    assert limit.certainty == "likely"
    assert "with 8 tasks it took 900 records/s, which is not the same" in limit.unclear


def test_numbers_of_tasks_that_are_nearly_the_same_say_nothing() -> None:
    """11 tasks in proportion would take 660 where 10 took 600, which is within the scatter of runs."""
    limit = found(seen(11, 605), seen(10, 600))
    assert limit.certainty == "possible"


def test_a_constant_rate_is_evidence_without_waiting_where_cores_are_free() -> None:
    """One of two tasks is busy: half a core of one busy second is 50 %, of 0.9 more; the same 600 with 2 tasks."""
    now, before = seen(1, 600, busy=0.9), seen(2, 600)
    limit = found(now, before)
    assert limit.certainty == "likely"
    assert not any("cores" in one for one in limit.evidence)
    assert suspected_limit(now, about(), []) is None
    assert suspected_limit(now, about(cores=None), [before]) is None


@pytest.mark.parametrize("cores", [0.5, 0.55])
def test_a_machine_without_a_free_core_explains_what_is_seen(cores: float) -> None:
    assert suspected_limit(seen(4, 600), about(cores), [seen(2, 600)]) is None


def test_unknown_cores_are_said() -> None:
    limit = found(seen(2, 600), around=about(cores=None))
    assert any(one.startswith("the cores of the TaskManagers are unknown") for one in limit.unclear)


def test_state_is_another_explanation() -> None:
    limit = found(seen(2, 600), around=about(how=Partitioning.HASH))
    assert any("wait for state on disk" in one for one in limit.unclear)


def test_a_job_that_keeps_up_or_is_uneven_waits_for_nothing() -> None:
    assert suspected_limit(seen(2, 600, busy=0.5, held=0.0), about(), [seen(4, 600)]) is None
    assert suspected_limit(seen(2, 600, held=0.0), about()) is None  # busy, but nothing waits for it
    uneven = Vertex("sink", [Doing(500, 0, busy=1.0), Doing(100, 0, busy=0.2)])
    source = Vertex("source", [Doing(600, 600, busy=0.1, backpressure=0.8)], is_source=True)
    assert suspected_limit(observe(readings(source, uneven), about()), about()) is None


def test_a_vertex_of_other_operators_is_another_one() -> None:
    before = seen(2, 600)
    source, sink = before.vertices
    other = before.model_copy(update={"vertices": (source, sink.model_copy(update={"operators": ("another",)}))})
    assert found(seen(4, 600), other).certainty == "possible"


def test_the_same_rate_whatever_arrives_is_said_beside_other_evidence() -> None:
    limit = found(seen(2, 600, arriving=2000.0), seen(2, 600, arriving=1000.0))
    assert limit.evidence[-1] == (
        "it took 600 records/s when 1,000 arrived at the sources, and takes 600 now that 2,000 do"
    )
    assert limit.certainty == "possible"  # any vertex that is full does


def test_a_vertex_whose_buffers_drain_is_looked_at_though_nothing_is_said_to_bind() -> None:
    """The source sends 360 records/s while 600 are taken: at its rate the sink would be busy for 60 %."""
    source = Vertex("source", [Doing(360, 360, busy=0.1, backpressure=0.8)], is_source=True)
    made = observe(readings(source, Vertex("sink", [Doing(300, 0, busy=1.0)] * 2)), about())
    assert made.bound_by.vertex is None
    assert found(made).rate_limit == 600


def test_unknown_cpu_is_no_evidence() -> None:
    now = seen(2, 600)
    unknown = now.model_copy(update={"workers": tuple(w.model_copy(update={"cores": None}) for w in now.workers)})
    assert suspected_limit(unknown, about()) is None


def test_a_source_alone_is_not_looked_at() -> None:
    full = Vertex("source", [Doing(600, 600, busy=1.0, pending=90_000.0)], is_source=True)
    made = observe(readings(full, Vertex("sink", [Doing(600, 0, busy=0.1)])), about())
    assert made.bound_by.vertex == "source"
    assert suspected_limit(made, replace(about(), cores={"tm1": 4.0})) is None
