"""The evaluation of a window: target rates and true rates, by hand."""

import math

import numpy as np
import pytest

from models.scaling.flink.metrics import capacity, evaluate, mean_rate, observed_true_rate
from models.scaling.flink.settings import FlinkSettings
from models.scaling.flink.topology import Topology
from models.scaling.flink.window import Sample
from models.scaling.rates import Rates


def rates_of(edges: list[str], sources: dict[str, float], **operators: dict) -> Rates:
    """Edges are written "a b"; every operator but sources needs a true rate, which is not used where it was measured."""
    true = {"parallelism": 1, "true_processing_rate": 1.0, "true_output_rate": 1.0}
    return Rates.model_validate(
        {
            "edges": [edge.split() for edge in edges],
            "source_rates": sources,
            "operators": {name: true | given for name, given in operators.items()},
        }
    )


def measured(read: float, sent: float, busy: float, **more: float) -> dict:
    return {"observed_input_rate": read, "observed_output_rate": sent, "busyness": busy, **more}


def evaluated(rates: Rates, **options: object):
    settings = FlinkSettings.model_validate({name.replace("__", "."): value for name, value in options.items()})
    topology = Topology.of(rates)
    sample = Sample.of(rates, topology, settings)
    result = evaluate(sample.window(topology), topology, settings, settings.restart_time_s)
    return topology.names, result


def test_capacity_leaves_room_for_the_backlog_and_for_one_restart():
    # 100 to catch up + 600 x 300 / 1800 for the restart + 600 / 0.75
    assert capacity(600.0, 100.0, 0.75, 300.0, 1800.0) == 1000
    assert capacity(600.0, 100.0, 0.75, 300.0, 0.0) == 900
    assert capacity(600.5, 0.0, 1.0, 0.0, 0.0) == 601
    assert capacity(600.0, 0.0, 0.0, 0.0, 0.0) == math.inf


def test_the_lag_of_a_source_is_caught_up_all_the_way_down():
    rates = rates_of(
        ["s a", "a b"],
        {"s": 1300},
        s=measured(1000, 1000, 0.5, lag_records=360_000, lag_change_per_s=300),
        a=measured(1000, 500, 0.8),
        b=measured(500, 0, 0.25),
    )
    names, result = evaluated(rates)
    assert names == ("s", "a", "b")
    assert result.target_rate.tolist() == [1300, 1300, 650]
    # 360,000 records in 1800 s are 200/s, and 100/s after a; for the source 200 + 1300 x 300 / 1800 + 1300 / 0.7
    assert result.wanted_capacity.tolist() == [2274, 2274, 1137]
    assert result.true_rate.tolist() == [1000, 1250, 2000]  # the source's is what it read: 1000 / 0.5 exceeds it
    assert result.processing_backlog  # 360 s of records


def test_a_shrinking_lag_does_not_make_a_negative_target():
    source = measured(100, 100, 0.5, lag_records=0, lag_change_per_s=-200)
    _, result = evaluated(rates_of(["s a"], {"s": 100}, s=source, a=measured(100, 0, 0.5)))
    assert result.target_rate.tolist() == [0, 0]
    assert not result.processing_backlog


def test_edges_into_a_join_share_what_it_reads():
    # f sends 30 of 100 on; the join also reads from people, which sends to it and to the audit.
    rates = rates_of(
        ["bids f", "f join", "people join", "people audit", "join sink"],
        {"bids": 100, "people": 20},
        bids=measured(100, 100, 0.5, lag_change_per_s=0),
        people=measured(20, 40, 0.5, lag_change_per_s=0),
        f=measured(100, 30, 0.5),
        join=measured(48, 6, 0.5),
        audit=measured(20, 0, 0.5),
        sink=measured(6, 0, 0.5),
    )
    names, result = evaluated(rates)
    target = dict(zip(names, result.target_rate.tolist(), strict=True))
    # people -> join: 48 - 30 of f = 18. f -> join: people has another edge, so f's 30 count. audit: all that it reads.
    assert target == pytest.approx({"bids": 100, "people": 20, "f": 100, "join": 48, "audit": 20, "sink": 6})


def test_without_observed_rates_the_true_ones_serve():
    rates = rates_of(
        ["s a", "a b"],
        {"s": 100},
        a={"true_processing_rate": 200.0, "true_output_rate": 400.0},
        b={"true_processing_rate": 50.0, "true_output_rate": None},
    )
    _, result = evaluated(rates)
    assert result.target_rate.tolist() == [100, 100, 200]
    assert result.true_rate.tolist()[1:] == [200, 50]


def test_without_observed_rates_an_edge_carries_its_share_of_what_is_emitted():
    # Half of the 100/s passes the filter in the source: 30 % of the 50/s go to a, 70 % to b.
    rates = rates_of(["s b", "s a"], {"s": 100}, a={"true_output_rate": None}, b={"true_output_rate": None})
    parts = {"source_selectivity": {"s": 0.5}, "edge_shares": {"s": {"a": 0.3, "b": 0.7}}}
    names, result = evaluated(rates.model_copy(update=parts))
    target = dict(zip(names, result.target_rate.tolist(), strict=True))
    assert target == pytest.approx({"s": 100, "a": 15, "b": 35})


def test_the_busiest_task_decides_unless_the_mean_is_asked_for():
    given = ["s a"], {"s": 100}
    skewed = measured(100, 0, 0.4, max_busyness=0.8)
    assert evaluated(rates_of(*given, a=skewed))[1].true_rate[1] == pytest.approx(125)
    by_mean = evaluated(rates_of(*given, a=skewed), **{"metrics__busy-time__aggregator": "AVG"})[1]
    assert by_mean.true_rate[1] == pytest.approx(250)


def test_an_operator_that_reads_nothing_has_no_limit():
    source = measured(0, 0, 0.0, lag_change_per_s=0)
    _, result = evaluated(rates_of(["s a"], {"s": 0}, s=source, a=measured(0, 0, 0.0)))
    assert np.isinf(result.true_rate).all()
    assert result.target_rate.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("read", "lag", "backpressure", "expected"),
    [
        (100.0, 3000.0, 0.5, 200.0),
        (100.0, 2999.0, 0.5, None),  # less than 30 s behind: it may have waited for records
        (100.0, 3000.0, 1.0, None),
        (0.0, 0.0, 0.0, math.inf),
    ],
)
def test_the_true_rate_of_a_source_is_seen_while_it_is_behind(read, lag, backpressure, expected):
    assert observed_true_rate(read, lag, backpressure, 30.0) == expected


@pytest.mark.parametrize(
    ("rates", "expected"),
    [([], None), ([5.0], None), ([5.0, 7.0], 6.0), ([5.0, math.inf, 7.0], 6.0), ([math.inf], math.inf)],
)
def test_observations_are_averaged_once_there_are_enough(rates, expected):
    assert mean_rate(rates, 2) == expected


def test_the_observed_rate_counts_only_where_the_other_is_15_percent_above():
    def true_rate(busy: float) -> float:
        behind = measured(100, 100, busy, lag_records=3000, lag_change_per_s=0, backpressure=0.5)
        return evaluated(rates_of(["s a"], {"s": 100}, s=behind, a=measured(100, 0, 0.5)))[1].true_rate[0]

    assert true_rate(0.45) == pytest.approx(100 / 0.45)  # 222, within 15 % of 200
    assert true_rate(0.4) == pytest.approx(200)  # 250
