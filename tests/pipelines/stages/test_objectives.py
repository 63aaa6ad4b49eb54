"""Plans for objectives, from the published measurements of q5; the numbers of docs/how-to/plan-for-an-objective.md."""

import json
import re
from decimal import Decimal
from pathlib import Path

import pytest

from models.errors import Infeasible, InvalidInput
from models.plan.content import Plan
from pipelines.cli import run as sluice
from pipelines.inputs.plan_request import PlanRequest
from pipelines.planning.replan import replan
from pipelines.run import PipelineRun
from pipelines.stages import run_all
from pipelines.store.plans import PlanStore, report_key
from pipelines.store.workspace import Workspace

DOCS = Path(__file__).parents[3] / "docs"
PAGE = " ".join((DOCS / "how-to" / "plan-for-an-objective.md").read_text().split())
CLOUD = re.search(r"```yaml\n(.*?)```", (DOCS / "how-to" / "plan-for-an-objective.md").read_text(), re.DOTALL)


def planned(workspace: Workspace, request: PlanRequest, folder: Path, objective: str) -> Plan:
    assert CLOUD is not None
    cluster = folder / "cloud.yaml"
    cluster.write_text(CLOUD[1])
    asked = {"rate": 400_000.0, "cluster": str(cluster), "objective": objective, "run": "r"}
    run_all(PipelineRun(PlanRequest.model_validate(request.model_dump() | asked), workspace))
    return PlanStore(workspace).current("nexmark-q5")


@pytest.mark.slow
def test_the_examples_of_the_page(
    tracked_workspace: Workspace, recorded_request: PlanRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = planned(tracked_workspace, recorded_request, tmp_path, "recover 15 min outage in 20 min, at most 12 $/h")
    found = plan.objectives
    assert found is not None and found.binding == "recovery"
    assert [one.kind for one in found.outcomes] == ["rate", "recovery", "price"]
    assert [one.task_slots for one in found.outcomes] == [19, 31, None]
    assert (plan.task_slots, plan.headroom, plan.risk) == (31, 1.75, None)
    # The log law asks for 31 slots, 34 with sources: 9 workers of 4 slots.
    assert plan.resources is not None and plan.resources.price_per_hour == Decimal("2.25")
    recovery = found.outcome("recovery")
    assert recovery is not None and recovery.predicted is not None
    # 900 s of 400,000 records/s, read with what the MST leaves.
    assert recovery.predicted == pytest.approx(900 * 400_000 / (plan.predicted_mst.value - 400_000))
    assert recovery.predicted <= 1200
    for one in found.outcomes:
        assert one.sentence in PAGE
    assert found.title in PAGE

    at = ["--workspace", tracked_workspace.url]
    capsys.readouterr()
    assert sluice(["plans", "show", "nexmark-q5", *at]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert found.title in shown and all(one.sentence in shown for one in found.outcomes)
    assert sluice(["plans", "show", "nexmark-q5", "--json", *at]) == 0
    assert json.loads(capsys.readouterr().out)["objectives"]["binding"] == "recovery"
    report = tracked_workspace.read_bytes(report_key("nexmark-q5", 1)).decode()
    assert "<h2>Sized by the recovery: recover 15 min outage in 20 min</h2>" in report

    # A replan keeps to the objectives of its run.
    more = replan(tracked_workspace, "nexmark-q5", 300_000).plan
    assert more.objectives is not None and more.objectives.asked == found.asked
    assert more.predicted_mst.value >= 1.75 * 300_000

    with pytest.raises(Infeasible) as refused:
        planned(tracked_workspace, recorded_request, tmp_path, "recover 15 min outage in 20 min, at most 2 $/h")
    assert str(refused.value) in PAGE

    plan = planned(tracked_workspace, recorded_request, tmp_path, "recover 2 min outage in 1 h with 1 min restart")
    found = plan.objectives
    assert found is not None and (found.binding, plan.task_slots) == ("rate", 19)
    assert found.title in PAGE and found.outcomes[0].sentence in PAGE
    assert "1.051 x 400,000 records/s, 19 task slots" in found.outcomes[1].sentence


def test_a_lag_objective_needs_a_twin(recorded_request: PlanRequest) -> None:
    with pytest.raises(
        ValueError, match=r"a lag objective is predicted by the job's twin, .* but got 'recorded', 'auto'"
    ):
        PlanRequest.model_validate({**recorded_request.model_dump(), "objective": "lag p99 < 30 s"})


def test_a_price_limit_needs_prices_before_anything_is_measured(
    tracked_workspace: Workspace, recorded_request: PlanRequest
) -> None:
    request = recorded_request.model_copy(update={"objective": "at most 12 $/h"})
    with pytest.raises(InvalidInput, match=r"a price limit needs the price of every worker, but 'tm-1'"):
        PipelineRun(request, tracked_workspace).start()


@pytest.mark.parametrize(
    ("objective", "message"),
    [("fast", "'objective': objectives must be written like"), ("lag p99 < 30 s", "predicted by the job's twin")],
)
def test_the_command_refuses_what_it_cannot_plan_for(
    objective: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["plan", "nexmark-q1", "--rate", "1000", "--model", "log", "--objective", objective]
    assert sluice([*command, "--workspace", str(tmp_path)]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
