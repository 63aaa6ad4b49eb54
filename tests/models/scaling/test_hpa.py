"""The HPA policies by hand: Eq. 4-6 of the evaluation paper, and Kubernetes' documented defaults."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.errors import InvalidInput
from models.scaling.hpa import HpaCpu, HpaCpuSettings, HpaVarga, HpaVargaSettings
from models.scaling.policy import Facts, Recommendation, Rescaled
from models.scaling.rates import Rates


def rates(source: dict | None = None, **operators: dict) -> Rates:
    """A source and the operators in a row; a dict holds what differs from an operator at half its capacity."""
    names = ["source", *operators]
    half = {"parallelism": 1, "true_processing_rate": 1.0, "true_output_rate": 1.0, "backpressure": 0.0}
    log = {"lag_records": 0.0, "lag_change_per_s": 0.0, "observed_input_rate": 50_000.0}
    metrics = {"source": {**half, **log, **(source or {})}}
    metrics |= {name: {**half, "idleness": 0.5, **given} for name, given in operators.items()}
    return Rates.model_validate(
        {
            "edges": list(pairwise(names)),
            "source_rates": {"source": 50_000.0},
            "operators": metrics,
        }
    )


def at_cpu(share: float, tasks: int = 10, **more: int) -> Rates:
    return rates(map={"parallelism": tasks, "cpu_cores": share * tasks, **more})


def cpu(**settings: float) -> HpaCpu:
    return HpaCpu(HpaCpuSettings(**settings))


def varga(**settings: float) -> HpaVarga:
    return HpaVarga(HpaVargaSettings(**settings))


def observe(policy: HpaCpu, time_s: float, now: Rates, rescaled_s: float | None = None) -> Recommendation:
    rescaled = None if rescaled_s is None else Rescaled(ended_s=rescaled_s, downtime_s=20.0, state_mb=0.0)
    return policy.observe(Facts(time_s=time_s, interval_s=15.0, rates=now, last_rescale=rescaled))


@pytest.mark.parametrize(
    ("share", "tasks", "desired"),
    [
        (0.91, 10, 13),  # 10 x 0.91 / 0.7 = 13
        (0.95, 10, 14),  # 13.57
        (0.35, 10, 5),  # half of the target
        (0.76, 10, 10),  # ratio 1.086: within the tolerance of 10 %
        (0.77, 10, 10),  # ratio 1.1: at its edge
        (0.78, 10, 12),  # 11.14
        (0.64, 10, 10),  # ratio 0.914
        (0.62, 10, 9),  # 8.86
        (0.0, 10, 1),
        (0.35, 1, 1),
    ],
)
def test_cpu_over_its_target_scales_the_tasks(share: float, tasks: int, desired: int):
    assert cpu().decide(at_cpu(share, tasks)).parallelism["map"] == desired


def test_the_reason_gives_the_figures():
    assert cpu().decide(at_cpu(0.91)).reasons == {
        "source": "the metric of this source is not known, so 1 task, as now",
        "map": "91% of the CPU is in use, 70% is the target, so 13 tasks, instead of 10",
    }


def test_every_operator_is_scaled_on_its_own():
    now = rates(
        {"parallelism": 4, "cpu_cores": 3.64},
        map={"parallelism": 10, "cpu_cores": 7.0},
        sink={"parallelism": 6, "cpu_cores": 2.1},
    )
    assert cpu().decide(now).parallelism == {"source": 6, "map": 10, "sink": 3}


def test_no_more_than_twice_the_tasks_or_four_more_are_added_at_once():
    assert cpu(target_cpu_utilization=0.1).decide(at_cpu(1.0, 10)).parallelism["map"] == 20
    assert cpu(target_cpu_utilization=0.1).decide(at_cpu(1.0, 2)).parallelism["map"] == 6
    assert cpu().decide(at_cpu(0.95, 10, max_parallelism=12)).parallelism["map"] == 12


def test_scaling_up_happens_at_once():
    recommendation = observe(cpu(), 15.0, at_cpu(0.91))
    assert recommendation.deploy is not None and recommendation.deploy.parallelism["map"] == 13
    assert recommendation.reason == (
        "HPA-CPU scales map from 10 to 13 tasks; map: 91% of the CPU is in use, 70% is the target."
    )


def test_scaling_down_takes_the_largest_recommendation_of_five_minutes():
    # At 0 s: 10 tasks run. From 15 s on 5 are enough, but at 45 s 8 were: from 300 s on 8, from 345 s on 5.
    policy = cpu()
    shares = {15 * i: 0.35 for i in range(1, 24)} | {45: 0.56}
    observe(policy, 0.0, at_cpu(0.7))
    deployed = {time_s: observe(policy, time_s, at_cpu(share)).deploy for time_s, share in shares.items()}
    tasks = {time_s: decision and decision.parallelism["map"] for time_s, decision in deployed.items()}
    assert all(tasks[time_s] is None for time_s in range(15, 300, 15))
    assert [tasks[300], tasks[315], tasks[330], tasks[345]] == [8, 8, 8, 5]


def test_a_delayed_scale_down_is_reported():
    policy = cpu()
    assert observe(policy, 0.0, at_cpu(0.7)).reason == "HPA-CPU keeps the current tasks."
    assert observe(policy, 15.0, at_cpu(0.35)).reason == (
        "HPA-CPU scales down to the largest number of the last 300 s: map could do with 5 tasks."
    )


def test_an_old_larger_recommendation_does_not_scale_up():
    policy = cpu()
    observe(policy, 0.0, at_cpu(0.91))
    assert observe(policy, 15.0, at_cpu(0.7)).deploy is None


def test_recommendations_of_the_cooldown_count_but_are_not_followed():
    policy = cpu()
    assert observe(policy, 30.0, at_cpu(1.0), rescaled_s=0.0).reason == (
        "270 s of the cooldown of 300 s after a rescale are left."
    )
    assert observe(policy, 300.0, at_cpu(0.35), rescaled_s=0.0).deploy is None
    down = observe(policy, 330.0, at_cpu(0.35), rescaled_s=0.0)
    assert down.deploy is not None and down.deploy.parallelism["map"] == 5


def test_utilisation_is_the_time_not_idle():
    # 1 - 0.02 = 0.98 (Eq. 5), over 0.7: 10 x 1.4 = 14. Held up or busy is alike.
    assert varga().decide(rates(map={"parallelism": 10, "idleness": 0.02})).parallelism["map"] == 14


def lagging(records: float, growth: float, **more: float) -> dict:
    """A source that reads 50 000 records/s and is held up half of the time."""
    return {"lag_records": records, "lag_change_per_s": growth, "backpressure": 0.5, **more}


def test_the_larger_of_both_metrics_decides():
    # 1 + 30 000 / 50 000 = 1.6 (Eq. 6): 10 tasks become 16, where utilisation asks for 10 x 0.98 / 0.7 = 14 ...
    now = rates(lagging(1e6, 30_000.0), map={"parallelism": 10, "idleness": 0.02}, sink={"idleness": 0.3})
    decision = varga().decide(now)
    assert decision.parallelism == {"source": 1, "map": 16, "sink": 1}
    assert decision.reasons["map"] == (
        "1,000,000 records lag and 1.6 records come for each one read, so 16 tasks, instead of 10"
    )
    # ... and with 1.2 it asks for 12.
    now = rates(lagging(1e6, 10_000.0), map={"parallelism": 10, "idleness": 0.02}, sink={"idleness": 0.3})
    assert varga().decide(now).parallelism["map"] == 14


def test_a_lag_below_the_threshold_is_ignored():
    now = rates(lagging(49_999.0, 30_000.0), map={"parallelism": 10, "idleness": 0.3})
    assert varga().decide(now).parallelism["map"] == 10
    assert varga(lag_threshold_records=10_000).decide(now).parallelism["map"] == 16


def test_lag_that_neither_grows_nor_shrinks_holds_back_scaling_down():
    now = rates(lagging(1e6, 0.0), map={"parallelism": 10, "idleness": 0.65})
    assert varga().decide(now).parallelism["map"] == 10
    shrinking = rates(lagging(1e6, -25_000.0), map={"parallelism": 10, "idleness": 0.65})
    assert varga().decide(shrinking).parallelism["map"] == 5


def test_lag_is_put_down_to_what_holds_the_source_up():
    held_up = rates(
        lagging(1e6, 30_000.0),
        map={"parallelism": 10, "idleness": 0.3, "backpressure": 0.4},
        window={"parallelism": 10, "idleness": 0.3},
        sink={"parallelism": 10, "idleness": 0.3},
    )
    assert varga().decide(held_up).parallelism == {"source": 1, "map": 10, "window": 16, "sink": 10}
    by_source = rates(lagging(1e6, 30_000.0, backpressure=0.0, parallelism=10, idleness=0.3), map={"idleness": 0.3})
    assert varga().decide(by_source).parallelism == {"source": 16, "map": 1}


def test_of_several_bottlenecks_the_most_used_bears_the_lag():
    half = {"parallelism": 10, "true_processing_rate": 1.0, "true_output_rate": 1.0, "backpressure": 0.0}
    now = Rates.model_validate(
        {
            "edges": [["source", "persons"], ["source", "auctions"]],
            "source_rates": {"source": 50_000.0},
            "operators": {
                "source": {**half, "observed_input_rate": 50_000.0, **lagging(1e6, 30_000.0)},
                "persons": {**half, "idleness": 0.35},
                "auctions": {**half, "idleness": 0.3},
            },
        }
    )
    assert varga().decide(now).parallelism == {"source": 10, "persons": 10, "auctions": 16}


def test_sources_that_read_nothing_while_lag_grows_call_for_all_that_the_limits_allow():
    now = rates(lagging(1e6, 30_000.0, observed_input_rate=0.0), map={"parallelism": 10, "idleness": 1.0})
    assert varga().decide(now).parallelism["map"] == 20


def test_missing_metrics_are_named():
    with pytest.raises(InvalidInput, match="'hpa-cpu' decides by 'cpu_cores', which is missing for 'map', 'sink'"):
        cpu().decide(rates(map={}, sink={}))
    with pytest.raises(InvalidInput, match="'hpa-varga' decides by 'idleness', which is missing for 'map'"):
        varga().decide(rates(map={"idleness": None}))
    with pytest.raises(InvalidInput, match="'backpressure', which is missing for 'map'"):
        varga().decide(rates(lagging(1e6, 1.0), map={"backpressure": None}))


@given(share=st.floats(0, 1), tasks=st.integers(1, 500), target=st.floats(0.05, 1), tolerance=st.floats(0, 0.5))
def test_after_a_decision_the_target_is_met(share: float, tasks: int, target: float, tolerance: float):
    """The same work on the tasks decided is at most the target, unless the tolerance or a limit keeps it above."""
    after = cpu(target_cpu_utilization=target, tolerance=tolerance).decide(at_cpu(share, tasks)).parallelism["map"]
    limit = max(2 * tasks, tasks + 4)
    assert 1 <= after <= limit
    if abs(share / target - 1) > tolerance * 1.001 and after < limit:
        assert share * tasks / after <= target * (1 + 1e-6)
        assert after == 1 or share * tasks / (after - 1) > target * (1 - 1e-6)
    elif abs(share / target - 1) < tolerance * 0.999:
        assert after == tasks


@given(st.lists(st.tuples(st.integers(1, 40), st.floats(0, 1)), min_size=1, max_size=60))
def test_it_never_goes_below_what_it_recommended_within_the_window(steps: list[tuple[int, float]]):
    """Against all recommendations kept and searched, instead of those that none has overtaken."""
    policy, time_s, made = cpu(), 0.0, [(0.0, 10)]
    for gap, share in steps:
        now = at_cpu(share, 10)
        deploy = observe(policy, time_s, now).deploy
        desired = math.ceil(10 * share / 0.7 * (1 - 1e-9)) or 1
        desired = 10 if abs(share / 0.7 - 1) <= 0.1 + 1e-9 else desired
        made.append((time_s, desired))
        largest = max(tasks for when, tasks in made if when > time_s - 300)
        expected = max(desired, min(10, largest))
        assert (deploy.parallelism["map"] if deploy else 10) == expected
        time_s += 15.0 * gap
