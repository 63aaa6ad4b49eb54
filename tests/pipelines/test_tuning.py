"""The stage `tune` leaves out what cannot become a bottleneck, and the plan says so."""

from models.placement.bottleneck import idle_dimensions
from models.placement.problem import DIMENSIONS
from pipelines.plan_store import PlanStore
from pipelines.run import PipelineRun, PlanRequest
from pipelines.tuning import TunedScaling
from pipelines.workspace import Workspace


def test_the_plan_says_what_cannot_be_short(planned_workspace: Workspace, recorded_request: PlanRequest) -> None:
    plan = PlanStore(planned_workspace).get("nexmark-q5", 1)
    run = PipelineRun(recorded_request, planned_workspace)
    tuned = run.output("thresholds.json", TunedScaling)
    idle = idle_dimensions(tuned.scaling.dataflow, run.cluster)
    assert tuned.tuning.left_out == idle
    assert all((getattr(plan.thresholds, d) == 1) == (d in idle) for d in DIMENSIONS)
    said = [reason for reason in plan.reasons if "cannot become a bottleneck" in reason]
    assert len(said) == len(idle) > 0
    assert all(f"{worst:.1%} of its capacity" in reason for worst, reason in zip(idle.values(), said, strict=True))
