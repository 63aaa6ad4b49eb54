"""What production took joins the model that a run plans with."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from models.plan.content import Plan, PlanContent
from models.resources.planned import PlanResources
from pipelines.drift.record import DriftReport
from pipelines.drift.reports import drift_key
from pipelines.inputs.parsing.files import read_as
from pipelines.planning.gathering import gather_model
from pipelines.registry.planning_model import planning_model
from pipelines.run import PipelineRun
from pipelines.stages.review import review
from pipelines.stages.select import select
from pipelines.store.digests import digest
from pipelines.store.plans import PlanStore


@pytest.fixture
def run(explored: Callable[..., PipelineRun]) -> PipelineRun:
    """With a model from 14 published observations, and one from 12."""
    made = explored("first")
    select(made)
    review(made)
    return made


def deployed(run: PipelineRun, root: Path, job_digest: str | None = None, **changes: Any) -> Plan:
    """A plan of the run's job."""
    plan = read_as(root / "tests/data/plans/nexmark-q5-v1.json", Plan)
    content = {name: getattr(plan, name) for name in PlanContent.model_fields}
    content["lineage"] = plan.lineage.model_copy(update={"digests": {"job": job_digest or digest(run.job)}})
    return PlanStore(run.workspace).publish(PlanContent(**content | changes), "2026-11-23T00:00:00+00:00")


def report(run: PipelineRun, plan: Plan, version: int = 1, **changes: Any) -> None:
    kept = DriftReport(
        job=plan.job,
        version=version,
        created_at="2026-11-23T12:00:00+00:00",
        plan_version=plan.version,
        run="first",
        source_rate=2.4e6,
        as_planned=True,
        samples={},
        drifted=False,
        reason="nothing has changed",
        comparisons=(),
        busyness=(),
    )
    run.workspace.write(drift_key(plan.job, version), kept.model_copy(update=changes))


def test_the_highest_rate_of_a_plan_counts(run: PipelineRun, root: Path) -> None:
    plan = deployed(run, root)
    report(run, plan, 1)
    report(run, plan, 2, source_rate=2.1e6)
    model, before = gather_model(run), planning_model(run)
    (taken,) = model.sustained
    assert (taken.rate, taken.task_slots, taken.memory_mb) == (2.4e6, plan.task_slots, plan.memory_mb)
    budget = (plan.memory_mb, plan.task_slots, 2.4e6)
    assert model.capacity.sustains(*budget)[0] > before.capacity.sustains(*budget)[0]
    assert model.uri == before.uri
    assert model.reason == (
        f"{before.reason}, and with what production took: 2,400,000 records/s with {plan.task_slots:,} slots (plan 1)"
    )


def test_a_plan_on_workers_of_fewer_slots_counts_with_the_memory_that_was_measured(
    run: PipelineRun, root: Path
) -> None:
    """16 slots were measured in a TaskManager; one of the picked kind has 4: 4 x (17,344 - 1,280) + 1,280 MiB."""
    small = PlanResources(
        task_managers=9,
        kind="small",
        slots=4,
        cores=None,
        memory_mb=17344,
        total_cores=None,
        total_memory_mb=9 * 17344,
        price=None,
    )
    report(run, deployed(run, root, memory_mb=17344, resources=small))
    (taken,) = gather_model(run).sustained
    assert taken.memory_mb == 65536


@pytest.mark.parametrize("changes", [{"as_planned": False}, {"drifted": True}, {"source_rate": 0.0}])
def test_production_that_is_not_the_plan_measured_does_not_count(
    run: PipelineRun, root: Path, changes: dict[str, Any]
) -> None:
    report(run, deployed(run, root), **changes)
    assert gather_model(run) == planning_model(run)


def test_a_plan_of_another_job_file_does_not_count(run: PipelineRun, root: Path) -> None:
    report(run, deployed(run, root, job_digest="0" * 64))
    assert gather_model(run) == planning_model(run)


def test_a_damaged_report_leaves_production_out(run: PipelineRun, root: Path) -> None:
    report(run, deployed(run, root))
    run.workspace.write_bytes(drift_key("nexmark-q5", 2), b"{")
    assert gather_model(run) == planning_model(run)
