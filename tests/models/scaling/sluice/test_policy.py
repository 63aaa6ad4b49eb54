"""Decisions of Sluice's policy, from sequences of facts."""

from collections.abc import Callable

import pytest

from models.errors import InvalidInput
from models.scaling.policy import Facts, Recommendation, Rescaled
from models.scaling.rates import Rates
from models.scaling.sluice import Sluice, SluiceSettings

RatesOf = Callable[..., Rates]

AT_ONCE = SluiceSettings(cooldown_s=0, warm_up_s=0)


def steps(
    policy: Sluice, windows: list[Rates], rescale: Rescaled | None = None, slots: int | None = None
) -> list[Recommendation]:
    """Its recommendations for consecutive windows of 30 s."""
    return [policy.observe(Facts((i + 1) * 30.0, 30.0, window, rescale, slots)) for i, window in enumerate(windows)]


def test_what_keeps_up_is_left_alone(rates: RatesOf) -> None:
    # 1000 records/s: one map task has to work all the time; two with 0.95 attainable take 1900.
    found = steps(Sluice(SluiceSettings()), [rates(1000.0, (1, 2, 1))] * 30)
    assert [r.deploy for r in found] == [None] * 30
    assert (
        "In 10 min 1,000 records/s are expected (1,000 to 1,000) and the current tasks take 1,900" in found[-1].reason
    )


def test_an_overload_is_scaled_up_at_once_and_far_enough_to_catch_up(rates: RatesOf) -> None:
    overload = rates(3000.0, (1, 2, 1), read=2000.0, lag=90_000.0)
    first = steps(Sluice(AT_ONCE), [overload])[0]
    assert first.deploy is not None
    # 3000 records/s need 3 map tasks if all is even; 90 000 records and those of the restart wait besides.
    assert first.deploy.parallelism["map"] >= 4
    assert first.deploy.exact["map"] > 3000 * 1e-3
    assert "records delayed by 40 s of restart and warm-up" in first.reason


def test_far_too_many_tasks_are_scaled_down_once_that_pays(rates: RatesOf) -> None:
    found = steps(Sluice(SluiceSettings()), [rates(1000.0, (1, 20, 2))] * 20)
    decided = [r.deploy for r in found if r.deploy is not None]
    assert decided and 2 <= decided[0].parallelism["map"] <= 5


def test_a_rate_that_rises_is_met_before_it_exceeds_what_runs(rates: RatesOf) -> None:
    # 12 maps take 11 400 records/s; 200 records/s more each minute exceed that after 22 min.
    rising = [rates(7000.0 + 100.0 * i, (2, 12, 4)) for i in range(100)]
    found = steps(Sluice(SluiceSettings()), rising)
    first = next(i for i, r in enumerate(found) if r.deploy is not None and r.deploy.parallelism["map"] > 12)
    assert 7000 + 100 * first < 11_400


def test_it_waits_after_a_rescale(rates: RatesOf) -> None:
    policy, overload = Sluice(SluiceSettings(cooldown_s=90)), rates(3000.0, (1, 2, 1), read=2000.0, lag=90_000.0)
    found = steps(policy, [overload] * 4, rescale=Rescaled(ended_s=5.0, downtime_s=30.0, state_mb=0.0))
    assert [r.deploy is None for r in found] == [True, True, True, False]
    assert "has run for only 25 s" in found[0].reason


def test_the_loss_by_cold_code_counts_as_downtime(rates: RatesOf) -> None:
    policy = Sluice(AT_ONCE.model_copy(update={"late_price": 100.0}))
    policy.observe(Facts(30.0, 30.0, rates(1000.0, (1, 2, 1))))
    # Two maps are taken for 1900 records/s; half of that for 30 s is 15 s lost, after 40 s of downtime.
    slow = rates(1000.0, (1, 2, 1), read=950.0, lag=900_000.0)
    found = policy.observe(Facts(100.0, 30.0, slow, Rescaled(70.0, 40.0, 1.0)))
    assert found.deploy is not None and "55 s of restart and warm-up" in found.reason


