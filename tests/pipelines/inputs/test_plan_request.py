"""How budgets are explored by default, and the names of runs whose requests say nothing of it."""

import pytest

from pipelines.inputs.plan_request import PlanRequest


@pytest.mark.parametrize(
    ("asked", "for_target"),
    [
        ({}, True),
        ({"model": "power"}, True),
        ({"model": "log"}, False),
        ({"model": "log", "exploration": "target"}, True),
        ({"exploration": "streambed"}, False),
    ],
)
def test_budgets_are_chosen_for_the_target_rate_but_for_the_regressions_of_streambed(
    asked: dict[str, str], for_target: bool
) -> None:
    assert PlanRequest(job="nexmark-q1", rate=1.0, **asked).explores_for_target == for_target


def test_a_request_that_does_not_name_an_exploration_is_stored_without_one() -> None:
    stored = PlanRequest(job="nexmark-q1", rate=1.0).model_dump(mode="json")
    assert "exploration" not in stored, "its digest names the run"
    assert PlanRequest.model_validate(stored).explores_for_target
