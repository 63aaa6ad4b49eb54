"""What is seen of a running job: figures of vertices, what bounds it, how far it would go."""

from dataclasses import replace
from itertools import pairwise

import pytest

from known_answers.counted import Doing, Vertex, added, job_counts, readings, without_times
from models.capacity.observed.observing import LONGEST_LABEL, observe
from models.capacity.observed.surroundings import Surroundings, VertexLink
from models.dataflow import Partitioning
from models.errors import InvalidInput

SINK = Vertex("sink", [Doing(records_in=600, records_out=0, busy=0.1)])
SOURCE = Vertex("source", [Doing(records_in=600, records_out=600, busy=0.1)], is_source=True)


def about(*names: str, keyed: bool = False) -> Surroundings:
    how = Partitioning.HASH if keyed else Partitioning.REBALANCE
    edges = [VertexLink(f"id-{up}", f"id-{down}", how) for up, down in pairwise(names)]
    return Surroundings(name="a job", id="1", edges=edges)


def test_figures_of_a_vertex() -> None:
    """Of 600 records/s one task gets 450 and is busy for 90 %, the other 150 and 30 %: a busy second takes 500 of each."""
    uneven = Vertex("count", [Doing(450, 45, busy=0.9), Doing(150, 15, busy=0.3)])
    seen = observe(readings(SOURCE, uneven), about("source", "count", keyed=True))
    _, count = seen.vertices
    assert count.observed_rate == pytest.approx(600)
    assert count.true_rate == pytest.approx(500)
    assert (count.busyness, count.fullest_busyness) == pytest.approx((0.6, 0.9))
    assert count.fullest_share == pytest.approx(0.75)
    assert count.selectivity == pytest.approx(0.1)
    assert count.bytes_out == pytest.approx(60 * 100)
    assert seen.consumed_rate == seen.arriving_rate == pytest.approx(600)
    (worker,) = seen.workers
    assert (worker.cores, worker.gc_share, worker.heap_used) == pytest.approx((0.5, 0.01, 0.25))


def test_the_rate_of_a_full_task_is_the_less_sure_the_idler_it_was() -> None:
    """Busy for 60 %: e to the 1.96 sqrt(0.1^2 + (0.25 ln(1 / 0.6))^2) = 1.374 times less, or 1.587 times more, for which
    0.27^2 x 40 % stand below the root, too."""
    half = Vertex("count", [Doing(600, 60, busy=0.6)])
    _, count = observe(readings(SOURCE, half), about("source", "count")).vertices
    assert count.true_rate == pytest.approx(1000)
    assert count.saturated_rate is not None
    found = count.saturated_rate
    assert (found.value, found.low, found.high) == pytest.approx((1000, 1000 / 1.374, 1000 * 1.587), rel=1e-3)
    _, full = observe(readings(SOURCE, Vertex("count", [Doing(600, 60, busy=1.0)])), about("source", "count")).vertices
    assert full.saturated_rate is not None  # 1.96 times 10 % of the logarithm
    assert full.saturated_rate.high / 600 == pytest.approx(1.2165, rel=1e-3)


def test_a_hot_key_is_named_before_it_binds() -> None:
    """At 600 records/s the fullest task is busy for 45 %, so that the job would take 600 / 0.45 = 1,333 records/s."""
    uneven = Vertex("count", [Doing(450, 45, busy=0.45), Doing(150, 15, busy=0.15)])
    seen = observe(readings(SOURCE, uneven), about("source", "count", keyed=True))
    assert (seen.bound_by.vertex, seen.bound_by.cause) == ("count", "hot key")
    assert seen.capacity is not None
    assert not seen.capacity.seen
    assert seen.capacity.mst.value == pytest.approx(600 / 0.45)
    assert seen.capacity.mst.low >= 600


