"""Requests for new measurements: their reason, and that they are made once."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from models.plan.content import Plan, PlanContent
from models.planning.drift import BUSY, CPU, MST, STATE, DriftTest
from pipelines.drift.record import Busyness, DriftReport, reason_of
from pipelines.drift.reports import latest_drift
from pipelines.drift.request import request_reprofile
from pipelines.inputs.parsing.files import read_as
from pipelines.inputs.plan_request import PlanRequest
from pipelines.run import PipelineRun
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace

JOB = "nexmark-q5"
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def compared(operator: str | None, quantity: str, expected: float, production: float) -> DriftTest:
    """With an interval of 10 % on either side."""
    return DriftTest(
        operator=operator,
        quantity=quantity,
        expected=expected,
        low=0.9 * expected,
        high=1.1 * expected,
        production=production,
        runs=8,
        windows=3,
    )


CPU_DRIFT = compared("count-window", CPU, 20e-6, 26e-6)


def report(run: str, version: int = 1, comparisons: tuple[DriftTest, ...] = (CPU_DRIFT,)) -> DriftReport:
    return DriftReport(
        job=JOB,
        version=version,
        created_at="2026-11-21T11:59:00+00:00",
        plan_version=1,
        run=run,
        source_rate=1000.0,
        samples={},
        drifted=any(c.drifted for c in comparisons),
        reason=reason_of(comparisons, ()),
        comparisons=comparisons,
        busyness=(),
    )


@pytest.fixture
def workspace(tmp_path: Path, root: Path) -> Workspace:
    """Has a plan, and the requests of three runs that it could come from."""
    made = Workspace(tmp_path / "workspace")
    for run in ("first", "second", "third"):
        PipelineRun(PlanRequest(job=JOB, rate=1e6, run=run), made).start()
    plan_from(made, root, "first")
    return made


def plan_from(workspace: Workspace, root: Path, run: str) -> None:
    plan = read_as(root / "tests/data/plans/nexmark-q5-v1.json", Plan)
    content = {name: getattr(plan, name) for name in PlanContent.model_fields}
    content["lineage"] = plan.lineage.model_copy(update={"run": run})
    PlanStore(workspace).publish(PlanContent(**content), "2026-11-21T00:00:00+00:00")


def test_reasons_name_operator_quantity_and_numbers_the_largest_change_first() -> None:
    comparisons = (
        compared("map", STATE, 100.0, 85.0),
        compared("join", CPU, 1.0, 1.05),
        CPU_DRIFT,
        compared("count-window", BUSY, 20e-6, 25e-6),
        compared(None, MST, 1e6, 8e5),
    )
    busy = Busyness(operator="count-window", production=0.5, expected=0.4, low=0.36, high=0.44)
    assert reason_of(comparisons, (busy,)).split("; ") == [
        "count-window: CPU time per record is 26 us (+30%), and 18 us to 22 us was expected",
        "count-window: useful time per record is 25 us (+25%), and 18 us to 22 us was expected (tasks are busy 50.0%, and "
        "36.0% to 44.0% was expected)",
        "the plan's predicted MST, corrected by production, is 800,000 records/s (-20%), and 900,000 "
        "records/s to 1,100,000 records/s was expected",
        "map: state access per record is 85 bytes (-15%), and 90 bytes to 110 bytes was expected",
    ]
    assert reason_of(comparisons[1:2], ()) == "all 1 comparisons of 1 operators are within the measured range"
    many = tuple(compared(f"o{i}", CPU, 1.0, 2.0) for i in range(9))
    assert reason_of(many, ()).endswith("; and 4 more")
    assert "CPU time per record is 1 s (where none was measured)" in reason_of((compared("map", CPU, 0.0, 1.0),), ())


def test_without_drift_nothing_is_asked_for(workspace: Workspace) -> None:
    quiet = report("first", comparisons=(compared("map", CPU, 1.0, 1.0),))
    assert request_reprofile(workspace, quiet, NOON) is None
    assert latest_drift(workspace, JOB) is None


def test_new_measurements_are_asked_for_once_for_each_plan_s_measurements(workspace: Workspace, root: Path) -> None:
    asked = request_reprofile(workspace, report("first"), NOON)
    assert asked is not None
    assert asked.request == workspace.uri(f"runs/{JOB}/first/request.json")
    assert (asked.rate, asked.reason) == (PlanStore(workspace).current(JOB).target_rate, report("first").reason)
    assert request_reprofile(workspace, report("first"), NOON + timedelta(days=9)) == asked, "a retry asks the same"
    later = NOON + timedelta(days=9)
    assert request_reprofile(workspace, report("first", version=2), later) is None, "it was asked for already"

    plan_from(workspace, root, "second")
    other = report("second", version=3, comparisons=(compared("map", CPU, 1.0, 2.0),))
    soon = NOON + timedelta(seconds=86399)
    assert request_reprofile(workspace, other, soon) is None, "within the cool-down of a day"
    assert request_reprofile(workspace, other, NOON + timedelta(days=1)) is not None


def test_drift_that_new_measurements_do_not_lift_is_measured_ever_less_often(workspace: Workspace, root: Path) -> None:
    """A day apart at first; where nothing else has drifted since, 2, 4, 8 ... days."""
    assert request_reprofile(workspace, report("first"), NOON) is not None
    plan_from(workspace, root, "second")
    again = report("second", version=2)
    assert request_reprofile(workspace, again, NOON + timedelta(days=1.9)) is None
    assert request_reprofile(workspace, again, NOON + timedelta(days=2)) is not None
    plan_from(workspace, root, "third")
    still = report("third", version=3)
    assert request_reprofile(workspace, still, NOON + timedelta(days=2 + 3.9)) is None
    more = report("third", version=4, comparisons=(CPU_DRIFT, compared("map", CPU, 1.0, 2.0)))
    assert request_reprofile(workspace, more, NOON + timedelta(days=2 + 1)) is not None, "more has drifted"
