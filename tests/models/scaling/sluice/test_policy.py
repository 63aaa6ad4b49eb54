"""Decisions of Sluice's policy, from sequences of facts."""

from collections.abc import Callable

import pytest

from models.errors import InvalidInput
from models.scaling.policy import Facts, Recommendation, Rescaled
from models.scaling.rates import Rates
from models.scaling.sluice import Sluice, SluiceSettings

RatesOf = Callable[..., Rates]

IN_PLACE = SluiceSettings(restart_s=1.0)


def steps(
    policy: Sluice, windows: list[Rates], rescale: Rescaled | None = None, slots: int | None = None
) -> list[Recommendation]:
    """Its recommendations for consecutive windows of 10 s."""
    return [policy.observe(Facts((i + 1) * 10.0, 10.0, window, rescale, slots)) for i, window in enumerate(windows)]


def first(found: list[Recommendation]) -> tuple[int, Recommendation]:
    """The first decision, and when it came."""
    return next((i, r) for i, r in enumerate(found) if r.deploy is not None)


def test_what_keeps_up_is_left_alone(rates: RatesOf) -> None:
    # 1000 records/s: one map task has to work all the time; two with 0.95 attainable take 1900.
    # Forecasts of 5 min each minute: after 13 min, 8 have come true.
    found = steps(Sluice(IN_PLACE), [rates(1000.0, (1, 2, 1))] * 90)
    assert [r.deploy for r in found] == [None] * 90
    compared = [r.reason for r in found if "no other number is better" in r.reason]
    assert "In the next 5 min 1,000 to 1,000 records/s are expected; 4 tasks take 1,900, with 0.0% late" in compared[-1]
    assert len(compared) == 90 / 3
    assert "compared every 30 s" in found[-1].reason


def test_an_overload_is_scaled_up_at_once_and_far_enough_to_catch_up(rates: RatesOf) -> None:
    overload = rates(3000.0, (1, 2, 1), read=2000.0, lag=90_000.0)
    found = steps(Sluice(IN_PLACE), [overload])[0]
    assert found.deploy is not None
    # 3000 records/s need 3.2 map tasks; 90 000 records wait besides.
    assert found.deploy.parallelism["map"] >= 5
    assert "records/s are expected" in found.reason and "late so far, 1.0% may be" in found.reason


def test_far_too_many_tasks_are_scaled_down_to_the_right_size_at_once(rates: RatesOf) -> None:
    found = steps(Sluice(IN_PLACE), [rates(1000.0, (1, 20, 2))] * 60)
    decided = first(found)[1].deploy
    # A rate that has hardly been seen counts as uncertain by 10 %.
    assert decided is not None and 2 <= decided.parallelism["map"] <= 3


def test_a_rate_that_rises_is_met_before_it_exceeds_what_runs(rates: RatesOf) -> None:
    # 12 maps take 11 400 records/s; 300 records/s more each minute exceed that after 14 min and 40 s.
    rising = [rates(7000.0 + 50.0 * i, (2, 12, 4)) for i in range(120)]
    when, found = next(
        (i, r) for i, r in enumerate(steps(Sluice(IN_PLACE), rising)) if r.deploy and r.deploy.parallelism["map"] > 12
    )
    assert 7000 + 50 * when < 11_400 * 1.01
    assert found.deploy is not None


def test_it_waits_after_a_rescale(rates: RatesOf) -> None:
    policy, overload = Sluice(IN_PLACE), rates(3000.0, (1, 2, 1), read=2000.0, lag=90_000.0)
    found = steps(policy, [overload] * 8, rescale=Rescaled(ended_s=5.0, downtime_s=1.0, state_mb=0.0))
    assert [r.deploy is None for r in found] == [True] * 6 + [False] * 2
    assert "has run for 5 s since its last rescale" in found[0].reason


def test_where_the_next_rescale_is_known_to_be_far_off_a_reserve_is_kept(rates: RatesOf) -> None:
    def fewest(settings: SluiceSettings) -> int:
        """Fewest maps recommended, once it has seen twice that a rescale can be followed by another after four minutes only."""
        policy, rescale, found = Sluice(settings), None, []
        for now_s in range(240, 1681, 240):
            window = rates(3600.0 if now_s % 480 == 0 else 3000.0, (1, 10, 1))
            found.append(policy.observe(Facts(float(now_s), 10.0, window, rescale, None)))
            rescale = Rescaled(ended_s=float(now_s), downtime_s=1.0, state_mb=0.0)
        return min(one.deploy.parallelism["map"] for one in found[2:] if one.deploy is not None)

    # 4 maps take 3800 records/s, 5 take 4750.
    assert fewest(IN_PLACE.model_copy(update={"without": frozenset({"pace"})})) == 4
    assert fewest(IN_PLACE) == 5


