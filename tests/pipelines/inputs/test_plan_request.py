"""How budgets are explored by default, and the names of runs whose requests say nothing of it."""

import pytest
from pydantic import ValidationError

from pipelines.inputs.plan_request import DEFAULT_FLINK, PlanRequest
from testbeds.flink.local.distribution import FLINK, RELEASES


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


def test_the_versions_of_flink_are_those_of_the_testbed() -> None:
    offered = PlanRequest.model_json_schema()["properties"]["flink_version"]
    assert set(offered["enum"]) == set(RELEASES) and offered["default"] == DEFAULT_FLINK == FLINK.line
    stored = PlanRequest(job="nexmark-q1", rate=1.0, testbed="flink").model_dump(mode="json")
    assert "flink_version" not in stored, "its digest names the run"


@pytest.mark.parametrize("testbed", [{"testbed": "simulator"}, {"testbed": "flink", "flink": "http://host:8081"}])
def test_a_version_is_that_of_a_flink_that_sluice_starts(testbed: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="testbed 'flink' without 'flink'"):
        PlanRequest(job="nexmark-q1", rate=1.0, flink_version="2.3", **testbed)


@pytest.mark.parametrize(
    ("asked", "drains"),
    [
        ({}, False),
        ({"feed": "kafka"}, True),
        ({"feed": "kafka", "mst": "injection"}, False),
        ({"feed": "kafka", "mst": "drain"}, True),
        ({"mst": "injection"}, False),
    ],
)
def test_jobs_whose_topics_keep_what_they_do_not_take_are_measured_by_drain(
    asked: dict[str, str], drains: bool
) -> None:
    assert PlanRequest(job="q.sql", rate=1.0, testbed="flink", **asked).drains == drains


def test_a_drain_needs_topics_that_keep_records() -> None:
    with pytest.raises(ValidationError, match="with the feed 'kafka' only"):
        PlanRequest(job="nexmark-q1", rate=1.0, mst="drain")
