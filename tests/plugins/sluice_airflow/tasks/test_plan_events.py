"""Events of plans, which anybody may send through Airflow."""

import pytest

from models.errors import InvalidInput
from sluice_airflow.tasks.plan_events import plans_of


def test_an_event_without_a_plan_does_not_stop_the_plans_of_others() -> None:
    events = [{}, {"uri": "file:///w/plans/q5/v000003.json"}, {"uri": 7}]
    assert plans_of(events) == [("q5", 3)]
    assert plans_of([]) == []
    with pytest.raises(InvalidInput, match=r"must carry its URI, .* but got \{\}"):
        plans_of([{}])
