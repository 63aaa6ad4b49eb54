"""What the tasks do with parameters and events before a stage is called."""

import importlib
import json
from copy import copy
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.triggers.base import BaseEventTrigger

from models.errors import InvalidInput
from pipelines.calendar.record import CalendarChange, keep_change
from pipelines.rates.record import RateChangeEvent, keep_event
from pipelines.run import PipelineRun
from pipelines.store.workspace import Workspace
from sluice_airflow import reporting
from sluice_airflow.embedded.run import read_parameters
from sluice_airflow.tasks import observing, planning, replanning, thresholds
from sluice_airflow.triggers import (
    AutopilotTrigger,
    CalendarTrigger,
    ObservationTrigger,
    RateChangeTrigger,
    event_of,
    event_of_calendar,
)
from workspaces.transcript import Transcript

NOTHING: dict[str, Any] = {"job": None, "rate": None}


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setenv("SLUICE_WORKSPACE", str(tmp_path))
    return Workspace()


def _kept(workspace: Workspace, uri: str) -> PipelineRun:
    return PipelineRun.open(workspace, uri.removeprefix(f"{workspace.url.rstrip('/')}/"))


def test_a_request_is_kept_under_the_same_uri_each_time(workspace: Workspace) -> None:
    asked = {"job": "nexmark-q1", "rate": 1000.0, "run": None}
    first, again = (planning.keep_request(asked) for _ in range(2))
    assert first == again
    assert _kept(workspace, first).request.rate == 1000.0
    assert planning.keep_request(asked | {"rate": 1001.0}) != first


def test_a_request_that_contradicts_itself_is_refused_with_the_field(workspace: Workspace) -> None:
    with pytest.raises(InvalidInput, match="measurements"):
        planning.keep_request({"job": "nexmark-q1", "rate": 1000.0, "testbed": "recorded", "run": None})


def test_a_job_that_changes_during_a_run_stops_the_run(workspace: Workspace, root: Path, tmp_path: Path) -> None:
    job = tmp_path / "mine.yaml"
    text = (root / "jobs" / "nexmark-q1.yaml").read_text().replace("sql: nexmark-q1.sql\n", "")
    job.write_text(text)
    uri = planning.keep_request({"job": str(job), "rate": 1000.0, "run": None})
    job.write_text(text.replace("currency conversion", "conversion", 1))
    with pytest.raises(InvalidInput, match=r"has changed since the run began; run the DAG again"):
        planning.run_stage("profile", uri)


def test_of_several_changes_the_latest_of_each_job_counts() -> None:
    events = [{"job": "a", "rate": 1}, {"job": "b/c", "rate": 2.5}, {"job": "a", "rate": 3}]
    assert replanning.rate_changes(NOTHING, events, "run") == [
        {"job": "a", "rate": 3},
        {"job": "b/c", "rate": 2.5},
    ]


def test_parameters_given_by_hand_are_a_change() -> None:
    assert replanning.rate_changes({"job": "a", "rate": 3e6}, [], "run") == [{"job": "a", "rate": 3e6}]


def test_with_neither_events_nor_parameters_a_replan_says_what_it_needs() -> None:
    with pytest.raises(InvalidInput, match=r"needs a job and its new rate.*trigger the DAG with"):
        replanning.rate_changes(NOTHING, [], "run")


@pytest.mark.parametrize(
    "extra",
    [
        {},
        {"job": "a"},
        {"rate": 1},
        {"job": "", "rate": 1},
        {"job": "\ud800", "rate": 1},
        {"job": "a", "rate": 0},
        {"job": "a", "rate": "1"},
        {"job": "a", "rate": True},
        {"job": "a", "rate": float("nan")},
        {"job": "a", "rate": float("inf")},
    ],
    ids=str,
)
def test_a_change_without_a_job_or_a_rate_is_refused(extra: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=r"must carry 'job'.*'rate'"):
        replanning.rate_changes(NOTHING, [extra], "run")


EVENT = RateChangeEvent.model_validate(
    {
        "job": "a",
        "plan_version": 3,
        "number": 1,
        "reported_at": "2026-01-01T00:00:00Z",
        "origin": "Prometheus",
        "change": {
            "old_rate": 1000,
            "new_rate": 2000,
            "low": 700,
            "high": 1100,
            "samples": [{"time_s": 70, "rate": 1990}, {"time_s": 85, "rate": 2010}],
        },
    }
)