def test_a_long_downtime_is_waited_out_only_where_it_pays(rates: RatesOf) -> None:
    # 2 of 3 maps are enough. Within 10 s, a restart of 40 s makes all records of a minute late; within 60 s none.
    window = rates(1000.0, (1, 3, 1))
    strict = SluiceSettings(restart_s=40.0, objective_s=10.0, attainment=0.999)
    loose = SluiceSettings(restart_s=40.0, objective_s=60.0, attainment=0.9)
    assert all(r.deploy is None for r in steps(Sluice(strict), [window] * 90))
    assert any(r.deploy is not None for r in steps(Sluice(loose), [window] * 90))


def test_what_cold_code_loses_is_counted_by_the_tasks_that_run(rates: RatesOf) -> None:
    # 2 maps read the 1900 records/s that they take, so no work was lost. Of the 19 000 that the 20 before took it would be 90 %
    # of 100 s, a downtime that makes all records late, whatever is deployed.
    policy = Sluice(SluiceSettings(restart_s=20.0, objective_s=60.0, interval_s=60.0))
    for i in range(10):
        policy.observe(Facts(60.0 * (i + 1), 60.0, rates(1500.0, (1, 20, 1))))
    rescale = Rescaled(ended_s=620.0, downtime_s=20.0, state_mb=0.0)
    overload = [rates(3000.0, (1, 2, 1), read=1900.0, lag=60_000.0 + 66_000.0 * i) for i in (1, 2)]
    policy.observe(Facts(720.0, 60.0, overload[0], rescale))
    found = policy.observe(Facts(780.0, 60.0, overload[1], rescale))
    assert found.deploy is not None and "100.0% late" not in found.reason


def test_a_growing_lag_shows_the_rate_before_its_mean_does(rates: RatesOf) -> None:
    # The mean over a minute says 2000; the lag grows by 6000 records/s while 1900 are read.
    calm = [rates(1500.0, (1, 2, 1))] * 30
    late = [rates(2000.0, (1, 2, 1), read=1900.0, lag=60_000.0 * i) for i in (1, 2)]
    seeing, blind = Sluice(IN_PLACE), Sluice(IN_PLACE.model_copy(update={"without": frozenset({"lag"})}))
    seen, unseen = steps(seeing, calm + late)[-1], steps(blind, calm + late)[-1]
    assert seen.deploy is not None and seen.deploy.parallelism["map"] > 8
    assert unseen.deploy is None


def test_where_records_begin_to_wait_one_reading_more_shows_the_rate(rates: RatesOf) -> None:
    # The rate rises to 9000 records/s, and 1900 are read. What waits after 5 of 10 s would be as much at 5450. One reading on
    # the rate is known; maps take 950 records/s each, so it needs ten. Where readings are a minute apart, another rescale could
    # follow as soon.
    calm = [rates(1500.0, (1, 2, 1))] * 30
    risen = [rates(2100.0, (1, 2, 1), read=1900.0, lag=35_500.0), rates(3300.0, (1, 2, 1), read=1900.0, lag=106_500.0)]
    first, second = steps(Sluice(IN_PLACE), calm + risen)[-2:]
    assert first.deploy is None and "next reading" in first.reason
    assert second.deploy is not None and second.deploy.parallelism["map"] >= 10
    rare = Sluice(IN_PLACE.model_copy(update={"interval_s": 60.0}))
    assert steps(rare, calm + risen[:1])[-1].deploy is not None


def test_a_higher_attainment_takes_no_fewer_tasks(rates: RatesOf) -> None:
    noisy = [rates(1000.0 * (1.3 if i % 12 < 6 else 0.7), (1, 8, 1)) for i in range(120)]
    tasks = []
    for attainment in (0.9, 0.999):
        policy = Sluice(IN_PLACE.model_copy(update={"attainment": attainment}))
        decided = first(steps(policy, noisy)[60:])[1].deploy
        assert decided is not None
        tasks.append(decided.parallelism["map"])
    assert tasks[0] <= tasks[1]


def test_the_cluster_is_not_exceeded(rates: RatesOf) -> None:
    overload = rates(9000.0, (1, 2, 1), read=2000.0, lag=90_000.0)
    found = steps(Sluice(IN_PLACE), [overload], slots=8)[0]
    assert found.deploy is not None and sum(found.deploy.parallelism.values()) <= 8


