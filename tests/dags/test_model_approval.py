"""The task that asks a person about a model: when it asks, what it shows, and what becomes of the answer."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from airflow.providers.standard.operators import hitl
from airflow.sdk.exceptions import TaskAwaitingInput

from answering.hearing import heard
from models.errors import SluiceError
from pipelines.inputs.plan_request import PlanRequest
from pipelines.registry.models import PENDING, NotReviewed, list_versions
from pipelines.registry.planning_model import planning_model
from pipelines.registry.review.decision import review_page
from pipelines.registry.review.pages import PAGES_VARIABLE
from pipelines.registry.tracking import TRACKING_VARIABLE, open_tracking
from pipelines.run import PipelineRun
from pipelines.stages import run_stage
from pipelines.stages.review import reviewed_version
from pipelines.store.workspace import Workspace
from sluice_airflow import reporting
from sluice_airflow.approvals.model import ModelApproval, _body
from sluice_airflow.assets import MODEL
from workspaces.transcript import Transcript

pytestmark = pytest.mark.slow

JOB = "nexmark-q5"


@pytest.fixture
def waiting(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], PipelineRun]:
    """Makes runs whose model waits for a person, from so many published measurements."""
    monkeypatch.delenv(TRACKING_VARIABLE, raising=False)
    document = yaml.safe_load((root / "jobs" / f"{JOB}.yaml").read_text())
    path = tmp_path / f"{JOB}.yaml"
    path.write_text(yaml.safe_dump(document | {"sql": None, "operations": {"review": {"mode": "person"}}}))
    workspace = Workspace(tmp_path / "workspace")

    def make(rows: int) -> PipelineRun:
        measurements = str(root / "tests/data/streambed/search_q5.csv")
        request = PlanRequest(
            job=str(path), rate=2.5e6, testbed="recorded", measurements=measurements, measurement_rows=rows
        )
        run = PipelineRun(request, workspace)
        run.start()
        for stage in ("explore", "check", "select", "review"):
            run_stage(stage, run)
        return run

    return make


def approval(run: PipelineRun) -> ModelApproval:
    return ModelApproval(
        task_id="approve",
        request_uri=run.workspace.uri(run.key("request.json")),
        review_uri=run.workspace.uri(run.key("review.json")),
    )


def answered(run: PipelineRun, option: str, reason: str) -> dict[str, Any]:
    """Send a person's answer to the task of a run; what the task returned, and its asset event."""
    context: dict[str, Any] = {
        "outlet_events": {MODEL: SimpleNamespace(extra=None)},
        "task_instance": SimpleNamespace(id="t"),
    }
    event = {
        "chosen_options": [option],
        "params_input": {"reason": reason},
        "responded_at": datetime.now(UTC),
        "responded_by_user": {"id": "7", "name": "ada"},
    }
    returned = approval(run).execute_complete(context, event)
    return {"returned": returned, "event": context["outlet_events"][MODEL].extra}


def test_people_decide_and_plans_follow(
    waiting: Callable[[int], PipelineRun], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = waiting(19)
    review_uri = first.workspace.uri(first.key("review.json"))
    assert answered(first, "Approve", "the curve looks right") == {
        "returned": review_uri,
        "event": {"request": first.workspace.uri(first.key("request.json")), "uri": review_uri},
    }
    assert planning_model(first).uri == "models:/nexmark-q5/1"

    second = waiting(14)
    monkeypatch.setenv(PAGES_VARIABLE, "http://mlflow.example:5000/")
    shown = _body(second, reviewed_version(second))
    assert re.search(
        r"\[Challenger and champion side by side in MLflow\]\(http://mlflow\.example:5000/#/experiments/", shown
    )
    assert "[models:/nexmark-q5/2 in MLflow](http://mlflow.example:5000/#/models/nexmark-q5/versions/2)" in shown
    assert re.search(r"asks for [\d,]+ task slots with the challenger, and for [\d,]+ with the champion", shown)

    asked: list[str] = []
    monkeypatch.setattr(hitl, "upsert_hitl_detail", lambda **question: asked.append(question["subject"]))
    with heard(tmp_path, monkeypatch) as notices, pytest.raises(TaskAwaitingInput):
        approval(second).execute({"task_instance": SimpleNamespace(id="t")})
    assert notices == [
        {"kind": "model-waiting", "text": f"a capacity model of {JOB} waits for its review: models:/nexmark-q5/2"}
    ]
    asked.clear()
    for blank in ("", " \n"):
        with pytest.raises(TaskAwaitingInput):
            answered(second, "Approve", blank)
        assert reviewed_version(second).review == PENDING, "an answer without a reason decides nothing"
    assert len(asked) == 2, "each time the question is asked again"
    answered(second, "Reject", "bends too early")
    assert planning_model(second).uri == "models:/nexmark-q5/1", "the champion stays, and the plan is made with it"
    newest, before = list_versions(open_tracking(second.workspace), JOB)
    assert (newest.review, newest.reviewed_by, newest.review_reason) == ("rejected", "ada", "bends too early")
    assert (before.review, before.reviewed_by, before.review_reason) == ("approved", "ada", "the curve looks right")
    assert "(http://mlflow.example:5000/#/experiments/" in review_page(second.workspace, newest)

    context: dict[str, Any] = {"outlet_events": {MODEL: SimpleNamespace(extra=None)}}
    assert approval(second).execute(context).endswith("/review.json"), "the question is not asked twice"
    answered(second, "Approve", "too late")
    assert reviewed_version(second).review == "rejected", "what was decided elsewhere meanwhile counts"


def test_an_embedded_airflow_cannot_ask_and_names_the_command_that_decides(
    waiting: Callable[[int], PipelineRun],
) -> None:
    run, terminal = waiting(14), Transcript()
    with reporting.shown_on(terminal), pytest.raises(NotReviewed, match="sluice models approve nexmark-q5@1 --reason"):
        approval(run).execute({})
    assert terminal.said[-1].startswith("   failed after ")
    with pytest.raises(SluiceError, match="the model was not reviewed within 7 days"):
        approval(run).execute_complete({}, {"error": "timeout", "error_type": "timeout"})
