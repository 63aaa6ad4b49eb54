"""From activity to rates, by hand (DS2 section 3.1, Eq. 1-6)."""

import numpy as np
import pytest

from models.job import Job
from models.metrics import Activity
from models.scaling.meter import Meter, MeteredGraph

JOB = Job.model_validate(
    {
        "name": "pair",
        "description": "Two sources into one count.",
        "figures_from": "made up",
        "key_groups": 128,
        "operators": [
            {
                "name": "left",
                "kind": "source",
                "figures_from": "made up",
                "rate_share": 0.75,
                "cost": {"cpu_s": 1e-6},
                "max_parallelism": 12,
            },
            {"name": "right", "figures_from": "made up", "kind": "source", "rate_share": 0.25, "cost": {"cpu_s": 1e-6}},
            {"name": "count", "figures_from": "made up", "cost": {"cpu_s": 1e-5}, "max_parallelism": 8},
            {"name": "sink", "figures_from": "made up", "kind": "sink", "cost": {"cpu_s": 1e-6}, "selectivity": 0},
        ],
        "edges": [
            {"from": "left", "to": "count", "partitioning": "hash"},
            {"from": "right", "to": "count", "partitioning": "hash"},
            {"from": "count", "to": "sink", "partitioning": "rebalance"},
        ],
    }
)


def _activity(seconds: float, records_in, busy_s, records_out=None, **other) -> Activity:
    """Of tasks that are idle whenever they are not busy."""
    into, busy = np.array(records_in, dtype=float), np.array(busy_s, dtype=float)
    out = into if records_out is None else np.array(records_out, dtype=float)
    given = {name: np.array(value, dtype=float) for name, value in other.items() if name != "keeps_state"}
    nothing = np.zeros_like(into)
    names = ("backpressured_s", "cpu_s", "cache_hits", "cache_misses", "state_time_s", "input_queue_share")
    rest = {name: given.get(name, nothing) for name in (*names, "lag_records", "state_bytes")}
    return Activity(
        seconds=seconds,
        records_in=into,
        records_out=out,
        busy_s=busy,
        idle_s=seconds - busy - rest["backpressured_s"],
        keeps_state=bool(other.get("keeps_state", False)),
        **rest,
    )


def _all(seconds=10.0, count=None, left=None):
    return {
        "left": left or _activity(seconds, [600], [2]),
        "right": _activity(seconds, [300], [1]),
        "count": count or _activity(seconds, [900, 900], [9, 3], [90, 90]),
        "sink": _activity(seconds, [180], [1], [0]),
    }


@pytest.fixture
def meter() -> Meter:
    meter = Meter(MeteredGraph.of(JOB))
    meter.deployed({"left": 1, "right": 1, "count": 2, "sink": 1}, {"count": 64.0})
    return meter


def test_true_rates_are_summed_over_tasks(meter):
    meter.record(_all(), arrival_rate=100.0)
    count = meter.read().operators["count"]
    # 900 records in 9 useful seconds, and 900 in 3: 100 + 300 records/s; a tenth of them goes out.
    assert count.true_processing_rate == pytest.approx(400)
    assert count.true_output_rate == pytest.approx(40)
    assert (count.observed_input_rate, count.observed_output_rate) == (180, 18)
    assert (count.busyness, count.max_busyness, count.idleness) == pytest.approx((0.6, 0.9, 0.4))


def test_several_stretches_of_time_are_one_interval(meter):
    meter.record(_all(10.0), arrival_rate=100.0)
    meter.record(_all(30.0, count=_activity(30.0, [900, 100], [9, 1], [90, 10])), arrival_rate=200.0)
    assert meter.seconds == 40
    rates = meter.read()
    # Task 1: 1800 records in 18 s; task 2: 1000 in 4 s. Over 40 s: 2800 records.
    assert rates.operators["count"].true_processing_rate == pytest.approx(100 + 250)
    assert rates.operators["count"].observed_input_rate == pytest.approx(70)
    # (100 x 10 + 200 x 30) / 40 = 175 records/s, three quarters of them to the left.
    assert rates.source_rates == pytest.approx({"left": 131.25, "right": 43.75})
    assert meter.seconds == 0


def test_a_task_that_did_nothing_keeps_its_last_known_rates(meter):
    meter.record(_all(), arrival_rate=100.0)
    meter.read()
    meter.record(_all(count=_activity(10.0, [0, 500], [0.5, 1], [20, 50])), arrival_rate=100.0)
    count = meter.read().operators["count"]
    # Task 1 only fired windows: its 100 records/s stay. Task 2 does 500.
    assert count.true_processing_rate == pytest.approx(100 + 500)
    assert count.true_output_rate == pytest.approx(10 + 50)
    assert count.observed_input_rate == 50


def test_a_task_that_never_did_anything_is_like_the_others(meter):
    meter.record(_all(count=_activity(10.0, [0, 500], [0, 1])), arrival_rate=100.0)
    assert meter.read().operators["count"].true_processing_rate == pytest.approx(2 * 500)


