"""The stages that decide: one model from `size` to `publish`, and every output names the digests of its inputs."""

from collections.abc import Callable

import pytest

from models.placement.problem import DIMENSIONS, idle_dimensions
from models.planning.assembling import TunedPlacement
from models.planning.budget import Sizing, shortfall
from models.planning.parallelism import Scaling
from pipelines.inputs.plan_request import PlanRequest
from pipelines.registry.review.decision import decide
from pipelines.registry.tracking import open_tracking
from pipelines.run import PipelineRun
from pipelines.stages import run_stage
from pipelines.stages.place import PLACEMENT_FILE
from pipelines.stages.scale import SCALING_FILE
from pipelines.stages.size import SIZING_FILE
from pipelines.store.digests import digest
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Artifact, Workspace

ExploredRun = Callable[..., PipelineRun]
RECORDED = {"testbed": "recorded", "measurements": "search.csv"}


def run_stages(run: PipelineRun, *names: str) -> None:
    for name in names:
        run_stage(name, run)


@pytest.fixture
def between(explored: ExploredRun, monkeypatch: pytest.MonkeyPatch) -> PipelineRun:
    """A run that was placed with model 1 as the champion, which became model 2 before `publish`."""
    monkeypatch.setattr(PipelineRun, "measurements_digest", "search")
    planned = explored("first", **RECORDED)
    run_stages(planned, "select", "review", "size", "scale", "place")
    other = explored("second", observations=12, **RECORDED)
    run_stages(other, "select", "review")
    decide(other.workspace, "nexmark-q5", 2, approve=True, by="Ada", reason="newer")
    return planned


def test_the_version_that_sized_the_plan_is_the_one_published(between: PipelineRun) -> None:
    run_stage("publish", between)
    plan = PlanStore(between.workspace).current("nexmark-q5")
    assert plan.lineage.model_uri == "models:/nexmark-q5/1"
    assert any("the champion models:/nexmark-q5/1" in reason for reason in plan.reasons)
    client = open_tracking(between.workspace).client
    logged = {
        number: [a.path for a in client.list_artifacts(client.get_model_version("nexmark-q5", number).run_id, "plans")]
        for number in ("1", "2")
    }
    assert logged == {"1": ["plans/v000001.html"], "2": []}


def test_the_report_draws_the_curve_of_the_model_that_sized_the_plan(
    between: PipelineRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = []
    from pipelines.stages import publish

    real = publish.figures
    monkeypatch.setattr(publish, "figures", lambda subject: drawn.append(subject.capacity) or real(subject))
    run_stage("publish", between)
    sizing = between.output(SIZING_FILE, Sizing)
    assert drawn == [sizing.model.capacity]
    assert sizing.model.uri == "models:/nexmark-q5/1"


def test_outputs_and_lineage_name_the_digests_of_their_inputs(
    planned_workspace: Workspace, recorded_request: PlanRequest
) -> None:
    run = PipelineRun(recorded_request, planned_workspace)
    sizing, scaling = run.output(SIZING_FILE, Sizing), run.output(SCALING_FILE, Scaling)
    placement = run.output(PLACEMENT_FILE, TunedPlacement)
    inputs = {
        name: planned_workspace.read(run.key(name), Artifact).inputs
        for name in (SIZING_FILE, SCALING_FILE, PLACEMENT_FILE)
    }
    assert inputs[SIZING_FILE].keys() == {"exploration", "selection", "model", "request", "cluster"}
    assert inputs[SCALING_FILE]["sizing"] == digest(sizing)
    assert inputs[PLACEMENT_FILE]["scaling"] == digest(scaling)
    named = PlanStore(planned_workspace).get("nexmark-q5", 1).lineage.digests
    assert (named["sizing"], named["scaling"], named["placement"]) == (
        digest(sizing),
        digest(scaling),
        digest(placement),
    )
    assert {"job", "cluster", "request", "exploration", "selection"} <= named.keys()


def test_headroom_is_applied_once(planned_workspace: Workspace, recorded_request: PlanRequest) -> None:
    run = PipelineRun(recorded_request, planned_workspace)
    sizing, scaling = run.output(SIZING_FILE, Sizing), run.output(SCALING_FILE, Scaling)
    assert sizing.planned_rate == 1.1 * recorded_request.rate
    assert sum(scaling.records_in_per_s[s.name] for s in run.job.sources) == pytest.approx(recorded_request.rate)
    assert sizing.budget == scaling.budget


def test_the_plan_says_what_would_narrow_its_slots(between: PipelineRun) -> None:
    run_stage("publish", between)
    helpful = between.output(SIZING_FILE, Sizing).would_help
    assert helpful is not None and 1 < helpful.ratio_after < helpful.ratio_now
    assert helpful.text in PlanStore(between.workspace).current("nexmark-q5").reasons


def test_the_plan_says_with_which_probability_it_falls_short(between: PipelineRun) -> None:
    """By default one in ten plans may, and so the low end of a 95 % interval is below the target."""
    run_stage("publish", between)
    plan = PlanStore(between.workspace).current("nexmark-q5")
    assert plan.predicted_mst.low < plan.target_rate
    (said,) = (reason for reason in plan.reasons if "interval of the predicted MST begins at" in reason)
    sizing, scaling = between.output(SIZING_FILE, Sizing), between.output(SCALING_FILE, Scaling)
    assert f"begins at {plan.predicted_mst.low:,.0f} records/s, below the target of 2,500,000" in said
    short = 1 - sizing.model.capacity.sustains(scaling.budget.memory_mb, scaling.budget.task_slots, plan.target_rate)[0]
    assert f"with a probability of {short:.1%}" in said and 0.025 < short <= 0.1
    sure = shortfall(sizing.model, scaling.budget, plan.predicted_mst.low)
    assert sure is None


def test_a_law_that_was_asked_for_is_not_narrowed(planned_workspace: Workspace, recorded_request: PlanRequest) -> None:
    assert PipelineRun(recorded_request, planned_workspace).output(SIZING_FILE, Sizing).would_help is None


def test_the_plan_says_what_cannot_be_short(planned_workspace: Workspace, recorded_request: PlanRequest) -> None:
    plan = PlanStore(planned_workspace).get("nexmark-q5", 1)
    run = PipelineRun(recorded_request, planned_workspace)
    tuning = run.output(PLACEMENT_FILE, TunedPlacement).tuning
    idle = idle_dimensions(run.output(SCALING_FILE, Scaling).dataflow, run.cluster)
    assert tuning.left_out == idle
    assert all((getattr(plan.thresholds, d) == 1) == (d in idle) for d in DIMENSIONS)
    said = [reason for reason in plan.reasons if "cannot become a bottleneck" in reason]
    assert len(said) == len(idle) > 0
    assert all(f"{worst:.1%} of its capacity" in reason for worst, reason in zip(idle.values(), said, strict=True))
