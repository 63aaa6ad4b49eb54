"""The answers of the autopilots' routes."""

import html
from typing import Any

import httpx
import pytest

from autopilots.records import BUSY_JOB, DAMAGED_AUTOPILOT, SCRIPT_REASON, SILENT_JOB, STOPPED_JOB
from workspaces.plan_pages import JOB

pytestmark = pytest.mark.slow


def _json(reader: httpx.Client, address: str) -> Any:
    return reader.get(address).raise_for_status().json()


def test_every_job_with_an_autopilot_is_listed(reader: httpx.Client) -> None:
    rows = {row["job"]: row for row in _json(reader, "/autopilots.json")["autopilots"]}
    assert set(rows) == {BUSY_JOB, DAMAGED_AUTOPILOT, JOB, SILENT_JOB, STOPPED_JOB}
    assert rows[SILENT_JOB]["condition"] == "silent" and rows[SILENT_JOB]["dry_run"]
    assert rows[DAMAGED_AUTOPILOT]["condition"] is None and "state.json" in rows[DAMAGED_AUTOPILOT]["fault"]
    text = reader.get("/autopilots").text
    assert all(f"/jobs/{job}/autopilot" in text for job in rows)
    assert "These files cannot be read" in text and "by ada" in text


def test_the_page_of_a_job_has_its_decisions_with_their_reasons(reader: httpx.Client) -> None:
    detail = _json(reader, f"/jobs/{BUSY_JOB}/autopilot.json")
    done = [one["decision"]["done"] for one in detail["decisions"]]
    assert done == ["none", "rescaled", "held-back", "rolled-back", "none"]  # the newest one first
    assert detail["budget_spent"] == pytest.approx(0.45)
    text = reader.get(f"/jobs/{BUSY_JOB}/autopilot").text
    assert "Rescaled count 2 to 4 in place." in text and "count 2 → 4" in text
    assert "placed on 2 TaskManagers</summary>" in text and "tm-1: source 1, count 2" in text
    assert "not placed: the placement hook serves one job" in text
    assert "held: back-off" in text and "<dd>0.25</dd>" in text and "<dd>45%</dd>" in text


def test_words_of_a_stop_switch_are_shown_as_text(reader: httpx.Client) -> None:
    text = reader.get(f"/jobs/{STOPPED_JOB}/autopilot").text
    assert SCRIPT_REASON not in text
    assert html.escape(SCRIPT_REASON, quote=False).replace("'", "&#39;") in text
    assert "Flink does not answer" in text and "unknown" in text
    assert "through FlinkDeployment <code>streaming/orders</code>" in text


def test_the_figures_of_a_job_are_data(reader: httpx.Client) -> None:
    assert list(_json(reader, f"/jobs/{BUSY_JOB}/autopilot/pictures.json")["figures"]) == [
        "rate", "lag", "tasks", "budget", "price",
    ]  # fmt: skip


def test_a_damaged_state_is_named(reader: httpx.Client) -> None:
    answer = reader.get(f"/jobs/{DAMAGED_AUTOPILOT}/autopilot", headers={"Accept": "text/html"})
    assert answer.status_code == 500 and "<h1>Damaged</h1>" in answer.text