def test_the_cluster_is_not_exceeded(rates: RatesOf) -> None:
    overload = rates(9000.0, (1, 2, 1), read=2000.0, lag=90_000.0)
    found = steps(Sluice(AT_ONCE), [overload], slots=8)[0]
    assert found.deploy is not None and sum(found.deploy.parallelism.values()) <= 8


def test_what_falls_behind_is_not_made_smaller_however_little_late_records_are_worth(rates: RatesOf) -> None:
    # 8 slots take 4750 of the 9000 records/s; with late records next to free, 3 tasks would be the cheapest.
    overload = rates(9000.0, (1, 5, 1), read=4750.0, lag=90_000.0)
    found = steps(Sluice(AT_ONCE.model_copy(update={"late_price": 1e-3})), [overload] * 10, slots=8)
    assert [r.deploy for r in found] == [None] * 10


def test_memory_comes_before_tasks(rates: RatesOf) -> None:
    settings = SluiceSettings(memory_levels_mb=(158, 316, 632), cooldown_s=0, warm_up_s=0)
    starved = rates(
        3000.0, (1, 2, 1), read=2000.0, lag=90_000.0, memory_mb=158.0, cache_hit_rate=0.5, state_latency_s=2e-3
    )
    found = steps(Sluice(settings), [starved])[0].deploy
    assert found is not None
    assert (found.memory_mb["map"], found.parallelism["map"]) == (316.0, 2)


def test_memory_without_effect_is_withdrawn(rates: RatesOf) -> None:
    policy = Sluice(SluiceSettings(memory_levels_mb=(158, 316, 632), cooldown_s=0, warm_up_s=0))
    state = {"cache_hit_rate": 0.5, "state_latency_s": 2e-3}
    starved = rates(3000.0, (1, 2, 1), read=2000.0, lag=90_000.0, memory_mb=158.0, **state)
    policy.observe(Facts(30.0, 30.0, starved))
    as_before = rates(3000.0, (1, 2, 1), read=2000.0, lag=150_000.0, memory_mb=316.0, **state)
    found = policy.observe(Facts(100.0, 30.0, as_before, Rescaled(70.0, 40.0, 1.0))).deploy
    assert found is not None
    assert found.memory_mb["map"] == 158.0
    assert found.parallelism["map"] > 2


def test_operators_without_state_need_no_managed_memory(rates: RatesOf) -> None:
    overload = rates(3000.0, (1, 2, 1), read=2000.0, lag=90_000.0, memory_mb=158.0)
    found = steps(Sluice(AT_ONCE), [overload])[0].deploy
    assert found is not None and found.memory_mb["map"] == 0.0


def test_one_decision_from_one_window(rates: RatesOf) -> None:
    # 3000 records/s, of which 0.95 are attainable: 3.16 map tasks.
    found = Sluice(SluiceSettings()).decide(rates(3000.0, (1, 2, 1)))
    assert found.parallelism == {"source": 1, "map": 4, "sink": 1}
    assert found.exact["map"] == pytest.approx(3000 * 1e-3 / 0.95)


def test_nothing_read_is_nothing_known(rates: RatesOf) -> None:
    found = steps(Sluice(AT_ONCE), [rates(0.0, (1, 1, 1))])[0]
    assert found.deploy is None and "Nothing has been read" in found.reason


def test_a_source_without_metrics_is_named(rates: RatesOf) -> None:
    whole = rates(1000.0, (1, 2, 1))
    without = whole.model_copy(update={"operators": {n: m for n, m in whole.operators.items() if n != "source"}})
    with pytest.raises(InvalidInput, match="metrics of source 'source'"):
        Sluice(SluiceSettings()).observe(Facts(30.0, 30.0, without))