def test_after_a_rescale_the_mean_of_the_operator_is_known(meter):
    meter.record(_all(), arrival_rate=100.0)
    meter.read()
    meter.deployed({"left": 1, "right": 1, "count": 3, "sink": 1}, {"count": 128.0})
    meter.record(_all(count=_activity(10.0, [0, 0, 800], [0, 0, 2])), arrival_rate=100.0)
    count = meter.read().operators["count"]
    # 400 records/s by two tasks: 200 each by the two that did nothing yet, and 400 by the third.
    assert count.true_processing_rate == pytest.approx(800)
    assert (count.parallelism, count.memory_mb) == (3, 128)


def test_nothing_is_known_until_every_operator_took_a_record(meter):
    meter.record(_all(count=_activity(10.0, [0, 0], [0, 0])), arrival_rate=100.0)
    assert meter.read() is None
    meter.record(_all(), arrival_rate=100.0)
    assert meter.read() is not None
    assert meter.read() is None  # no time has passed since


def _routed(seconds: float, late: float, dead: float = 0.0) -> dict[str, Activity]:
    """Read by the source, counted by `count`, written by `sink`; what comes late goes to `late`, and on to `dead`."""
    taken = {"source": 1000.0, "count": 1000.0, "sink": 100.0, "late": late, "dead": dead}
    sent = {"source": 1000.0 + late, "count": 100.0, "late": dead}
    return {name: _activity(seconds, [n], [1.0 if n else 0.0], [sent.get(name, 0.0)]) for name, n in taken.items()}


ROUTES = (("source", "count"), ("count", "sink"), ("source", "late"), ("late", "dead"))


def test_a_branch_that_never_takes_a_record_is_left_out_after_a_minute_until_it_does():
    meter = _divided(*ROUTES)
    for _ in range(5):
        meter.record(_routed(10.0, 0), arrival_rate=100.0)
        assert meter.read() is None
    meter.record(_routed(10.0, 0), arrival_rate=100.0)
    rates = meter.read()
    assert rates.edges == (("source", "count"), ("count", "sink"))
    assert rates.operators.keys() == {"source", "count", "sink"}
    assert rates.share("source", "count") == 1.0
    meter.record(_routed(10.0, 50), arrival_rate=100.0)
    rates = meter.read()
    assert rates.operators.keys() == {"source", "count", "sink", "late"}
    assert rates.share("source", "late") == pytest.approx(50 / 1050)


def test_time_in_which_nothing_is_read_does_not_leave_an_operator_out():
    meter = _divided(("source", "count"))
    for _ in range(20):
        meter.record(_divided_activity(0, count=0) | {"source": _activity(10.0, [0], [0])}, arrival_rate=0.0)
        assert meter.read() is None


def test_what_a_window_emits_of_earlier_records_has_no_rates_until_it_takes_others():
    """Without rates of `count` nothing says what the sink takes of the source's records."""
    meter = _divided(("source", "count"), ("count", "sink"))
    for _ in range(10):
        meter.record(_divided_activity(0, count=0, sink=10), arrival_rate=100.0)
        assert meter.read() is None


def test_a_source_of_which_nothing_takes_a_record_is_left_out_too():
    meter = Meter(
        MeteredGraph(
            (("left", "count"), ("right", "late")),
            {"left": 0.75, "right": 0.25},
            {name: {} for name in ("left", "right", "count", "late")},
        )
    )
    meter.deployed(dict.fromkeys(("left", "right", "count", "late"), 1), {})
    rates = None
    for _ in range(6):
        done = {
            name: _activity(10.0, [n], [n / 100])
            for name, n in (("left", 75), ("right", 25), ("count", 75), ("late", 0))
        }
        meter.record(done, arrival_rate=10.0)
        rates = meter.read()
    assert rates.source_rates == {"left": 7.5}
    assert rates.operators.keys() == {"left", "count"}


def test_sources_show_lag_and_how_it_grows(meter):
    meter.record(_all(left=_activity(10.0, [600], [2], lag_records=[500])), arrival_rate=100.0)
    left = meter.read().operators["left"]
    # 75 records/s come in, 60 are read.
    assert (left.lag_records, left.lag_change_per_s) == (500, 15)
    assert left.true_output_rate == pytest.approx(300)
    assert left.input_queue_share is None


def test_state_is_shown_where_it_is_kept(meter):
    stateful = _activity(
        10.0,
        [900, 900],
        [9, 3],
        keeps_state=True,
        cache_hits=[30, 30],
        cache_misses=[20, 0],
        state_time_s=[0.08, 0.0],
        state_bytes=[2**20, 2**20],
        input_queue_share=[1.0, 0.5],
        cpu_s=[8, 2],
    )
    meter.record(_all(count=stateful), arrival_rate=100.0)
    operators = meter.read().operators
    count = operators["count"]
    assert (count.cache_hit_rate, count.state_latency_s, count.state_mb) == pytest.approx((0.75, 0.001, 2.0))
    assert (count.input_queue_share, count.cpu_cores, count.memory_mb) == (0.75, 1.0, 64.0)
    sink = operators["sink"]
    assert (sink.cache_hit_rate, sink.state_latency_s, sink.state_mb, sink.memory_mb) == (None, None, None, None)


