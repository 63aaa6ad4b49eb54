"""The scheduled run of `capacity_plan`: it repeats what jobs were planned for, and knows no example job."""

from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowSkipException

from models.plan.content import Plan, PlanContent
from pipelines.inputs.plan_request import PlanRequest
from pipelines.run import PipelineRun
from pipelines.store.pins import release_pin
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace
from sluice_airflow.assets import REPROFILE
from sluice_airflow.tasks.drift import newest_of_each_job

DATA = Path(__file__).parents[1] / "data" / "plans"
RUN = "scheduled__2026-11-21T00:00:00+00:00"
SCHEDULED = SimpleNamespace(run_type="scheduled", run_id=RUN)
NO_EVENTS: Any = defaultdict(list)


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setenv("SLUICE_WORKSPACE", str(tmp_path))
    return Workspace()


def planned(workspace: Workspace, job: str, *rates: float) -> None:
    """Versions of a plan of the job at these rates, the first by the request of its run, the others by replans."""
    run = PipelineRun(PlanRequest(job=job, rate=rates[0], seed=7), workspace)
    run.start()
    plan = Plan.model_validate_json(next(DATA.glob("*.json")).read_text())
    for rate in rates:
        lineage = plan.lineage.model_copy(update={"run": run.run_id})
        changes = {"job": job, "target_rate": rate, "lineage": lineage, "reasons": (f"{rate}",)}
        content = {name: getattr(plan.model_copy(update=changes), name) for name in PlanContent.model_fields}
        PlanStore(workspace).publish(PlanContent.model_construct(**content), "2026-01-01T00:00:00+00:00")


def task(dags: dict[str, DAG], name: str) -> Any:
    return dags["capacity_plan"].get_task(name).python_callable


def asked(dags: dict[str, DAG]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = task(dags, "jobs")(
        dag_run=SCHEDULED, triggering_asset_events=NO_EVENTS, inlet_events=NO_EVENTS
    )
    return found


def test_every_job_with_a_plan_is_planned_at_its_current_rate(dags: dict[str, DAG], workspace: Workspace) -> None:
    planned(workspace, "nexmark-q5", 2_500_000.0, 2_000_000.0)
    planned(workspace, "nexmark-q1", 700_000.0)
    jobs = asked(dags)
    assert [one["job"] for one in jobs] == ["nexmark-q1", "nexmark-q5"]
    sent = {REPROFILE: SimpleNamespace(extra=None)}
    assert task(dags, "ask_again")(jobs, outlet_events=sent) == ["nexmark-q5"]
    assert newest_of_each_job([sent[REPROFILE].extra]) == jobs[1:]
    with pytest.raises(AirflowSkipException, match="no other job"):
        task(dags, "ask_again")(jobs[1:], outlet_events=sent)
    for one, rate in zip(jobs, (700_000.0, 2_000_000.0), strict=True):
        uri = task(dags, "request")([one], params=dict(dags["capacity_plan"].params), dag_run=SCHEDULED)
        run = PipelineRun.open(workspace, uri.removeprefix(f"{workspace.url.rstrip('/')}/"))
        assert (run.job.name, run.request.rate, run.request.seed) == (one["job"], rate, 7)
        assert run.run_id == "scheduled__2026-11-21T00-00-00-00-00", "a name of its own makes it measure again"


def test_without_any_plan_the_scheduled_run_plans_nothing(dags: dict[str, DAG], workspace: Workspace) -> None:
    assert asked(dags) == []
    with pytest.raises(AirflowSkipException, match="no job has a plan"):
        task(dags, "request")([], params=dict(dags["capacity_plan"].params), dag_run=SCHEDULED)
    assert workspace.list("runs") == []


def test_a_pinned_job_is_left_out_until_it_is_released(dags: dict[str, DAG], workspace: Workspace) -> None:
    planned(workspace, "nexmark-q5", 2_500_000.0, 2_000_000.0)
    PlanStore(workspace).rollback("nexmark-q5", 1, "2026-01-02T00:00:00+00:00", by="Ada")
    assert asked(dags) == []
    release_pin(workspace, "nexmark-q5")
    assert [one["job"] for one in asked(dags)] == ["nexmark-q5"]


def test_a_manual_run_takes_its_parameters(dags: dict[str, DAG], workspace: Workspace) -> None:
    planned(workspace, "nexmark-q5", 2_000_000.0)
    manual = SimpleNamespace(run_type="manual", run_id="manual__1")
    assert task(dags, "jobs")(dag_run=manual, triggering_asset_events=NO_EVENTS, inlet_events=NO_EVENTS) == []
    uri = task(dags, "request")([], params={"job": "nexmark-q1", "rate": 1000.0, "run": None}, dag_run=manual)
    assert "/runs/nexmark-q1/" in uri