def test_operators_that_were_never_busy_yet_are_no_obstacle(rates: RatesOf) -> None:
    """A job that is nearly idle, as Flink shows it in the first interval."""
    read = rates(1.0, (1, 2, 1))
    idle = {name: one.model_copy(update={"busyness": 0.0}) for name, one in read.operators.items()}
    found = steps(Sluice(IN_PLACE), [read.model_copy(update={"operators": idle})], slots=8)[0]
    assert found.deploy is None or sum(found.deploy.parallelism.values()) <= 8


def test_what_falls_behind_is_not_made_smaller_however_little_attainment_is_asked_for(rates: RatesOf) -> None:
    # 8 slots take 4750 of the 9000 records/s.
    overload = [rates(9000.0, (1, 5, 1), read=4750.0, lag=90_000.0 + 42_500.0 * i) for i in range(20)]
    found = steps(Sluice(IN_PLACE.model_copy(update={"attainment": 0.5})), overload, slots=7)
    assert [r.deploy for r in found] == [None] * 20


def test_memory_comes_before_tasks(rates: RatesOf) -> None:
    settings = IN_PLACE.model_copy(update={"memory_levels_mb": (158.0, 316.0, 632.0)})
    starved = rates(
        3000.0, (1, 2, 1), read=2000.0, lag=90_000.0, memory_mb=158.0, cache_hit_rate=0.5, state_latency_s=2e-3
    )
    found = steps(Sluice(settings), [starved])[0].deploy
    assert found is not None
    assert (found.memory_mb["map"], found.parallelism["map"]) == (316.0, 2)


def test_memory_without_effect_is_withdrawn(rates: RatesOf) -> None:
    policy = Sluice(IN_PLACE.model_copy(update={"memory_levels_mb": (158.0, 316.0, 632.0)}))
    state = {"cache_hit_rate": 0.5, "state_latency_s": 2e-3}
    starved = rates(3000.0, (1, 2, 1), read=2000.0, lag=90_000.0, memory_mb=158.0, **state)
    policy.observe(Facts(10.0, 10.0, starved))
    as_before = rates(3000.0, (1, 2, 1), read=2000.0, lag=150_000.0, memory_mb=316.0, **state)
    found = policy.observe(Facts(100.0, 10.0, as_before, Rescaled(20.0, 1.0, 1.0))).deploy
    assert found is not None
    assert found.memory_mb["map"] == 158.0
    assert found.parallelism["map"] > 2


def test_operators_without_state_need_no_managed_memory(rates: RatesOf) -> None:
    overload = rates(3000.0, (1, 2, 1), read=2000.0, lag=90_000.0, memory_mb=158.0)
    found = steps(Sluice(IN_PLACE), [overload])[0].deploy
    assert found is not None and found.memory_mb["map"] == 0.0


def test_one_decision_from_one_window(rates: RatesOf) -> None:
    # 3000 records/s, of which 0.95 are attainable: 3.16 map tasks.
    found = Sluice(SluiceSettings()).decide(rates(3000.0, (1, 2, 1)))
    assert found.parallelism == {"source": 1, "map": 4, "sink": 1}
    assert found.exact["map"] == pytest.approx(3000 * 1e-3 / 0.95)


def test_nothing_read_is_nothing_known(rates: RatesOf) -> None:
    found = steps(Sluice(IN_PLACE), [rates(0.0, (1, 1, 1))])[0]
    assert found.deploy is None and "Nothing has been read" in found.reason


def test_a_source_without_metrics_is_named(rates: RatesOf) -> None:
    whole = rates(1000.0, (1, 2, 1))
    without = whole.model_copy(update={"operators": {n: m for n, m in whole.operators.items() if n != "source"}})
    with pytest.raises(InvalidInput, match="metrics of source 'source'"):
        Sluice(SluiceSettings()).observe(Facts(30.0, 30.0, without))


def test_a_job_whose_buffers_fill_is_scaled_up_though_nothing_waits_before_its_sources(rates: RatesOf) -> None:
    # 2500 records/s are read, of which two maps take 1900.
    calm = [rates(1500.0, (1, 2, 1))] * 6
    filling = [rates(2500.0, (1, 2, 1), in_flight_records=6000.0 * (i + 1)) for i in range(3)]
    strict = SluiceSettings(restart_s=1.0, objective_s=5.0)
    found = steps(Sluice(strict), [*calm, *filling])[6:]
    # The first shows that records wait, the second how fast they come.
    assert [one.deploy is not None for one in found] == [False, True, True]
    assert all(one.deploy is None or one.deploy.parallelism["map"] >= 4 for one in found)
    # Where what is in flight is unknown, it looks as if the maps took all of it, and nothing waits.
    unseen = steps(Sluice(strict), [*calm, *([rates(2500.0, (1, 2, 1))] * 3)])[6:]
    assert [one.deploy is not None for one in unseen] == [True, False, False]
