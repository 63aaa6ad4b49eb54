"""The capacity learned from intervals."""

from collections.abc import Callable

import numpy as np
import pytest

from capacity_laws import regression
from models.capacity.growth.capacity_model import CapacityModel
from models.errors import InvalidInput
from models.scaling.rates import Rates
from models.scaling.sluice import ChampionModel, SluiceSettings
from models.scaling.sluice.capacity import Learned

RatesOf = Callable[..., Rates]


def share_of(learned: Learned, rates: Rates) -> float:
    demand = learned.demand
    return float(learned.share(demand, demand.tasks[None, :], frozenset(rates.sources))[0])


def test_task_seconds_and_even_capacity(rates: RatesOf) -> None:
    learned, now = Learned(SluiceSettings()), rates(500.0, (1, 2, 1))
    assert not learned.known
    learned.observe(now, 30.0, warm=True)
    demand = learned.demand
    np.testing.assert_allclose(demand.task_seconds, [1e-4, 1e-3, 2e-4])
    # The map binds: two tasks at 1 ms a record.
    assert float(demand.even_capacity(demand.tasks)) == pytest.approx(2000.0)
    np.testing.assert_array_equal(demand.tasks_for(np.array([2000.0, 9000.0])), [[1, 2, 1], [1, 9, 2]])


def test_a_burst_counts_with_what_it_costs_on_average(rates: RatesOf) -> None:
    learned = Learned(SluiceSettings(metrics_memory_s=1e6))
    idle, burst = rates(500.0, (1, 2, 1)), rates(500.0, (1, 2, 1))
    window = burst.operators["map"]
    quiet = idle.model_copy(update={"operators": idle.operators | {"map": window.model_copy(update={"busyness": 0.0})}})
    firing = burst.model_copy(
        update={"operators": burst.operators | {"map": window.model_copy(update={"busyness": 1.0})}}
    )
    for _ in range(10):
        learned.observe(quiet, 30.0, warm=True)
        learned.observe(firing, 30.0, warm=True)
    # 2 tasks busy half of the time at 500 records/s.
    assert learned.task_seconds["map"] == pytest.approx(2 * 0.5 / 500, rel=1e-3)


def test_fresh_code_is_left_out_once_something_is_known(rates: RatesOf) -> None:
    learned = Learned(SluiceSettings())
    slow = rates(500.0, (1, 2, 1))
    cold = slow.model_copy(
        update={"operators": {n: m.model_copy(update={"busyness": 0.9}) for n, m in slow.operators.items()}}
    )
    learned.observe(slow, 30.0, warm=True)
    learned.observe(cold, 30.0, warm=False)
    assert learned.task_seconds["map"] == pytest.approx(1e-3)


def test_what_is_reached_while_records_wait_is_the_attainable_share(rates: RatesOf) -> None:
    learned = Learned(SluiceSettings(attainable_share=1.0))
    waiting = rates(2000.0, (1, 2, 1), read=1000.0, lag=60_000.0)
    for _ in range(40):
        learned.observe(waiting, 30.0, warm=True)
    # What was expected beforehand still counts a little.
    assert share_of(learned, waiting) == pytest.approx(0.5, abs=0.01)


def test_a_utilisation_that_was_sustained_is_attainable(rates: RatesOf) -> None:
    learned, busy = Learned(SluiceSettings(attainable_share=0.7)), rates(1900.0, (1, 2, 1))
    for _ in range(40):
        learned.observe(busy, 30.0, warm=True)
    assert share_of(learned, busy) == pytest.approx(0.95, abs=0.02)


def test_tasks_without_effect_are_not_expected_to_add_capacity(rates: RatesOf) -> None:
    learned = Learned(SluiceSettings())
    few, many = rates(9000.0, (2, 2, 2), read=1700.0, lag=1e6), rates(9000.0, (2, 8, 2), read=1700.0, lag=1e6)
    for window in (few, many):
        for _ in range(20):
            learned.observe(window, 30.0, warm=True)
            learned.forget("map")
    demand = learned.demand
    more = np.array([[2.0, 8, 2], [4.0, 16, 4]])
    taken = learned.share(demand, more, frozenset({"source"})) * demand.even_capacity(more)
    assert taken[0] == pytest.approx(1700, rel=0.1)
    assert taken[1] < 1.4 * taken[0]


def test_the_champion_says_what_more_tasks_bring(rates: RatesOf) -> None:
    # 100 records/s and 300 more for each slot without sources: 1000 with 3 slots, where 2 maps could do 2000.
    champion = ChampionModel(model=CapacityModel.of(regression("linear", 0.0, 300.0, 100.0)), memory_mb=4096)
    learned, now = Learned(SluiceSettings(capacity_model=champion)), rates(500.0, (1, 2, 1))
    learned.observe(now, 30.0, warm=True)
    demand = learned.demand
    more = np.array([[1.0, 2, 1], [1, 8, 2]])
    share = learned.share(demand, more, frozenset({"source"}))
    np.testing.assert_allclose(share * demand.even_capacity(more), [1000.0, 3100.0])


def test_a_missing_metric_is_named(rates: RatesOf) -> None:
    now = rates(500.0, (1, 2, 1))
    without = now.model_copy(
        update={"operators": now.operators | {"map": now.operators["map"].model_copy(update={"busyness": None})}}
    )
    with pytest.raises(InvalidInput, match="busyness, which operator 'map' lacks"):
        Learned(SluiceSettings()).observe(without, 30.0, warm=True)
