"""The answers of the routes: plans, and messages for those that cannot be shown."""

import html
from pathlib import Path
from typing import Any

import httpx
import pytest

from models.plan.differences import difference
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace
from workspaces.plan_pages import DAMAGED_JOB, JOB, SCRIPT, Server

pytestmark = pytest.mark.slow

AS_BROWSER = {"Accept": "text/html"}


def _json(reader: httpx.Client, address: str) -> Any:
    return reader.get(address).raise_for_status().json()


def test_each_job_is_there_with_its_newest_intact_plan(reader: httpx.Client, planned: Workspace) -> None:
    rows = {row["job"]: row for row in _json(reader, "/jobs.json")["jobs"]}
    assert set(rows) == {JOB, DAMAGED_JOB}
    plan = PlanStore(planned).current(JOB)
    shown = rows[JOB]["plan"]
    assert (shown["version"], shown["target_rate"], shown["trigger"]) == (2, 3e6, "replan")
    assert (shown["task_slots"], shown["memory_mb"]) == (plan.task_slots, plan.memory_mb)
    assert shown["predicted_mst"] == plan.predicted_mst.model_dump()
    assert rows[JOB]["faults"] == []


def test_a_tampered_plan_is_named_and_the_rest_is_shown(reader: httpx.Client) -> None:
    rows = {row["job"]: row for row in _json(reader, "/jobs.json")["jobs"]}
    assert rows[DAMAGED_JOB]["plan"]["version"] == 1
    (fault,) = rows[DAMAGED_JOB]["faults"]
    assert f"{DAMAGED_JOB}/v000002.json was changed after it was stored" in fault
    versions = _json(reader, f"/jobs/{DAMAGED_JOB}/versions.json")["versions"]
    assert [(row["version"], row["plan"] is None) for row in versions] == [(2, True), (1, False)]
    assert versions[0]["damaged"] == fault
    answer = reader.get(f"/jobs/{DAMAGED_JOB}/versions/2", headers=AS_BROWSER)
    assert answer.status_code == 500
    assert "<h1>Damaged</h1>" in answer.text and html.escape(fault) in answer.text
    assert reader.get(f"/jobs/{DAMAGED_JOB}/versions/1").status_code == 200


def test_target_and_actual_rate_and_drift_stand_beside_each_other(reader: httpx.Client) -> None:
    rows = {row["job"]: row for row in _json(reader, "/jobs.json")["jobs"]}
    assert (rows[JOB]["actual"]["rate"], rows[JOB]["drift"]["drifted"]) == (2.85e6, True)
    assert (rows[DAMAGED_JOB]["actual"], rows[DAMAGED_JOB]["drift"]) == (None, None)
    text = reader.get("/").text
    assert "95% of the target" in text and "unknown" in text and "not checked yet" in text
    assert "calc: CPU time per record is 0.7 us (+20%)" in text
    assert "not readable since 2026-03-01 12:00 UTC" in text and "&lt;no&gt; token" in text


def test_a_plan_is_answered_as_it_is_stored_with_the_run_that_made_it(reader: httpx.Client, planned: Workspace) -> None:
    content = _json(reader, f"/jobs/{JOB}/versions/2.json")
    assert content["detail"]["plan"] == PlanStore(planned).get(JOB, 2).model_dump(mode="json")
    assert content["detail"]["newest"] == content["detail"]["pictures_of"] == 2
    assert content["made_by"]["dag_id"] == "replan"
    assert content["made_by"]["path"].startswith("/dags/replan/runs/manual__")
    assert _json(reader, f"/jobs/{JOB}/versions/1.json")["made_by"] is None  # no DAG run made it


def test_the_price_is_shown_where_a_plan_has_one(reader: httpx.Client) -> None:
    # 9 TaskManagers of 0.50 USD each.
    text = reader.get(f"/jobs/{DAMAGED_JOB}/versions/1").text
    assert "<dd>4.50 USD</dd>" in text and "over the range of slots needed 1.00 to unknown" in text
    assert "Worker kinds that were offered" in text and "too little memory" in text
    assert _json(reader, f"/jobs/{DAMAGED_JOB}/versions.json")["versions"][1]["plan"]["price_per_hour"] == 4.5
    assert "4.50 USD per hour" in reader.get(f"/jobs/{DAMAGED_JOB}/versions").text
    without = reader.get(f"/jobs/{JOB}/versions/2").text
    assert "USD" not in without and "MiB together" in without


def test_lineage_leads_to_mlflow(reader: httpx.Client, planned: Workspace) -> None:
    pages = _json(reader, f"/jobs/{JOB}/versions/2.json")["detail"]["mlflow"]
    assert pages["model"] == f"http://mlflow.example:5000/#/models/{JOB}/versions/1"
    assert pages["run"].startswith("http://mlflow.example:5000/#/runs/")
    text = reader.get(f"/jobs/{JOB}/versions/2").text
    assert f'href="{pages["model"]}"' in text and f'href="{pages["run"]}"' in text