def test_the_event_of_a_change_says_from_what_to_what_and_why() -> None:
    evidence = event_of(EVENT)["evidence"]
    assert {name: value for name, value in event_of(EVENT).items() if name != "evidence"} == {
        "job": "a",
        "rate": 2000.0,
        "old_rate": 1000.0,
        "plan_version": 3,
        "change": "rate-changes/a/v000003-000001.json",
    }
    assert evidence["samples"] == [{"seconds_ago": 15.0, "rate": 1990.0}, {"seconds_ago": 0.0, "rate": 2010.0}]
    assert (evidence["origin"], evidence["band"]) == ("Prometheus", [700.0, 1100.0])


def test_a_change_that_comes_twice_is_planned_for_by_one_dag_run(workspace: Workspace) -> None:
    assert keep_event(workspace, EVENT)
    extra = {"from_trigger": True, "payload": event_of(EVENT)}
    change = {"job": "a", "rate": 2000.0, "change": EVENT.key}
    # The task may be tried again, and the same event may come with the next run.
    assert [replanning.rate_changes(NOTHING, [extra], run) for run in ("one", "one", "two")] == [[change], [change], []]
    assert replanning.rate_changes(NOTHING, [extra, {"job": "b", "rate": 1}], "two") == [{"job": "b", "rate": 1}]


SCHEDULED = CalendarChange.model_validate(
    {
        "job": "a",
        "plan_version": 3,
        "old_rate": 1000,
        "reported_at": "2026-11-27T06:45:10Z",
        "time_zone": "Europe/Berlin",
        "scheduled": {
            "starts_at": "2026-11-27T06:45:00Z",
            "ends_at": "2026-11-27T23:00:00Z",
            "rate": 3000,
            "rises_at": "2026-11-27T07:00:00Z",
            "event": "Black Friday",
            "event_begins_at": "2026-11-27T07:00:00Z",
        },
    }
)


def test_a_scheduled_change_is_planned_for_as_a_rate_change_is_once(workspace: Workspace) -> None:
    key = "calendar-changes/a/20261127T064500Z-3000.json"
    payload = event_of_calendar(SCHEDULED)
    assert {name: value for name, value in payload.items() if name != "evidence"} == {
        "job": "a",
        "rate": 3000.0,
        "old_rate": 1000.0,
        "plan_version": 3,
        "change": key,
    }
    reason = f"calendar: Black Friday from 08:00 on Fri 27 Nov 2026 (Europe/Berlin); triggered by {key}"
    assert payload["evidence"]["origin"] == reason
    assert keep_change(workspace, SCHEDULED) and not keep_change(workspace, SCHEDULED)
    extra = {"from_trigger": True, "payload": json.loads(json.dumps(payload))}
    change = {"job": "a", "rate": 3000.0, "change": key}
    assert [replanning.rate_changes(NOTHING, [extra], run) for run in ("one", "one", "two")] == [[change], [change], []]
    assert replanning._cause(workspace, key) == reason
    assert replanning._cause(workspace, "calendar-changes/a/20261127T064500Z-4000.json") is None


@pytest.mark.parametrize(
    "key", ["../../etc/passwd", "/etc/passwd", "rate-changes/a/v000009-000001.json", "plans/a", "\ud800"]
)
def test_a_change_that_is_none_of_the_workspace_leaves_nothing_there(workspace: Workspace, key: str) -> None:
    extra = {"job": "a", "rate": 1, "change": key}
    assert replanning.rate_changes(NOTHING, [extra], "run") == [{"job": "a", "rate": 1}]
    assert workspace.list() == []


@pytest.mark.parametrize("kind", [AutopilotTrigger, CalendarTrigger, RateChangeTrigger, ObservationTrigger])
def test_a_trigger_is_made_again_from_what_it_says_of_itself(kind: type[BaseEventTrigger]) -> None:
    path, arguments = kind(look_every_s=7.0).serialize()
    module, _, name = path.rpartition(".")
    again = getattr(importlib.import_module(module), name)(**arguments)
    assert isinstance(again, kind) and again.look_every_s == 7.0
    assert BaseEventTrigger.hash(path, arguments) == BaseEventTrigger.hash(*again.serialize())


