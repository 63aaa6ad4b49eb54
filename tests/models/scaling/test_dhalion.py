"""Dhalion by hand: sections 4.1 and 6.1 of the evaluation paper, and DS2's word count (its Figure 6)."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.errors import InvalidInput
from models.scaling.dhalion import Dhalion, DhalionSettings
from models.scaling.policy import Facts, Rescaled
from models.scaling.rates import Rates


def dhalion(**settings: float) -> Dhalion:
    return Dhalion(DhalionSettings(**settings))


def chain(source: dict, **operators: dict) -> Rates:
    """A source and the operators in a row; a dict holds what differs from a quiet operator of one task."""
    names = ["source", *operators]
    quiet = {"parallelism": 1, "true_processing_rate": 1.0, "true_output_rate": 1.0, "backpressure": 0.0}
    log = {"lag_records": 0.0, "lag_change_per_s": 0.0, "observed_input_rate": 50_000.0}
    metrics = {"source": {**quiet, **log, **source}}
    metrics |= {name: {**quiet, "input_queue_share": 0.0, **given} for name, given in operators.items()}
    return Rates.model_validate(
        {
            "edges": list(pairwise(names)),
            "source_rates": {"source": 50_000.0},
            "operators": metrics,
        }
    )


def facts(rates: Rates, time_s: float = 600.0, rescaled_s: float | None = None) -> Facts:
    rescaled = None if rescaled_s is None else Rescaled(ended_s=rescaled_s, downtime_s=20.0, state_mb=0.0)
    return Facts(time_s=time_s, interval_s=60.0, rates=rates, last_rescale=rescaled)


def test_the_bottleneck_grows_by_backpressured_over_normal_time():
    # b = 0.6: f = 0.6 / 0.4 = 1.5 (Eq. 1), so 4 tasks become 4 x 2.5 = 10. The others stay, whatever their queues.
    rates = chain({"parallelism": 2, "backpressure": 0.6}, map={"parallelism": 4, "input_queue_share": 1.0}, sink={})
    decision = dhalion().decide(rates)
    assert decision.parallelism == {"source": 2, "map": 10, "sink": 1}
    assert decision.exact["map"] == pytest.approx(10.0)
    assert decision.reasons["map"] == (
        "it holds up an operator before it and nothing holds it up, scale-up factor 1.5, so 10 tasks, instead of 4"
    )


def test_a_backpressured_operator_is_no_bottleneck():
    # The window holds up the map and, through it, the source. f = 0.2 / 0.8 = 0.25 of 8 tasks.
    rates = chain({"backpressure": 0.5}, map={"backpressure": 0.2}, window={"parallelism": 8}, sink={"parallelism": 8})
    assert dhalion().decide(rates).parallelism == {"source": 1, "map": 1, "window": 10, "sink": 8}


def test_backpressure_up_to_the_threshold_is_none():
    rates = chain({"backpressure": 0.1}, map={"input_queue_share": 0.5})
    assert dhalion().decide(rates).parallelism["map"] == 1
    assert dhalion(backpressure_threshold=0.05).decide(rates).parallelism["map"] == 2


def test_a_job_that_is_held_up_all_the_time_grows_by_the_largest_factor():
    rates = chain({"backpressure": 1.0}, map={"parallelism": 2})
    assert dhalion().decide(rates).parallelism["map"] == 20
    assert dhalion(max_scale_up_factor=1.0).decide(rates).parallelism["map"] == 4


def test_a_kafka_source_grows_by_lag_growth_over_consumption():
    # 20 000 / 50 000 = 0.4 (Eq. 2): 5 sources become 7.
    rates = chain({"parallelism": 5, "lag_change_per_s": 20_000.0, "lag_records": 1e6}, map={"parallelism": 10})
    assert dhalion().decide(rates).parallelism == {"source": 7, "map": 10}


def test_growing_lag_is_put_down_to_what_holds_the_source_up():
    rates = chain({"parallelism": 5, "lag_change_per_s": 20_000.0, "backpressure": 0.5}, map={"parallelism": 3})
    assert dhalion().decide(rates).parallelism == {"source": 5, "map": 6}


def test_a_source_that_reads_nothing_grows_by_the_largest_factor():
    rates = chain({"lag_change_per_s": 20_000.0, "observed_input_rate": 0.0}, map={})
    assert dhalion().decide(rates).parallelism == {"source": 10, "map": 1}


def test_of_several_bottlenecks_the_one_with_the_fullest_queue_grows():
    # As in a join: the filters of one source. Only `auctions` has a full queue; `persons` starves beside it.
    quiet = {"parallelism": 2, "true_processing_rate": 1.0, "true_output_rate": 1.0, "backpressure": 0.0}
    rates = Rates.model_validate(
        {
            "edges": [["source", "persons"], ["source", "auctions"], ["persons", "join"], ["auctions", "join"]],
            "source_rates": {"source": 1.0},
            "operators": {
                "source": {**quiet, "backpressure": 0.5},
                "persons": {**quiet, "input_queue_share": 0.1},
                "auctions": {**quiet, "input_queue_share": 0.9},
                "join": {**quiet, "input_queue_share": 0.0},
            },
        }
    )
    assert dhalion().decide(rates).parallelism == {"source": 2, "persons": 2, "auctions": 4, "join": 2}


def test_a_healthy_job_loses_a_fifth_wherever_queues_are_almost_empty():
    # 10 x 0.8 = 8, 4 x 0.8 = 3.2 and 1 x 0.8 rounds down, but one task stays; a third of a queue is not almost empty.
    rates = chain(
        {"parallelism": 10},
        map={"parallelism": 4},
        window={"parallelism": 9, "input_queue_share": 0.33},
        sink={"parallelism": 1},
    )
    decision = dhalion().decide(rates)
    assert decision.parallelism == {"source": 8, "map": 3, "window": 9, "sink": 1}
    assert decision.exact == pytest.approx({"source": 8.0, "map": 3.2, "window": 9.0, "sink": 0.8})


def test_a_source_with_lag_or_of_unknown_lag_is_not_scaled_down():
    assert dhalion().decide(chain({"parallelism": 9, "lag_records": 10_001.0}, map={})).parallelism["source"] == 9
    assert dhalion().decide(chain({"parallelism": 9, "lag_records": None}, map={})).parallelism["source"] == 9


def test_a_job_held_up_from_outside_is_left_as_it_is():
    rates = chain({"backpressure": 0.5}, map={"backpressure": 0.5}, sink={"backpressure": 0.5})
    assert dhalion().decide(rates).parallelism == {"source": 1, "map": 1, "sink": 1}


def test_no_operator_gets_more_tasks_than_it_may_have():
    rates = chain({"backpressure": 0.6}, map={"parallelism": 4, "max_parallelism": 6})
    assert dhalion().decide(rates).parallelism["map"] == 6


def test_nothing_happens_for_five_minutes_after_a_rescale():
    rates = chain({"backpressure": 0.6}, map={"parallelism": 4})
    waits = dhalion().observe(facts(rates, time_s=600.0, rescaled_s=301.0))
    assert waits.deploy is None and waits.reason == "1 s of the cooldown of 300 s after a rescale are left."
    acts = dhalion().observe(facts(rates, time_s=601.0, rescaled_s=301.0))
    assert acts.deploy is not None and acts.deploy.parallelism["map"] == 10


def test_what_runs_is_not_recommended():
    recommendation = dhalion().observe(facts(chain({}, map={}, sink={})))
    assert recommendation.deploy is None
    assert recommendation.reason == "Dhalion leaves the job as it is: no operator has tasks to gain or to spare."


def test_a_missing_metric_is_named():
    with pytest.raises(InvalidInput, match="'dhalion' decides by 'backpressure', which is missing for 'map'"):
        dhalion().decide(chain({}, map={"backpressure": None}))
    with pytest.raises(InvalidInput, match="'input_queue_share', which is missing for 'map'"):
        dhalion().decide(chain({}, map={"input_queue_share": None}))


def word_count(flatmaps: int, counts: int) -> Rates:
    """DS2 section 5.2 in steady state: 1 M sentences of 20 words a minute from a limited source.

    A FlatMap splits 100 K sentences a minute, a Count counts 1 M words; what exceeds that holds up who sends it.
    """
    wanted, splits, counted = 1e6, 1e5 * flatmaps, 1e6 * counts / 20
    sentences = min(wanted, splits, counted)
    return chain(
        {"backpressure": 1 - sentences / wanted, "lag_records": None, "lag_change_per_s": None},
        flatmap={
            "parallelism": flatmaps,
            "backpressure": max(0.0, 1 - counted / min(wanted, splits)),
            "input_queue_share": 1.0 if splits < wanted else 0.5,
        },
        count={"parallelism": counts, "input_queue_share": 1.0 if counted < min(wanted, splits) else 0.5},
    )


def test_word_count_takes_several_steps_of_one_operator_each():
    """DS2 needs one step for 10 and 20 tasks (Figure 6). Dhalion on Heron took six and ended with 22 and 30, since
    its signals lag behind its own steps; here every step sees its effect."""
    policy = dhalion()
    steps = [(1, 1)]
    while True:
        now = word_count(*steps[-1])
        wanted = policy.decide(now).parallelism
        after = (wanted["flatmap"], wanted["count"])
        if after == steps[-1]:
            break
        assert sum(a != b for a, b in zip(after, steps[-1], strict=True)) == 1
        steps.append(after)
    # flatmap splits 100 K a minute, count takes 50 K sentences: count first, f = 0.5/0.5; then b = 0.9, f = 9.
    assert steps == [(1, 1), (1, 2), (10, 2), (10, 20)]


shares = st.floats(0, 1)
operators = st.fixed_dictionaries(
    {"parallelism": st.integers(1, 200), "backpressure": shares, "input_queue_share": shares}
)


@given(source=operators, ops=st.lists(operators, min_size=1, max_size=5), growth=st.floats(-1e6, 1e6))
def test_it_either_grows_one_operator_or_shrinks_some(source: dict, ops: list[dict], growth: float):
    del source["input_queue_share"]
    ops[-1]["backpressure"] = 0.0
    rates = chain(source | {"lag_change_per_s": growth}, **{f"op{i}": op for i, op in enumerate(ops)})
    wanted = dhalion().decide(rates).parallelism
    before = {name: metrics.parallelism for name, metrics in rates.operators.items()}
    grown = [name for name in wanted if wanted[name] > before[name]]
    shrunk = [name for name in wanted if wanted[name] < before[name]]
    unhealthy = growth > 1000 or any(metrics.backpressure > 0.1 for metrics in rates.operators.values())
    assert len(grown) == unhealthy and not (grown and shrunk)
    assert all(wanted[name] <= 10 * before[name] for name in grown)
    assert all(wanted[name] == max(1, math.floor(0.8 * before[name] + 1e-9)) for name in shrunk)