@pytest.mark.parametrize(("keyed", "takes"), [(True, 600 / 0.9), (False, 600 / 0.5)])
def test_only_keys_make_tasks_busy_in_turns_for_good(keyed: bool, takes: float) -> None:
    """Two tasks get 300 records/s each, and are busy for 90 % and 10 % of ten seconds in turns: of a hot key that moves, one
    is busy for 90 % at any time; without keys a task waits for its machine at times, and both are busy for 50 %."""
    first, second = (Vertex("step", [Doing(300, 300, busy=one), Doing(300, 300, busy=1 - one)]) for one in (0.9, 0.1))
    found = [job_counts([SOURCE, first], 400.0)]
    for number in range(6):
        found.append(added(found[-1], job_counts([SOURCE, second if number % 2 else first], 10.0)))
    seen = observe(found, about("source", "step", keyed=keyed))
    assert seen.capacity is not None
    assert seen.capacity.mst.value == pytest.approx(takes)


def test_a_slow_vertex_holds_back_those_before_it() -> None:
    held = Vertex("source", [Doing(600, 600, busy=0.2, backpressure=0.8)], is_source=True)
    slow = Vertex("slow", [Doing(300, 300, busy=1.0), Doing(300, 300, busy=1.0)])
    seen = observe(readings(held, slow), about("source", "slow"))
    assert (seen.bound_by.vertex, seen.bound_by.cause) == ("slow", "CPU")
    assert seen.arriving_rate is None
    assert any("pendingRecords" in remark and "what arrives is unknown" in remark for remark in seen.remarks)


def test_a_generator_that_limits_its_own_rate_is_not_taken_for_one_that_keeps_up() -> None:
    """What it emits counts as what arrives, and the remark says when that is wrong."""
    made = Vertex("generator", [Doing(10, 10, busy=0.01)], is_source=True)
    seen = observe(readings(made, Vertex("window", [Doing(10, 0, busy=0.02)])), about("generator", "window"))
    assert seen.arriving_rate == pytest.approx(10)
    assert any("unless they limit their own rate" in remark for remark in seen.remarks)


def test_more_tasks_than_partitions() -> None:
    """The topic has one partition, so that one of two source tasks reads nothing."""
    tasks = [
        Doing(600, 600, busy=1.0, pending=60_000.0, partitions=1),
        Doing(0, 0, busy=0.0, pending=0.0, partitions=0),
    ]
    after = Vertex("sink", [Doing(300, 0, busy=0.2), Doing(300, 0, busy=0.2)])
    seen = observe(readings(Vertex("source", tasks, is_source=True), after), about("source", "sink"))
    assert (seen.bound_by.vertex, seen.bound_by.cause) == ("source", "source partitions")
    assert seen.vertices[0].partitions == 1
    assert seen.capacity is not None
    assert seen.capacity.seen
    assert seen.capacity.mst.value == pytest.approx(600)


def test_one_reading_of_what_waits_is_not_taken_for_none() -> None:
    source = Vertex("source", [Doing(600, 600, busy=0.5, pending=10.0)], is_source=True)
    seen = observe(readings(source, SINK, times=(10, 20)), about("source", "sink"))
    assert (seen.lag_records, seen.lag_growth) == (10, None)
    (remark,) = [one for one in seen.remarks if "wait before the sources" in one]
    assert "fewer than two readings say how many they are" in remark and "do not report" not in remark


def test_a_job_that_flink_chains_into_one_vertex() -> None:
    """Its one task reads the topic's one partition and is always busy: a second partition lets a second task read."""
    chained = Vertex("source -> sink", [Doing(600, 0, busy=1.0, pending=60_000.0, partitions=1)], is_source=True)
    seen = observe(readings(chained), about("source -> sink"))
    assert (seen.bound_by.vertex, seen.bound_by.cause) == ("source -> sink", "source partitions")
    assert seen.bound_by.effect is not None
    assert seen.bound_by.effect.change == "1 -> 2 tasks of source -> sink"
    assert seen.bound_by.effect.rate_then == pytest.approx(1200)
    assert seen.capacity is not None and seen.capacity.mst.value == pytest.approx(600)


def test_a_restart_is_counted_and_said() -> None:
    sink = Vertex("sink", [Doing(600, 0, busy=0.2)])
    before = [job_counts([SOURCE, sink], t) for t in (10.0, 20.0)]
    after = [job_counts([SOURCE, sink], t, ran_s=t - 25, attempt=1, since_ms=2) for t in (30.0, 40.0, 50.0)]
    seen = observe(before + after, about("source", "sink"))
    assert seen.restarts == 1
    assert seen.consumed_rate == pytest.approx(600)
    assert "started again" in seen.remarks[0]


