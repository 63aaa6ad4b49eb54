"""A plan does not contradict itself."""

from typing import Any

import pytest
from pydantic import ValidationError

from models.plan.content import Plan
from models.plan.parts import Interval


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"placement": {"tm-1": {"source": 2}}}, "the placement must hold every task once"),
        ({"total_slots": 35}, "total_slots must be the number of tasks, 34, but got 35"),
        ({"task_slots": 30}, "task_slots must leave out the tasks of the sources: 34 - 2 = 32, but got 30"),
        ({"source_rates": {"sauce": 1.0}}, "'sauce' is none of them"),
        ({"slots_per_worker": 3}, "a worker has 3 slots, but the placement puts 4 tasks on one"),
        ({"headroom": 0.9}, "greater than or equal to 1"),
        ({"job": "../q5"}, "String should match pattern"),
        ({"replicas": 3}, "Extra inputs are not permitted"),
    ],
)
def test_a_plan_that_contradicts_itself_is_refused(first: Plan, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Plan.model_validate(first.model_dump(mode="json") | changes)


def test_an_operator_cannot_stand_twice(first: Plan) -> None:
    twice = [o.model_dump() for o in (*first.operators, first.operators[2])]
    with pytest.raises(ValidationError, match="'sink' appears 2 times"):
        Plan.model_validate(first.model_dump(mode="json") | {"operators": twice})


def test_an_interval_holds_its_value() -> None:
    with pytest.raises(ValidationError, match="low <= value <= high"):
        Interval(value=5, low=6, high=7)
