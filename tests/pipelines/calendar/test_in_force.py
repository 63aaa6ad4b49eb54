"""Which version was in force when, and its slot hours, for versions with 5, 13 and 5 slots."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from flink.server import word_count_plan
from pipelines.apply.applied import Applied, Outcome
from pipelines.apply.record import record, recorded_of_job
from pipelines.calendar.in_force import PlanInForce, PlansInForce, cost_in_force, plans_in_force, plans_since
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace
from workspaces.operated_job import JOB, OperatedJob

MONDAY = datetime(2026, 11, 23, tzinfo=UTC)
NEXT = MONDAY + timedelta(days=7)


@pytest.fixture
def workspace(planned: OperatedJob) -> Workspace:
    """Version 1 (2 tasks of each operator) of long ago, 2 (6) of Friday at 06:00, 3 (2) of Saturday at 00:00."""
    for tasks, at in ((6, "2026-11-27T06:00:00+00:00"), (2, "2026-11-28T00:00:00+00:00")):
        placement = {"tm1": {"source": 1, "flatmap": tasks, "count": tasks}}
        PlanStore(planned.workspace).publish(word_count_plan(placement, rate=500.0 * tasks), at)
    return planned.workspace


def in_force(workspace: Workspace, begin: datetime = MONDAY, end: datetime = NEXT) -> PlansInForce:
    return plans_in_force(workspace, JOB, plans_since(workspace, JOB, begin), begin, end)


def outline(found: PlansInForce) -> list[tuple[int, float, int]]:
    return [(one.version, one.hours, one.slots) for one in found.periods]


def apply(workspace: Workspace, version: int, at: str, outcome: Outcome = "applied") -> None:
    fields: Any = {"plan_digest": "0", "flink_url": "http://flink:8081", "flink_job": "0", "seconds": 60, "changes": ()}
    how: Any = {"method": "rescale", "placement": "advice", "outcome": outcome, "reason": "a test"}
    record(workspace, Applied(job=JOB, version=version, started_at=f"2026-11-{at}:00+00:00", **fields, **how))


def test_versions_count_from_their_publication_until_one_was_applied(workspace: Workspace) -> None:
    found = in_force(workspace)
    assert not found.are_applied and found.faults == ()
    assert outline(found) == [(1, 102.0, 5), (2, 18.0, 13), (3, 48.0, 5)]
    assert [found.at(MONDAY + timedelta(days=day)) for day in (0, 6)] == [found.periods[0], found.periods[2]]
    apply(workspace, 1, "22T00:00")
    apply(workspace, 2, "27T12:00", "rolled-back")
    apply(workspace, 2, "27T18:00")
    apply(workspace, 2, "27T20:00", "unchanged")
    apply(workspace, 3, "28T12:00", "failed")
    found = in_force(workspace)
    assert found.are_applied and outline(found) == [(1, 114.0, 5), (2, 54.0, 13)]


def test_before_the_first_version_none_is_known(workspace: Workspace) -> None:
    apply(workspace, 2, "27T12:00")
    assert outline(in_force(workspace)) == [(2, 60.0, 13)]
    assert in_force(workspace).at(MONDAY) is None
    assert in_force(workspace, MONDAY - timedelta(days=7), MONDAY).periods == ()


def test_the_cost_is_beside_the_highest_version_all_that_time(workspace: Workspace) -> None:
    cost = cost_in_force(in_force(workspace).periods)
    assert cost is not None
    # 102 h and 48 h of 5 slots, 18 h of 13; 168 h of 13 slots are 2,184.
    assert (cost.slot_hours, cost.peak_slot_hours) == (984.0, 2184.0)
    assert cost.saved_share == pytest.approx(1200 / 2184)
    assert (cost.dollars, cost.peak_dollars, cost.saved_dollars) == (None, None, None)
    assert cost_in_force(()) is None


def priced(version: int, hours: float, rate: float, slots: int, price: str | None) -> PlanInForce:
    end = MONDAY + timedelta(hours=hours)
    return PlanInForce(version, MONDAY, end, rate, slots, None if price is None else Decimal(price))


def test_prices_count_where_all_are_known() -> None:
    periods = [priced(1, 20, 1000.0, 4, "0.5"), priced(2, 4, 3000.0, 12, "1.5")]
    cost = cost_in_force(periods)
    assert cost is not None
    assert (cost.slot_hours, cost.peak_slot_hours) == (128.0, 288.0)
    assert (cost.dollars, cost.peak_dollars, cost.saved_dollars) == (16.0, 36.0, 20.0)
    cost = cost_in_force([*periods, priced(3, 1, 1000.0, 4, None)])
    assert cost is not None and (cost.slot_hours, cost.dollars, cost.peak_dollars) == (132.0, None, None)


def test_a_highest_plan_with_fewer_slots_saves_less_than_nothing() -> None:
    cost = cost_in_force([priced(1, 10, 1000.0, 6, "1"), priced(2, 10, 3000.0, 4, "0.5")])
    assert cost is not None
    assert (cost.slot_hours, cost.peak_slot_hours, cost.saved_dollars) == (100.0, 80.0, -5.0)


def test_only_versions_of_the_time_and_the_one_before_are_read(workspace: Workspace) -> None:
    workspace.write_bytes(f"plans/{JOB}/v000001.json", b"{")
    found = plans_since(workspace, JOB, datetime(2026, 11, 27, 7, tzinfo=UTC))
    assert ([plan.version for plan in found.plans], found.damaged) == ([2, 3], {})
    found = plans_since(workspace, JOB, MONDAY)
    assert [plan.version for plan in found.plans] == [2, 3] and "v000001.json is damaged" in found.damaged[1]


@pytest.mark.parametrize(("damaged", "known"), [(1, [(2, 18.0), (3, 48.0)]), (2, [(3, 48.0)]), (3, [(1, 102.0)])])
def test_a_version_before_a_damaged_one_ended_at_an_unknown_time(
    workspace: Workspace, damaged: int, known: list[tuple[int, float]]
) -> None:
    workspace.write_bytes(f"plans/{JOB}/v{damaged:06d}.json", b"{")
    found = in_force(workspace)
    assert [(version, hours) for version, hours, _ in outline(found)] == known
    assert len(found.faults) == 1


def test_the_time_of_a_damaged_version_is_left_out_and_damaged_records_are_named(workspace: Workspace) -> None:
    apply(workspace, 1, "22T00:00")
    apply(workspace, 3, "28T00:00")
    workspace.write_bytes(f"plans/{JOB}/v000001.json", b"{")
    workspace.write_bytes(f"plans/{JOB}/v000002-applied-000001.json", b"{")
    found = in_force(workspace)
    assert outline(found) == [(3, 48.0, 5)]
    plan, application = found.faults
    assert "v000001.json is damaged" in plan and "v000002-applied-000001.json is damaged" in application
    assert [one.version for one in recorded_of_job(workspace, JOB)[0]] == [1, 3]