def test_vertices_of_one_name_are_told_apart_by_their_ids() -> None:
    sink = Vertex("sink", [Doing(1200, 0, busy=0.2)])
    found = [
        replace(r, vertices=(r.vertices[0], replace(r.vertices[0], id="other-id"), *r.vertices[1:]))
        for r in readings(SOURCE, sink)
    ]
    seen = observe(found, about("source", "sink"))
    assert [v.name for v in seen.vertices] == ["source [id-sou]", "source [other-]", "sink"]


def test_a_source_that_does_not_report_its_times() -> None:
    seen = observe([without_times(r) for r in readings(SOURCE)], about())
    (vertex,) = seen.vertices
    assert vertex.observed_rate == pytest.approx(600)
    assert vertex.busyness is None
    assert seen.arriving_rate is None
    assert seen.capacity is None
    assert any("does not report how busy it is" in remark for remark in seen.remarks)


def test_one_reading_is_too_few() -> None:
    with pytest.raises(InvalidInput, match="at least 2 readings, but there are 1"):
        observe(readings(SOURCE, times=[10]), about())


def test_records_that_only_fill_buffers_are_not_taken() -> None:
    """The source emits 660 records/s, of which 600 are taken by tasks that are always busy: that is the MST."""
    source = Vertex("source", [Doing(660, 660, busy=0.1, backpressure=0.8)], is_source=True)
    slow = Vertex("slow", [Doing(600, 600, busy=1.0)])
    seen = observe(readings(source, slow), about("source", "slow"))
    assert seen.capacity is not None
    assert seen.capacity.mst.value == pytest.approx(600)
    assert (seen.bound_by.vertex, seen.bound_by.cause) == ("slow", "CPU")


def test_whichever_task_is_the_busiest_in_turns_is_no_hot_key() -> None:
    """Two tasks, of which one or the other is busy for 66 % and 54 %, are busy for 60 % each in the whole."""
    first, second = Doing(300, 300, busy=0.66), Doing(300, 300, busy=0.54)
    read = [job_counts([SOURCE, Vertex("count", [first, second])], 0.0)]
    for number in range(1, 7):
        turn = (first, second) if number % 2 else (second, first)
        grown = job_counts([SOURCE, Vertex("count", turn)], 10.0)
        read.append(added(read[-1], grown))
    seen = observe(read, about("source", "count", keyed=True))
    assert seen.capacity is not None
    assert seen.capacity.mst.value == pytest.approx(600 / 0.6)
    assert seen.bound_by.cause == "CPU"


def test_the_long_name_of_a_chain_is_cut() -> None:
    """Apache Beam names an operator by its path in the program, and Flink a vertex by all operators chained in it."""
    chain = " -> ".join(["Query5/Query5.Snoop/Events/ParMultiDo(Anonymous)"] * 5)
    vertices = [Vertex(f"{chain} {number}", [Doing(600, 60, busy=0.3)]) for number in (1, 2)]
    seen = observe(readings(SOURCE, *vertices), about("source", *(v.name for v in vertices)))
    labels = [v.name for v in seen.vertices[1:]]
    assert all(len(label) < LONGEST_LABEL + 15 and label.startswith(chain[:90]) for label in labels)
    assert not any(v.name_is_flinks for v in seen.vertices[1:])
    assert seen.bound_by.vertex in labels


@pytest.mark.parametrize(("busy", "held", "starved"), [(0.1, 0.2, True), (0.8, 0.0, False), (0.1, 0.9, False)])
def test_records_that_wait_before_idle_tasks_wait_to_be_fetched(busy: float, held: float, starved: bool) -> None:
    """As 8-byte records in one partition, which Kafka's client handed over more slowly than a job could take them."""
    source = Vertex(
        "source", [Doing(600, 600, busy=busy, backpressure=held, pending=60_000.0, pending_grows=300.0)], is_source=True
    )
    seen = observe(readings(source, Vertex("count", [Doing(600, 0, busy=0.4)])), about("source", "count"))
    assert seen.capacity is not None
    assert seen.capacity.seen
    assert any("what fetches them" in remark for remark in seen.remarks) is starved