def test_what_was_seen_in_a_window_is_said(workspace: Workspace) -> None:
    seen = {"job": "a", "samples": "production/a/w.parquet", "observed": "observed/a/w.json", "consumed_rate": 600.0}
    ended = {"job": "b", "samples": None, "observed": None}
    events = [seen | {"bound_by": "nothing binds"}, ended]
    transcript = Transcript()
    with reporting.shown_on(transcript):
        assert observing.report(events) == ["production/a/w.parquet"]
        assert observing.report([]) == []
    said = " | ".join(transcript.said)
    assert "windows: a: 600 records/s are taken; nothing binds; observed/a/w.json" in said
    assert "windows: b: it had ended or was deployed again" in said
    assert "observes no job, since no file has operations.observe" in said


PLANS = "file:///w/plans"


def test_threshold_tables_are_due_for_the_jobs_of_new_plans_once_each() -> None:
    events = [{"uri": f"{PLANS}/{plan}"} for plan in ("a/v000001.json", "b.c/v000012.json", "a/v000002.json")]
    assert thresholds.jobs_with_new_plans({"job": None}, events) == ["a", "b.c"]
    assert thresholds.jobs_with_new_plans({"job": "d"}, []) == ["d"]
    assert thresholds.jobs_with_new_plans({"job": "a"}, events[:1]) == ["a"]


def test_with_neither_events_nor_a_job_a_threshold_table_says_what_it_needs() -> None:
    with pytest.raises(InvalidInput, match=r"needs a job with a plan.*trigger the DAG with"):
        thresholds.jobs_with_new_plans({"job": None}, [])


@pytest.mark.parametrize("extra", [{}, {"uri": None}, {"uri": PLANS}, {"uri": f"{PLANS}/a/plan.json"}], ids=str)
def test_a_plan_event_without_the_uri_of_a_plan_is_refused(extra: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=r"must carry its URI"):
        thresholds.jobs_with_new_plans({"job": None}, [extra])


def test_a_grid_that_makes_no_sense_is_refused_before_anything_is_tuned(workspace: Workspace) -> None:
    with pytest.raises(InvalidInput, match="at most 2000 rates"):
        thresholds.threshold_table("a", {"job": "a", "rate": None, "step": 1e-6})


def test_a_task_reports_when_it_begins_and_how_it_ends() -> None:
    transcript = Transcript()
    with reporting.shown_on(transcript), reporting.reported("check"):
        reporting.task_progress().say("looking")
    with pytest.raises(OSError), reporting.shown_on(transcript), reporting.reported("tune"):
        raise OSError("disk full")
    begun, looking, done, begun_again, failed = transcript.said
    assert (begun, looking, begun_again) == ("== check", "looking", "== tune")
    assert done.startswith("   done in ")
    assert failed.startswith("   failed after ") and failed.endswith("disk full")
    assert reporting.task_progress() is reporting.LOG


def test_in_a_task_log_a_long_loop_reports_each_tenth(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="sluice"):
        assert list(reporting.LOG.track(range(40), "measuring")) == list(range(40))
    assert caplog.messages[0] == "measuring: 4 of 40"
    assert len(caplog.messages) == 10


@pytest.fixture
def params(dags: dict[str, DAG]) -> Any:
    found = dags["capacity_plan"].params
    return {name: copy(found.get_param(name)) for name in found}  # resolving a value changes its parameter


def test_command_line_parameters_are_numbers_where_they_look_like_it(params: Any) -> None:
    given = read_parameters(["job=nexmark-q1", "rate=2.5e6", "memory_mb=null", "run=a"], params)
    assert given == {"job": "nexmark-q1", "rate": 2.5e6, "memory_mb": None, "run": "a"}


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("speed=1", "must be name=value of job, rate, .*'speed=1'"),
        ("job", "must be name=value"),
        ("rate=-3", "'rate': -3 is less than or equal to the minimum of 0"),
        ("rate=fast", "'rate': 'fast' is not of type 'number'"),
    ],
)
def test_wrong_command_line_parameters_are_explained_in_one_line(params: Any, argument: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as raised:
        read_parameters([argument], params)
    assert "\n" not in str(raised.value)
