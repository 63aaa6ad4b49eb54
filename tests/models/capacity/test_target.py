"""The least memory whose number of task slots is within 1 % of the fewest."""

import pytest

from models.capacity.surrogates import Surrogate
from models.capacity.target import choose_budget
from models.errors import Infeasible


def test_less_memory_is_taken_where_it_costs_at_most_one_percent_more_slots() -> None:
    # 1000 a slot, 1 a MiB: 110 000 need 99 slots with 11 000 MiB, 100 with 10 000 MiB, 110 with none.
    model = Surrogate(name="linear", memory=1.0, slots=1000.0, intercept=0.0)
    choice = choose_budget(model, [11_000, 10_000, 100], rate=110_000, headroom=1.0, fewest_task_slots=1)
    assert choice.task_slots_by_memory_mb == {100: 110, 10_000: 100, 11_000: 99}
    assert choice.budget.memory_mb == 11_000

    choice = choose_budget(model, [10_900, 10_000], rate=110_000, headroom=1.0, fewest_task_slots=1)
    assert choice.task_slots_by_memory_mb == {10_000: 100, 10_900: 100}
    assert choice.budget.memory_mb == 10_000
    assert "100 with 10,900 MiB" in choice.reason


def test_every_operator_gets_a_slot() -> None:
    model = Surrogate(name="linear", memory=0.0, slots=1000.0, intercept=0.0)
    assert choose_budget(model, [1024], rate=1, headroom=1.0, fewest_task_slots=9).budget.task_slots == 9


def test_a_rate_out_of_reach_is_infeasible() -> None:
    model = Surrogate(name="linear", memory=0.0, slots=0.0, intercept=10.0)
    with pytest.raises(Infeasible, match="never reached"):
        choose_budget(model, [1024], rate=100, headroom=1.1, fewest_task_slots=1)
