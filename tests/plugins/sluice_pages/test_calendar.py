"""The answers of the calendar's routes: a schedule, a job without one, and one whose file cannot be read."""

import html
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import httpx
import pytest
import yaml

from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace
from workspaces.plan_pages import DAMAGED_JOB, JOB, SCRIPT

pytestmark = pytest.mark.slow

PAGE = f"/jobs/{JOB}/calendar"


def _json(reader: httpx.Client, address: str) -> Any:
    return reader.get(address).raise_for_status().json()


def test_every_evening_has_its_plan_and_costs_less_than_all_day(reader: httpx.Client, planned: Workspace) -> None:
    schedule = _json(reader, f"{PAGE}.json")["schedule"]
    assert schedule["is_followed"] and schedule["time_zone"] == "Europe/Berlin"
    first, second = (PlanStore(planned).get(JOB, version).total_slots for version in (1, 2))
    coming = [one for one in schedule["changes"] if one["state"] == "coming"]
    assert {one["rate"]: one["slots"] for one in coming} == {4e5: first, 3e6: second}
    forecast = schedule["forecast"]
    # Of 168 hours at least six evenings of 4.25 to 4.5 hours are at the peak's plan, and at most eight.
    peak_hours = (forecast["slot_hours"] - 168 * first) / (second - first)
    assert 6 * 4.25 <= peak_hours <= 8 * 4.5
    assert forecast["peak_slot_hours"] == pytest.approx(168 * second)
    assert forecast["dollars"] is None and schedule["forecast_unknown"] is None


def test_the_last_days_cost_what_the_versions_in_force_took(reader: httpx.Client, planned: Workspace) -> None:
    spent = _json(reader, f"{PAGE}.json")["schedule"]["spent"]
    first, second = (PlanStore(planned).get(JOB, version).total_slots for version in (1, 2))
    # Version 1 for 108 hours, and version 2 for 36 until the tests began, of the last 168 hours.
    assert spent["hours"] == pytest.approx(144, abs=1.0)
    assert spent["slot_hours"] == pytest.approx(108 * first + (spent["hours"] - 108) * second)
    assert spent["peak_slot_hours"] == pytest.approx(spent["hours"] * second)


def test_times_are_those_of_the_calendars_zone(reader: httpx.Client) -> None:
    schedule = _json(reader, f"{PAGE}.json")["schedule"]
    text = reader.get(PAGE).text
    for one in schedule["changes"]:
        due_at = datetime.fromisoformat(one["due_at"]).astimezone(ZoneInfo("Europe/Berlin"))
        assert f"{due_at:%a %d %b %H:%M}</th>" in text
    assert "Evening at" in text and "18:00" in text and "Times of Europe/Berlin" in text
    assert "every day, 02:00-03:30 UTC" in text and "Wed 24 Dec 2098 00:00" in text
    assert f'href="/sluice/jobs/{JOB}/calendar"' in reader.get(f"/jobs/{JOB}/versions").text


def test_an_event_named_like_a_script_is_text(reader: httpx.Client) -> None:
    text = reader.get(PAGE).text
    assert SCRIPT not in text
    assert html.escape(SCRIPT, quote=False).replace("'", "&#39;") in text


def test_the_picture_is_data(reader: httpx.Client) -> None:
    (figure,) = _json(reader, f"{PAGE}/pictures.json")["figures"].values()
    assert set(figure["data"][1]["y"]) == {4e5, 3e6}


def test_looking_changes_nothing(reader: httpx.Client, planned: Workspace) -> None:
    before = planned.list()
    for address in (PAGE, f"{PAGE}.json", f"{PAGE}/pictures.json"):
        reader.get(address).raise_for_status()
    assert planned.list() == before


def test_a_job_without_a_calendar_says_how_to_state_one(reader: httpx.Client, job_file: Path) -> None:
    stated = job_file.read_text()
    job_file.write_text(yaml.safe_dump(yaml.safe_load(stated) | {"operations": None}))
    try:
        assert _json(reader, f"{PAGE}.json") == {"job": JOB, "schedule": None, "fault": None, "faults": []}
        text = reader.get(PAGE).text
        assert "add <code>operations.calendar</code>" in text and "data-pictures" not in text
        assert _json(reader, f"{PAGE}/pictures.json")["figures"] == {}
    finally:
        job_file.write_text(stated)


def test_a_calendar_that_cannot_be_read_says_why(reader: httpx.Client) -> None:
    answer = reader.get(f"/jobs/{DAMAGED_JOB}/calendar")
    assert answer.status_code == 200 and "The calendar cannot be shown" in answer.text
    assert "request.json does not exist" in answer.text
