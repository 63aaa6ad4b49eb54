"""DS2 against the paper's word count, and graphs small enough to compute by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.errors import InvalidInput
from models.scaling.ds2.model import ds2
from models.scaling.rates import Rates


def operator(parallelism: int, processing: float | None = None, output: float | None = None, **more: float) -> dict:
    return {
        "parallelism": parallelism,
        "true_processing_rate": processing,
        "true_output_rate": output,
        **more,
    }


def rates(edges: list[str], sources: dict[str, float], more: dict | None = None, **operators: dict) -> Rates:
    """Edges are written "a b"."""
    given = {"edges": [edge.split() for edge in edges], "source_rates": sources, "operators": operators}
    return Rates.model_validate(given | (more or {}))


def word_count(flatmaps: int = 1, counts: int = 1) -> Rates:
    """DS2 section 5.2, per minute: 1 M sentences of 20 words; a FlatMap splits 100 K sentences, a Count counts 1 M words."""
    return rates(
        ["source flatmap", "flatmap count"],
        {"source": 1e6},
        flatmap=operator(flatmaps, 1e5 * flatmaps, 2e6 * flatmaps),
        count=operator(counts, 1e6 * counts, 0.0),
    )


def test_word_count_of_section_5_2_in_one_step():
    decision = ds2(word_count())
    assert decision.parallelism == {"flatmap": 10, "count": 20}
    assert decision.exact == {"flatmap": 10.0, "count": 20.0}
    assert decision.reasons["flatmap"] == (
        "1,000,000 records/s come in and one task can do 100,000: 10, so 10 tasks, instead of 1"
    )


def test_the_decision_is_stable_once_applied():
    assert ds2(word_count(10, 20)).parallelism == {"flatmap": 10, "count": 20}
    assert ds2(word_count(10, 20)).reasons["count"].endswith("20 tasks, as now")


def test_several_sources_meet_in_a_join():
    # 100/s halved by the filter and 30/s meet in the join: 80/s at 25/s per task; a third of them leaves.
    decision = ds2(
        rates(
            ["bids filter", "filter join", "people join", "join sink"],
            {"bids": 100, "people": 30},
            filter=operator(2, 40, 20),
            join=operator(4, 100, 100 / 3),
            sink=operator(1, 10),
        )
    )
    assert decision.exact == pytest.approx({"filter": 5.0, "join": 3.2, "sink": 80 / 3 / 10})
    assert decision.parallelism == {"filter": 5, "join": 4, "sink": 3}


def test_every_edge_carries_the_whole_output():
    decision = ds2(
        rates(["s a", "s b", "a c", "b c"], {"s": 10}, a=operator(1, 10, 10), b=operator(1, 5, 10), c=operator(1, 10))
    )
    # a passes on 10/s, b doubles its 10/s.
    assert decision.exact == {"a": 1.0, "b": 2.0, "c": 3.0}


def test_a_source_that_filters_passes_on_what_is_left():
    # Of 10,000/s that arrive a tenth goes on. A source task takes 2,500/s, and so emits 250/s.
    decision = ds2(
        rates(
            ["s a"],
            {"s": 10_000},
            {"source_selectivity": {"s": 0.1}},
            s=operator(2, 5_000, 500),
            a=operator(1, 100),
        )
    )
    assert decision.exact == {"s": 4.0, "a": 10.0}
    assert decision.reasons["a"].startswith("1,000 records/s come in and one task can do 100: 10,")


def test_an_edge_carries_its_share_into_a_branch_and_into_a_union():
    # s sends 3/s to a and 7/s to b; b passes on 7/s, half of it to c, where a's 3/s also go.
    decision = ds2(
        rates(
            ["s a", "s b", "a c", "b c", "b d"],
            {"s": 10},
            {"edge_shares": {"s": {"a": 0.3, "b": 0.7}, "b": {"c": 0.5, "d": 0.5}}},
            **{name: operator(1, 1, 1) for name in "abcd"},
        )
    )
    assert decision.exact == pytest.approx({"a": 3.0, "b": 7.0, "c": 6.5, "d": 3.5})


def test_an_operator_without_input_keeps_one_task():
    decision = ds2(rates(["s a", "a b"], {"s": 0}, a=operator(7, 70, 70), b=operator(3, 30)))
    assert decision.parallelism == {"a": 1, "b": 1}
    assert decision.exact == {"a": 0.0, "b": 0.0}


@pytest.mark.parametrize(
    ("demand", "tasks"), [(10.0, 10), (10.0000000001, 10), (10.00000002, 11), (9.9999999999, 10), (10.5, 11)]
)
def test_rounding_does_not_ask_for_a_task_more(demand, tasks):
    assert ds2(rates(["s a"], {"s": demand}, a=operator(1, 1.0))).parallelism == {"a": tasks}


def test_sources_keep_their_parallelism_unless_their_output_rate_is_given():
    graph = (["s a"], {"s": 100})
    assert ds2(rates(*graph, a=operator(1, 50))).parallelism == {"a": 2}
    kept = ds2(rates(*graph, s=operator(3), a=operator(1, 50)))
    assert kept.parallelism == {"s": 3, "a": 2}
    assert "s" not in kept.exact
    assert kept.reasons["s"] == "a source without a true output rate keeps its 3 tasks"
    scaled = ds2(rates(*graph, s=operator(2, output=40), a=operator(1, 50)))
    assert (scaled.parallelism["s"], scaled.exact["s"]) == (5, 5.0)


def test_memory_stays_and_further_metrics_are_accepted():
    further = {"memory_mb": 512.0, "busyness": 0.5, "cache_hit_rate": 0.9, "state_latency_s": 1e-4, "cpu_cores": 0.7}
    decision = ds2(rates(["s a"], {"s": 10}, a=operator(1, 5, **further, backpressure=0.1, lag_records=3)))
    assert decision.memory_mb == {"a": 512.0}


@given(
    demand=st.floats(1e-3, 1e9),
    stages=st.lists(st.tuples(st.integers(1, 50), st.floats(1e-1, 1e7), st.floats(1e-2, 10)), min_size=1, max_size=5),
)
def test_the_decision_sustains_the_source_and_no_task_is_to_spare(demand, stages):
    names = [f"o{i}" for i in range(len(stages))]
    operators = {n: operator(p, p * each, p * each * out) for n, (p, each, out) in zip(names, stages, strict=True)}
    edges = [f"{a} {b}" for a, b in zip(["s", *names[:-1]], names, strict=True)]
    decision = ds2(rates(edges, {"s": demand}, **operators))
    for name, (_, each, out) in zip(names, stages, strict=True):
        tasks = decision.parallelism[name]
        assert tasks * each >= demand * (1 - 1e-8)
        assert tasks == 1 or (tasks - 1) * each < demand * (1 + 1e-8)
        demand *= out


@pytest.mark.parametrize(
    ("edges", "sources", "operators", "message"),
    [
        (["s a"], {}, {"a": operator(1, 5)}, "source 's' has no rate; add it to source_rates"),
        (["s a"], {"s": 1, "a": 1}, {"a": operator(1, 5)}, "'a', which is no source: it has an incoming edge"),
        (["s a"], {"s": 1, "t": 1}, {"a": operator(1, 5)}, "'t', which is no source: it is on no edge"),
        (["s a"], {"s": 1}, {}, "operator 'a' is on an edge but not in 'operators'"),
        (["s a"], {"s": 1}, {"a": operator(1)}, "operator 'a' has no true_processing_rate"),
        (
            ["s a", "a b"],
            {"s": 1},
            {"a": operator(1, 5), "b": operator(1, 5)},
            "'a' has an outgoing edge and no true_out",
        ),
        (["s a"], {"s": 1}, {"a": operator(1, 5), "x": operator(1, 5)}, "operator 'x' is on no edge"),
        (["s a", "a b", "b a"], {"s": 1}, {"a": operator(1, 5, 5), "b": operator(1, 5, 5)}, "must not have a cycle"),
        (["s a", "s a"], {"s": 1}, {"a": operator(1, 5)}, "appears twice"),
        (["s a"], {"s": -1}, {"a": operator(1, 5)}, "greater than or equal to 0"),
        (["s a"], {"s": math.nan}, {"a": operator(1, 5)}, "finite number"),
        (["s a"], {"s": 1}, {"a": operator(0, 5)}, "greater than or equal to 1"),
        (["s a"], {"s": 1}, {"a": operator(1, 0)}, "greater than 0"),
        (["s a"], {"s": 1}, {"a": operator(1, 5, queue=3)}, "Extra inputs are not permitted"),
    ],
)
def test_faulty_rates_say_what_must_hold(edges, sources, operators, message):
    with pytest.raises(ValueError, match=message):
        rates(edges, sources, **operators)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"source_selectivity": {"a": 0.5}}, "source_selectivity names 'a', which is no source"),
        ({"edge_shares": {"a": {"s": 0.5}}}, "edge_shares names the edge from 'a' to 's', which is none of 'edges'"),
        ({"edge_shares": {"s": {"a": -0.5}}}, "greater than or equal to 0"),
    ],
)
def test_what_edges_carry_must_be_of_sources_and_edges_that_there_are(more, message):
    with pytest.raises(ValueError, match=message):
        rates(["s a"], {"s": 1}, more, a=operator(1, 5))


def test_rates_beyond_a_float_are_refused():
    with pytest.raises(InvalidInput, match="check their units"):
        ds2(rates(["s a"], {"s": 1e300}, a=operator(1, 1e-300)))
