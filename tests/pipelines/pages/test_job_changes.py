"""What people may change of a job, for stored versions of a plan and applications of them."""

import pytest

from models.errors import InvalidInput
from models.plan.content import Plan
from models.plan.differences import difference
from pipelines.apply.applied import Applied, Outcome
from pipelines.apply.record import record
from pipelines.pages.operating import operating
from pipelines.store.workspace import Workspace

JOB = "nexmark-q5"


def _apply(workspace: Workspace, version: int, at: str, outcome: Outcome) -> None:
    applied = Applied(
        job=JOB, version=version, plan_digest="0", flink_url="http://flink:8081", flink_job="0", started_at=at,
        seconds=1, method="rescale", placement="advice", outcome=outcome, reason="made for tests", changes=(),
    )  # fmt: skip
    record(workspace, applied)


def test_all_applications_are_listed_and_the_last_that_held_runs_now(
    workspace: Workspace, plans: tuple[Plan, Plan]
) -> None:
    _apply(workspace, 1, "2026-03-01T10:00:00+00:00", "applied")
    _apply(workspace, 2, "2026-03-01T12:00:00+00:00", "rolled-back")
    _apply(workspace, 1, "2026-03-01T11:00:00+00:00", "unchanged")
    found = operating(workspace, JOB)
    assert [(one.version, one.outcome) for one in found.applied] == [
        (2, "rolled-back"), (1, "unchanged"), (1, "applied"),
    ]  # fmt: skip
    assert (found.current.version, found.older, found.outlook.runs_now) == (2, (1,), 1)
    assert found.outlook.changes is not None and found.outlook.changes == difference(plans[0], plans[1])
    assert (found.outlook.changes.task_slots_before, found.outlook.changes.task_slots_after) == (32, 41)


def test_a_damaged_application_is_named_and_hides_no_other(workspace: Workspace) -> None:
    _apply(workspace, 1, "2026-03-01T10:00:00+00:00", "applied")
    workspace.write_bytes(f"plans/{JOB}/v000002-applied-000001.json", b"{")
    found = operating(workspace, JOB)
    assert len(found.applied) == 1 and "v000002-applied-000001.json is damaged" in found.faults[0]


def test_before_any_application_nothing_is_said_to_run(workspace: Workspace) -> None:
    outlook = operating(workspace, JOB).outlook
    assert (outlook.runs_now, outlook.changes) == (None, None)
    with pytest.raises(InvalidInput, match="There is no plan of a job named"):
        operating(workspace, "no-such-job")
