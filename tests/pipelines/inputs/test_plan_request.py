"""How budgets are explored by default, and the names of runs whose requests say nothing of it."""

from typing import get_args

import pytest
from pydantic import ValidationError

from pipelines.inputs.plan_request import DEFAULT_BACKEND, DEFAULT_FLINK, PlanRequest
from testbeds.flink.local.distribution import FLINK, RELEASES
from testbeds.flink.local.profile import StateBackend


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


def test_rows_are_those_of_published_measurements() -> None:
    with pytest.raises(
        ValidationError, match=r"'measurement_rows' \(--rows\) must be given for the testbed 'recorded' only"
    ):
        PlanRequest(job="nexmark-q1", rate=1.0, measurement_rows=14)


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


def test_a_state_backend_is_that_of_a_flink_that_sluice_starts() -> None:
    offered = PlanRequest.model_json_schema()["properties"]["state_backend"]
    assert tuple(offered["enum"]) == get_args(StateBackend) and offered["default"] == DEFAULT_BACKEND
    stored = PlanRequest(job="nexmark-q1", rate=1.0, testbed="flink").model_dump(mode="json")
    assert "state_backend" not in stored, "its digest names the run"
    with pytest.raises(ValidationError, match="testbed 'flink' without 'flink'"):
        PlanRequest(job="nexmark-q1", rate=1.0, state_backend="forst")


def test_forst_on_flink_1_is_refused_with_the_version_to_set() -> None:
    PlanRequest(job="nexmark-q1", rate=1.0, testbed="flink", flink_version="2.3", state_backend="forst")
    with pytest.raises(ValidationError, match=r"needs Flink 2\.3, but 'flink_version' is '1\.20'; set it to '2\.3'"):
        PlanRequest(job="nexmark-q1", rate=1.0, testbed="flink", state_backend="forst")
