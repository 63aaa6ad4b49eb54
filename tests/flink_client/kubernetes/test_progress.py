"""How far the operator is, from what the resource reports."""

from dataclasses import replace
from typing import Any

import pytest

from flink_client.kubernetes.progress import progress
from on_kubernetes.deployed_resource import document, settled

WRITTEN = 2
"""Generation of the resource by the change."""


def state(generation: int = 2, error_before: str | None = None, **status: Any) -> str:
    resource = settled(document(), generation=generation, **status)
    return progress(resource, WRITTEN, error_before).state


def test_a_stable_resource_with_a_running_job_is_done() -> None:
    assert state() == "stable"
    assert state(lifecycleState="DEPLOYED") == "running"
    assert state(lifecycleState="UPGRADING") == "waiting"
    assert state(jobStatus={"state": "CREATED"}) == "waiting"


def test_stable_by_the_former_spec_is_not_done() -> None:
    before = replace(settled(document(), generation=1), generation=2)
    assert progress(before, WRITTEN, None).state == "waiting"
    assert state(observedGeneration=1) == "waiting", "what newer operators report counts"
    assert state(reconciliationStatus={"lastReconciledSpec": "{}"}) == "waiting"


@pytest.mark.parametrize("lifecycle", ["FAILED", "ROLLING_BACK", "ROLLED_BACK"])
def test_a_failed_change_has_failed(lifecycle: str) -> None:
    assert state(lifecycleState=lifecycle) == "failed"
    assert state(jobStatus={"state": "FAILED"}) == "failed"


def test_an_error_counts_if_it_is_new() -> None:
    reported = '{"type": "ReconciliationException", "message": "no such class"}'
    assert state(error=reported) == "failed"
    assert state(error=reported, error_before="no such class") == "stable"
    assert state(error="plain words") == "failed"


def test_a_later_change_by_somebody_else_overtakes_this_one() -> None:
    assert state(generation=3) == "overtaken"