def test_the_pictures_are_those_of_the_report(reader: httpx.Client) -> None:
    figures = _json(reader, f"/jobs/{JOB}/versions/2/pictures.json")["figures"]
    assert list(figures) == ["dataflow", "capacity", "scaling-curve", "placement", "front", "exploration"]
    page = reader.get(f"/jobs/{JOB}/versions/2").text
    assert all(f'data-picture="{name}"' in page for name in figures)
    assert reader.get(f"/jobs/{DAMAGED_JOB}/versions/1/pictures.json").status_code == 404
    assert "was published without pictures" in reader.get(f"/jobs/{DAMAGED_JOB}/versions/1").text


def test_the_difference_is_that_of_the_two_versions_asked_for(reader: httpx.Client, planned: Workspace) -> None:
    store = PlanStore(planned)
    for before, after in ((1, 2), (2, 1), (2, 2)):
        content = _json(reader, f"/jobs/{JOB}/difference.json?before={before}&after={after}")
        expected = difference(store.get(JOB, before), store.get(JOB, after))
        assert content["difference"] == expected.model_dump(mode="json")
        moved = sum(max(0, row["after"] - row["before"]) for row in content["placement"])
        assert moved == expected.tasks_moved


def test_components_of_airflow_that_do_not_run_are_reported(reader: httpx.Client) -> None:
    components = _json(reader, "/jobs.json")["components"]
    assert [(one["name"], one["healthy"]) for one in components] == [
        ("scheduler", False), ("dag processor", False), ("triggerer", False),
    ]  # fmt: skip
    text = reader.get("/").text
    assert "Airflow is not healthy" in text
    assert "No heartbeat of the scheduler yet." in text


def test_a_question_of_a_dag_is_pending_for_its_job(reader: httpx.Client) -> None:
    (asked,) = _json(reader, "/jobs.json")["approvals"]
    assert (asked["job"], asked["dag_id"]) == (JOB, "replan")
    assert asked["path"].endswith("/tasks/changes/required_actions")


@pytest.mark.parametrize(
    "address",
    [
        "/jobs/no-such-job/versions",
        "/jobs/no-such-job/versions.json",
        "/jobs/%3Cscript%3E/versions",
        f"/jobs/{JOB}/versions/99",
        f"/jobs/{JOB}/versions/0",
        f"/jobs/{JOB}/versions/-1",
        f"/jobs/{JOB}/versions/one",
        f"/jobs/{JOB}/versions/99999999999999999999999999.json",
        f"/jobs/{JOB}/difference",
        f"/jobs/{JOB}/difference?before=1",
        f"/jobs/{JOB}/difference?before=1&after=x",
        f"/jobs/{JOB}/difference?before=1&after=99",
        "/jobs/../versions",
        "/jobs/%2E%2E/versions",
        "/jobs/..%2F..%2Fplans/versions",
        f"/jobs/.%2F{JOB}/versions",
        f"/jobs/{JOB}%00/versions",
        "/jobs/%F0%9F%98%80/versions",
        f"/jobs/{'x' * 5000}/versions",
        "/jobs/no-such-job/calendar",
        "/jobs/no-such-job/calendar.json",
        "/jobs/no-such-job/calendar/pictures.json",
        "/jobs/%3Cscript%3E/calendar",
        "/jobs/..%2F..%2Fcalendar/calendar",
        "/jobs/no-such-job/autopilot",
        "/jobs/%3Cscript%3E/autopilot",
        f"/jobs/{JOB}/autopilot?hours=0",
        f"/jobs/{JOB}/autopilot?hours=99",
        f"/jobs/{JOB}/autopilot/pictures.json?hours=nan",
        "/jobs/..%2F..%2Fautopilots/autopilot",
        "/static/routes.py",
        "/static/..%2Froutes.py",
        "/static/%2Fetc%2Fpasswd",
        "/docs",
        "/openapi.json",
    ],
)
def test_an_address_that_leads_nowhere_is_not_found(reader: httpx.Client, address: str) -> None:
    page, content = reader.get(address, headers=AS_BROWSER), reader.get(address)
    assert page.status_code == content.status_code == 404, page.text[:300]
    assert len(page.text) < 3000 and "<script>" not in page.text
    assert set(content.json()) == {"detail"} and "Traceback" not in content.text


def test_the_query_cannot_name_another_workspace(reader: httpx.Client) -> None:
    assert _json(reader, "/jobs.json?url=/etc&workspace=/etc") == _json(reader, "/jobs.json")


@pytest.mark.parametrize("address", ["/", f"/jobs/{DAMAGED_JOB}/versions/1"])
def test_words_from_plans_and_from_airflow_are_shown_as_text(reader: httpx.Client, address: str) -> None:
    text = reader.get(address).text
    assert SCRIPT not in text
    assert html.escape(SCRIPT, quote=False).replace("'", "&#39;") in text


def test_without_plans_the_page_says_how_to_get_one(reader: httpx.Client, server: Server, folder: Path) -> None:
    plans, away = folder / "plans", folder / "plans-away"
    plans.rename(away)
    try:
        assert _json(reader, "/jobs.json")["jobs"] == []
        assert "No job has a plan yet" in reader.get("/").text
        assert reader.get(f"/jobs/{JOB}/versions").status_code == 404
    finally:
        away.rename(plans)
