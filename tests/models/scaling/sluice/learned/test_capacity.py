"""The capacity learned from intervals."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from known_answers.capacity_laws import regression
from models.capacity.growth.capacity_model import CapacityModel
from models.errors import InvalidInput
from models.scaling.rates import Rates
from models.scaling.sluice import ChampionModel, SluiceSettings
from models.scaling.sluice.learned.capacity import ATTAINABLE_SHARE, Demand, LearnedCapacity

RatesOf = Callable[..., Rates]


def capacity_of(learned: LearnedCapacity) -> float:
    """Of the current tasks, records/s."""
    return float(learned.of(learned.demand.tasks[None, :])[0][0])


def test_task_seconds_and_even_capacity(rates: RatesOf) -> None:
    learned, now = LearnedCapacity(SluiceSettings()), rates(500.0, (1, 2, 1))
    assert not learned.known
    learned.observe(now, 30.0, warm=True)
    demand = learned.demand
    np.testing.assert_allclose(demand.task_seconds, [1e-4, 1e-3, 2e-4])
    # The map binds: two tasks at 1 ms a record.
    np.testing.assert_allclose(demand.even_capacities(demand.tasks), [10_000, 2000, 5000])
    all_of_it = np.ones(3)
    np.testing.assert_array_equal(demand.tasks_for(np.array([2000.0, 9000.0]), all_of_it), [[1, 2, 1], [1, 9, 2]])
    np.testing.assert_array_equal(demand.tasks_for(np.array([2000.0]), np.array([1.0, 0.5, 1.0])), [[1, 4, 1]])
    assert capacity_of(learned) == pytest.approx(2000 * ATTAINABLE_SHARE)


def test_the_busiest_task_has_the_most_key_groups(rates: RatesOf) -> None:
    learned = LearnedCapacity(SluiceSettings())
    learned.observe(rates(500.0, (1, 5, 1), key_groups=8), 30.0, warm=True)
    demand = learned.demand
    # 8 key groups on 5 tasks: the busiest has 2 of them, as if there were 4 tasks.
    assert demand.even_capacities(demand.tasks)[1] == pytest.approx(4000.0)
    # More than 4000 needs one group a task; 4000 needs 4 tasks; 3000 needs 2 groups a task at most, so 4.
    found = demand.tasks_for(np.array([2000.0, 3000.0, 4000.0, 4001.0]), np.ones(3))
    np.testing.assert_array_equal(found[:, 1], [2, 4, 4, 8])


@given(st.floats(1.0, 5e4), st.integers(1, 300))
def test_the_fewest_tasks_reach_the_rate_and_one_fewer_does_not(rate: float, groups: int) -> None:
    demand = Demand(("a",), np.ones(1), np.array([1e-3]), np.array([1e6]), np.array([float(groups)]))
    if rate * 1e-3 > groups:
        return
    tasks = demand.tasks_for(np.array([rate]), np.ones(1))[0]
    assert demand.even_capacities(tasks)[0] >= rate * (1 - 1e-6)
    if tasks[0] > 1:
        assert demand.even_capacities(tasks - 1)[0] < rate


def test_a_burst_counts_with_what_it_costs_on_average(rates: RatesOf) -> None:
    learned = LearnedCapacity(SluiceSettings())
    idle, burst = rates(500.0, (1, 2, 1)), rates(500.0, (1, 2, 1))
    window = burst.operators["map"]
    quiet = idle.model_copy(update={"operators": idle.operators | {"map": window.model_copy(update={"busyness": 0.0})}})
    firing = burst.model_copy(
        update={"operators": burst.operators | {"map": window.model_copy(update={"busyness": 1.0})}}
    )
    for _ in range(60):
        learned.observe(quiet, 10.0, warm=True)
        learned.observe(firing, 10.0, warm=True)
    # 2 tasks busy half of the time at 500 records/s; of the last 10 s 3 % more are remembered than of those before.
    assert learned.task_seconds["map"] == pytest.approx(2 * 0.5 / 500, rel=0.02)


def test_fresh_code_is_left_out_once_something_is_known(rates: RatesOf) -> None:
    learned = LearnedCapacity(SluiceSettings())
    slow = rates(500.0, (1, 2, 1))
    cold = slow.model_copy(
        update={"operators": {n: m.model_copy(update={"busyness": 0.9}) for n, m in slow.operators.items()}}
    )
    learned.observe(slow, 30.0, warm=True)
    learned.observe(cold, 30.0, warm=False)
    assert learned.task_seconds["map"] == pytest.approx(1e-3)


def test_what_is_reached_while_records_wait_is_the_capacity(rates: RatesOf) -> None:
    learned = LearnedCapacity(SluiceSettings())
    waiting = rates(2000.0, (1, 2, 1), read=1000.0, lag=60_000.0, max_busyness=0.9)
    for _ in range(40):
        learned.observe(waiting, 30.0, warm=True)
    # What was expected beforehand still counts a little.
    assert capacity_of(learned) == pytest.approx(1000, rel=0.01)


def test_a_mean_that_reaches_back_to_an_idle_time_is_not_the_capacity(rates: RatesOf) -> None:
    learned = LearnedCapacity(SluiceSettings())
    # After 50 s without records, 2000/s were read for 10 s, so 333/s in the mean of a minute: the map was busy for 17 % of it.
    begun = rates(333.0, (1, 2, 1), read=333.0, lag=40_000.0, max_busyness=0.17)
    for _ in range(3):
        learned.observe(begun, 10.0, warm=True)
    assert capacity_of(learned) == pytest.approx(2000 * ATTAINABLE_SHARE)
    # Records have waited for the whole minute, and still no more is read.
    for _ in range(6):
        learned.observe(begun, 10.0, warm=True)
    assert capacity_of(learned) < 1000


def test_a_rate_that_is_read_is_attainable_also_where_another_operator_binds(rates: RatesOf) -> None:
    learned = LearnedCapacity(SluiceSettings())
    for _ in range(4):
        learned.observe(rates(1200.0, (1, 2, 1), read=600.0, lag=60_000.0, max_busyness=0.9), 60.0, warm=True)
    assert capacity_of(learned) < 800
    # Now records wait for the source, and the map keeps up with more than was believed of it.
    waiting = rates(1800.0, (1, 2, 1), read=1500.0, lag=60_000.0, max_busyness=0.7)
    source = waiting.operators["source"].model_copy(update={"max_busyness": 1.0})
    waiting = waiting.model_copy(update={"operators": waiting.operators | {"source": source}})
    for _ in range(4):
        learned.observe(waiting, 60.0, warm=True)
    assert capacity_of(learned) > 1000


def test_a_rate_that_was_sustained_is_attainable(rates: RatesOf) -> None:
    learned, busy = LearnedCapacity(SluiceSettings()), rates(1980.0, (1, 2, 1))
    for _ in range(40):
        learned.observe(busy, 30.0, warm=True)
    assert capacity_of(learned) == pytest.approx(1980, rel=0.01)


def test_a_busy_task_bounds_the_capacity_and_an_idle_one_says_nothing(rates: RatesOf) -> None:
    learned, uneven = LearnedCapacity(SluiceSettings()), rates(1000.0, (1, 2, 1), max_busyness=0.8)
    for _ in range(100):
        learned.observe(uneven, 30.0, warm=True)
    # The busiest of two tasks would be busy all the time at 1250 records/s, less 2 % x sqrt(2 ln 2) for the noise of its time;
    # what is within 3 % of the estimate changes it no more.
    assert 1250 * 1.0235 <= capacity_of(learned) <= 1250 * 1.0235 / 0.97 * 1.001
    even = LearnedCapacity(SluiceSettings())
    even.observe(rates(1000.0, (1, 2, 1), max_busyness=0.5), 30.0, warm=True)
    assert capacity_of(even) == pytest.approx(1900.0)


def test_operators_attain_shares_of_their_own(rates: RatesOf) -> None:
    learned = LearnedCapacity(SluiceSettings())
    # The map takes half of what its two tasks could.
    for _ in range(40):
        learned.observe(rates(2000.0, (1, 2, 1), read=1000.0, lag=60_000.0, max_busyness=0.9), 30.0, warm=True)
    found, deviation = learned.of(np.array([[1.0, 2, 1], [1, 4, 1], [1, 16, 1]]))
    # With 16 maps the sink binds, of which nothing was learned: 5000 of 0.95.
    np.testing.assert_allclose(found, [1000, 2000, 4750], rtol=0.01)
    assert deviation[0] < deviation[1] < deviation[2]


def test_without_learning_the_expected_share_stays(rates: RatesOf) -> None:
    learned = LearnedCapacity(SluiceSettings(without=frozenset({"learning"})))
    learned.observe(rates(2000.0, (1, 2, 1), read=1000.0, lag=60_000.0), 30.0, warm=True)
    learned.observe(rates(2000.0, (1, 2, 1), read=1000.0, lag=90_000.0), 30.0, warm=True)
    assert capacity_of(learned) == pytest.approx(1900.0)


def test_the_champion_says_what_more_tasks_bring(rates: RatesOf) -> None:
    # 100 records/s and 300 more for each slot without sources: 1000 with 3 slots, where 2 maps could do 2000.
    champion = ChampionModel(model=CapacityModel.of(regression("linear", 0.0, 300.0, 100.0)), memory_mb=4096)
    learned, now = LearnedCapacity(SluiceSettings(capacity_model=champion)), rates(500.0, (1, 2, 1))
    learned.observe(now, 30.0, warm=True)
    more = np.array([[1.0, 2, 1], [1, 8, 2]])
    np.testing.assert_allclose(learned.of(more)[0], [1000.0, 3100.0])


def test_a_missing_metric_is_named(rates: RatesOf) -> None:
    now = rates(500.0, (1, 2, 1))
    without = now.model_copy(
        update={"operators": now.operators | {"map": now.operators["map"].model_copy(update={"busyness": None})}}
    )
    with pytest.raises(InvalidInput, match="busyness, which operator 'map' lacks"):
        LearnedCapacity(SluiceSettings()).observe(without, 30.0, warm=True)


def test_what_waits_inside_counts_and_what_fills_buffers_is_not_taken(rates: RatesOf) -> None:
    learned = LearnedCapacity(SluiceSettings())
    calm = rates(1500.0, (1, 2, 1))
    learned.observe(calm, 30.0, warm=True)
    assert learned.waiting(calm) == 0
    # Two maps take 1900 records/s (0.95 x 2 / 1 ms), so 950 records before them take half a second.
    filling = rates(2500.0, (1, 2, 1), in_flight_records=950.0)
    assert learned.waiting(filling) == pytest.approx(950.0)
    assert learned.waiting(rates(2500.0, (1, 2, 1), lag=100.0, in_flight_records=950.0)) == pytest.approx(1050.0)
    # A task that is not busy all the time has them on their way.
    assert learned.waiting(rates(1500.0, (1, 2, 1), in_flight_records=950.0)) == 0
    # The source reads 2500 records/s for 10 s, of which 6000 lie in buffers: 1900 records/s are taken, as was expected.
    learned.observe(rates(2500.0, (1, 2, 1), in_flight_records=6000.0), 10.0, warm=True)
    assert capacity_of(learned) == pytest.approx(1900.0, rel=0.02)
