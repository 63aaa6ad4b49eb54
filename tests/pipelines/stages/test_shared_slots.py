"""A job whose file states vertices: slots of the widest vertex of each group, and which tasks share them."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError
from rich.console import Console

from models.plan.content import Plan
from models.plan.slots import slots_in, tasks_in
from models.planning.parallelism import Scaling
from pipelines.inputs.plan_request import PlanRequest
from pipelines.planning.replan import replan
from pipelines.run import PipelineRun
from pipelines.stages import run_all
from pipelines.stages.scale import SCALING_FILE
from pipelines.store.plans import PlanStore, report_key
from pipelines.store.workspace import Workspace
from pipelines.terminal.plan_tables import plan_view

ROOT = Path(__file__).parents[3]
CHAINS = [
    ["source", "bids"],
    ["count-window", "counts", "counts-for-max"],
    ["max", "maxima"],
    ["join", "hot-items", "sink"],
]


@pytest.fixture(scope="module")
def run(
    tmp_path_factory: pytest.TempPathFactory,
    make_tracked_workspace: Callable[[Path], Workspace],
    recorded_request: PlanRequest,
) -> PipelineRun:
    """A run of q5 as Flink deploys it: four chains, all in the default group but the last."""
    document = yaml.safe_load((ROOT / "jobs" / "nexmark-q5.yaml").read_text())
    for edge in document["edges"]:
        edge["partitioning"] = edge["partitioning"].replace("rebalance", "forward")
    document["vertices"] = [{"operators": chain} for chain in CHAINS]
    document["vertices"][3]["slot_sharing_group"] = "out"
    document.pop("sql")
    folder = tmp_path_factory.mktemp("shared")
    (folder / "nexmark-q5.yaml").write_text(yaml.safe_dump(document))
    changed = {"job": str(folder / "nexmark-q5.yaml"), "memory_mb": 16384.0}
    made = PipelineRun(recorded_request.model_copy(update=changed), make_tracked_workspace(folder / "workspace"))
    run_all(made)
    return made


@pytest.fixture(scope="module")
def plan(run: PipelineRun) -> Plan:
    return PlanStore(run.workspace).get("nexmark-q5", 1)


def test_a_plan_takes_the_slots_of_the_widest_vertex_of_each_group(run: PipelineRun, plan: Plan) -> None:
    tasks = {v.operators[0]: v.parallelism for v in plan.vertices}
    assert [list(v.operators) for v in plan.vertices] == CHAINS
    assert all(plan.parallelism[name] == v.parallelism for v in plan.vertices for name in v.operators)
    widest = max(tasks[head] for head in ("source", "count-window", "max"))
    assert plan.total_slots == widest + tasks["join"] == slots_in(plan.slots) < sum(tasks.values())
    assert run.output(SCALING_FILE, Scaling).slots == plan.total_slots
    assert {w: tasks_in(bundles) for w, bundles in plan.slots.items()} == {
        w: {name: n for name, n in placed.items() if name in tasks} for w, placed in plan.placement.items()
    }
    # count-window and max keep state and may share a slot; join, with state too, has slots of its own.
    assert plan.memory_mb == 2 * run.output(SCALING_FILE, Scaling).budget.memory_mb
    assert any("2 operators with state may share a slot" in reason for reason in plan.reasons)
    assert plan.bound_by is not None


def test_the_plan_is_shown_with_its_vertices_and_slots(plan: Plan) -> None:
    console = Console(file=io.StringIO(), width=200)
    console.print(plan_view(plan))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert f"{plan.total_slots} slots as the vertices share them" in shown
    assert "max -> maxima" in shown and "slots each" in shown


def test_the_report_states_the_vertices(run: PipelineRun, plan: Plan) -> None:
    report = run.workspace.read_bytes(report_key("nexmark-q5", plan.version)).decode()
    assert "<h2>Vertices</h2>" in report and "max -&gt; maxima" in report
    assert f"{plan.task_slots} ({plan.total_slots})" in report and "slots as shared" in report


def test_a_replan_moves_slots_and_not_tasks(run: PipelineRun, plan: Plan) -> None:
    made = replan(run.workspace, "nexmark-q5", 1.1 * plan.target_rate).plan
    assert made.version == 2 and slots_in(made.slots) == made.total_slots
    assert any("slots start where version 1 does not run them" in reason for reason in made.reasons)


def test_a_plan_whose_slots_contradict_its_tasks_is_refused(plan: Plan) -> None:
    whole = plan.model_dump(mode="json")
    with pytest.raises(ValidationError, match="total_slots must be the slots of the widest vertex"):
        Plan.model_validate(whole | {"total_slots": plan.total_slots + 1})
    with pytest.raises(ValidationError, match="must be given together"):
        Plan.model_validate(whole | {"slots": {}})
    worker = next(iter(plan.slots))
    with pytest.raises(ValidationError):
        Plan.model_validate(whole | {"slots": {w: b for w, b in whole["slots"].items() if w != worker}})
    with pytest.raises(ValidationError, match="the vertices must have each operator once"):
        Plan.model_validate(whole | {"vertices": whole["vertices"][1:]})
