"""What a review compares."""

from collections.abc import Callable
from pathlib import Path

from models.plan.content import Plan, PlanContent
from models.resources.planned import PlanResources
from pipelines.inputs.parsing.files import read_as
from pipelines.registry.review.record import ReviewRecord
from pipelines.run import PipelineRun
from pipelines.stages.review import review
from pipelines.stages.select import select
from pipelines.store.plans import PlanStore


def test_slots_are_compared_at_the_memory_of_the_plan_in_force_as_it_was_measured(
    explored: Callable[..., PipelineRun], root: Path
) -> None:
    """16 slots were measured in a TaskManager; a worker of the plan has 4: 4 x (17,344 - 1,280) + 1,280 MiB."""
    run = explored("first")
    plan = read_as(root / "tests/data/plans/nexmark-q5-v1.json", Plan)
    workers = {"task_managers": len(plan.placement), "kind": "small", "slots": 4, "cores": None, "memory_mb": 17344}
    in_all = {"total_cores": None, "total_memory_mb": 17344 * len(plan.placement), "price": None}
    content = {name: getattr(plan, name) for name in PlanContent.model_fields}
    content |= {"memory_mb": 17344, "resources": PlanResources.model_validate(workers | in_all)}
    PlanStore(run.workspace).publish(PlanContent(**content), "2026-11-23T00:00:00+00:00")
    select(run)
    review(run)
    slots = run.output("review.json", ReviewRecord).slots
    assert slots is not None
    assert (slots.rate, slots.memory_mb) == (plan.target_rate, 65536)