def test_limits_of_the_job_are_passed_on(meter):
    meter.record(_all(), arrival_rate=100.0)
    operators = meter.read().operators
    assert (operators["count"].max_parallelism, operators["count"].key_groups) == (8, 128)
    assert (operators["left"].partitions, operators["right"].partitions) == (12, None)
    assert operators["sink"].key_groups is None


def _filtering(**known) -> Meter:
    """Of a source that Flink chained with a filter: it counts what it emitted as taken in, and the filtered as out."""
    meter = Meter(MeteredGraph((("source", "count"),), {"source": 1.0}, {"source": {}, "count": {}}, **known))
    meter.deployed({"source": 2, "count": 1}, {})
    return meter


def _done(sent: tuple[float, float]) -> dict[str, Activity]:
    return {"source": _activity(10.0, [60_000, 40_000], [4, 4], sent), "count": _activity(10.0, [sum(sent)], [5])}


def test_what_a_source_emits_of_what_it_reads_is_measured():
    meter = _filtering()
    meter.record(_done((7_000, 3_000)), arrival_rate=10_000.0)
    rates = meter.read()
    assert rates.source_rates == {"source": 10_000}
    assert rates.source_selectivity == pytest.approx({"source": 0.1})  # 10,000 of 100,000
    assert rates.sent("source") == pytest.approx(1_000)
    # An interval in which nothing passes the filter shows nothing new, and one after it does.
    meter.record(_done((0, 0)), arrival_rate=10_000.0)
    assert meter.read().source_selectivity == pytest.approx({"source": 0.1})
    meter.record(_done((30_000, 20_000)), arrival_rate=10_000.0)
    assert meter.read().source_selectivity == pytest.approx({"source": 0.5})


def test_what_a_source_emits_is_not_measured_where_it_is_known():
    meter = _filtering(source_selectivity={"source": 0.2})
    meter.record(_done((7_000, 3_000)), arrival_rate=10_000.0)
    assert meter.read().source_selectivity == {"source": 0.2}
    assert MeteredGraph.of(JOB).source_selectivity == {"left": 1.0, "right": 1.0}


def _divided(*edges: tuple[str, str]) -> Meter:
    names = dict.fromkeys(name for edge in edges for name in edge)
    meter = Meter(MeteredGraph(edges, {"source": 1.0}, {name: {} for name in names}))
    meter.deployed(dict.fromkeys(names, 1), {})
    return meter


def _divided_activity(sent: float, **taken: float) -> dict[str, Activity]:
    """Flink counts a record out once for each edge that it takes."""
    source = _activity(10.0, [100_000], [4], [sent])
    return {"source": source} | {name: _activity(10.0, [n], [1], [0]) for name, n in taken.items()}


def test_what_takes_which_of_two_edges_is_measured():
    """The source reads 10,000/s: all go to `count`, and a fifth to a side output that `late` takes."""
    meter = _divided(("source", "count"), ("source", "late"))
    meter.record(_divided_activity(120_000, count=100_000, late=20_000), arrival_rate=10_000.0)
    rates = meter.read()
    assert rates.source_selectivity == pytest.approx({"source": 1.2})
    assert rates.share("source", "count") == pytest.approx(5 / 6)
    assert rates.sent("source") * rates.share("source", "late") == pytest.approx(2_000)
    # An interval in which nothing is emitted shows nothing new.
    meter.record(_divided_activity(0, count=0, late=0), arrival_rate=10_000.0)
    assert meter.read().share("source", "late") == pytest.approx(1 / 6)


def test_edges_that_meet_again_are_assumed_to_take_equal_shares():
    meter = _divided(("source", "left"), ("source", "right"), ("source", "join"), ("left", "join"), ("right", "join"))
    activity = _divided_activity(90_000, left=60_000, right=15_000, join=90_000)
    meter.record(activity, arrival_rate=10_000.0)
    rates = meter.read()
    assert rates.share("source", "left") == pytest.approx(2 / 3)
    assert rates.share("source", "join") == pytest.approx(1 / 3)
    assert rates.share("left", "join") == 1.0


def test_shares_of_edges_of_the_job_are_passed_on():
    half = [edge.model_copy(update={"share": 0.5}) for edge in JOB.edges[2:]]
    graph = MeteredGraph.of(JOB.model_copy(update={"edges": (*JOB.edges[:2], *half)}))
    assert graph.edge_shares == {"count": {"sink": 0.5}}
    meter = Meter(graph)
    meter.deployed({"left": 1, "right": 1, "count": 2, "sink": 1}, {})
    meter.record(_all(), arrival_rate=100.0)
    assert meter.read().share("count", "sink") == 0.5
