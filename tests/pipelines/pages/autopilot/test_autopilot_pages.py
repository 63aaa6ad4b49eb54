"""The content of the autopilots' pages, from records whose numbers can be checked by hand."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from autopilots.records import (
    BUSY_JOB,
    DAMAGED_AUTOPILOT,
    SILENT_JOB,
    STOPPED_JOB,
    busy_decisions,
    decided,
    outlook,
    rescale,
    seen,
    state_of,
    store_autopilots,
    unknown,
)
from models.errors import InvalidInput
from pipelines.control.files import AutopilotFiles, StopSwitch
from pipelines.pages.autopilot.condition import Condition, condition
from pipelines.pages.autopilot.detail import autopilot_detail, budget_spent
from pipelines.pages.autopilot.overview import autopilot_rows
from pipelines.pages.autopilot.recent import RecentDecisions
from pipelines.pages.autopilot.series import autopilot_series
from pipelines.store.workspace import Workspace

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
SWITCH = StopSwitch(job=BUSY_JOB, by="ada", stopped_at=NOW)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


@pytest.mark.parametrize(
    ("changed", "switch", "expected"),
    [
        ({}, None, "acting"),
        ({"dry_run": True}, None, "dry run"),
        ({"phase": "acting"}, None, "rescaling"),
        ({"newest": decided(1, NOW, held="freeze")}, None, "held back"),
        ({}, SWITCH, "stopped"),
        ({"beat_at": NOW - timedelta(seconds=31)}, SWITCH, "silent"),
        ({"beat_at": NOW - timedelta(seconds=31), "every_s": 15.0}, None, "acting"),  # three rounds are 45 s
        ({"beat_at": NOW - timedelta(hours=9), "phase": "ended"}, SWITCH, "ended"),
        ({"beat_at": NOW + timedelta(seconds=40)}, None, "acting"),  # a clock that is ahead
    ],
)
def test_what_an_autopilot_does_now(changed: dict[str, Any], switch: StopSwitch | None, expected: Condition) -> None:
    assert condition(state_of(decided(1, NOW), NOW, **changed), switch, NOW) == expected


def test_every_job_has_its_row_and_a_damaged_state_hides_no_other(workspace: Workspace) -> None:
    store_autopilots(workspace, NOW, minutes=20)
    rows = {row.job: row for row in autopilot_rows(workspace, NOW + timedelta(seconds=5))}
    assert {job: row.condition for job, row in rows.items()} == {
        BUSY_JOB: "acting", STOPPED_JOB: "stopped", SILENT_JOB: "silent", DAMAGED_AUTOPILOT: None,
    }  # fmt: skip
    assert "state.json" in (rows[DAMAGED_AUTOPILOT].fault or "")
    assert (rows[BUSY_JOB].tasks, rows[BUSY_JOB].price_per_hour) == (5, 0.25)
    assert rows[BUSY_JOB].decision_age_s == 5.0
    assert rows[STOPPED_JOB].arriving_rate is None and rows[STOPPED_JOB].switch is not None


def test_decisions_that_repeat_the_one_before_are_counted_there(workspace: Workspace) -> None:
    files, now = AutopilotFiles(workspace, BUSY_JOB), datetime.now(UTC)
    wanted = {"done": "dry-run", "rescale": rescale(2, 3, intent=None)}
    kinds: list[dict[str, Any]] = [
        {"rounds": 6}, {"rounds": 6}, wanted, wanted, {"done": "rescaled", "rescale": rescale(2, 3)},
        {"done": "rescaled", "rescale": rescale(2, 3)}, {},
    ]  # fmt: skip
    for number, kind in enumerate(kinds, start=1):
        files.keep(decided(number, now - timedelta(minutes=30 - number), **kind))
    files.keep_state(state_of(decided(7, now), now))
    detail = autopilot_detail(workspace, RecentDecisions(), BUSY_JOB, 1.0, now)
    assert [(one.decision.number, one.repeated) for one in detail.decisions] == [
        (7, 0),
        (6, 0),
        (5, 0),
        (3, 1),
        (1, 11),
    ]


def test_only_new_records_are_read_again(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    files, now = AutopilotFiles(workspace, BUSY_JOB), datetime.now(UTC)
    recent, read = RecentDecisions(), []
    original = Workspace.read
    monkeypatch.setattr(Workspace, "read", lambda self, key, model: (read.append(key), original(self, key, model))[1])
    for number, hours in ((1, 25), (2, 2), (3, 0.5)):
        files.keep(decided(number, now - timedelta(hours=hours)))
    assert [one.number for one in recent.of(files, 24)] == [2, 3]
    assert [one.number for one in recent.of(files, 1)] == [3]
    files.keep(decided(4, now))
    read.clear()
    assert [one.number for one in recent.of(files, 24)] == [2, 3, 4]
    assert len(read) == 1


def test_a_job_without_an_autopilot_is_named(workspace: Workspace) -> None:
    for job in ("no-such-job", "../clicks", "<script>"):
        with pytest.raises(InvalidInput, match="no autopilot of a job named"):
            autopilot_detail(workspace, RecentDecisions(), job, 1.0, NOW)


def test_the_budget_that_is_spent_is_late_records_over_those_that_may_be() -> None:
    assert budget_spent(decided(1, NOW, outlook=outlook(1000.0, late_share=0.005))) == pytest.approx(0.5)
    assert budget_spent(decided(1, NOW)) is None
    assert budget_spent(None) is None


def test_lines_break_where_there_is_no_record_and_where_a_value_is_unknown() -> None:
    at = [0, 60, 120, 600, 660]
    rates = [1000.0, None, 1100.0, 1200.0, 1300.0]
    series = autopilot_series(
        [decided(n, NOW + timedelta(seconds=s), seen=seen(rate)) for n, (s, rate) in enumerate(zip(at, rates, strict=True), 1)]
    )  # fmt: skip
    assert series.arriving.values == (1000.0, None, 1100.0, None, 1200.0, 1300.0)
    assert series.arriving.times[3] == NOW + timedelta(seconds=121)
    assert not series.budget_spent.is_known and not series.capacity.is_known
    assert [one.name for one in series.tasks] == ["source", "count"]
    assert series.bands == ()


def test_the_forecast_stands_in_the_middle_of_the_time_that_it_is_for() -> None:
    later = decided(2, NOW + timedelta(hours=1), outlook=outlook(2000.0))
    series = autopilot_series([decided(1, NOW, outlook=outlook(1000.0)), later])
    assert [band.times for band in series.bands] == [(NOW + timedelta(seconds=150),), (NOW + timedelta(seconds=3750),)]
    assert [(band.low, band.high) for band in series.bands] == [((900.0,), (1200.0,)), ((1800.0,), (2400.0,))]


def test_a_dry_run_that_wants_the_same_again_is_marked_once() -> None:
    same: dict[str, Any] = {"done": "dry-run", "rescale": rescale(2, 3)}
    kinds = [
        same,
        same,
        {"done": "dry-run", "rescale": rescale(2, 4)},
        {},
        same,
        {"done": "refused", "rescale": rescale(2, 3)},
    ]
    series = autopilot_series([decided(n, NOW + timedelta(seconds=10 * n), **kind) for n, kind in enumerate(kinds, 1)])
    assert [(mark.done, mark.tasks) for mark in series.marks] == [
        ("dry-run", 4), ("dry-run", 5), ("dry-run", 4), ("refused", 4),
    ]  # fmt: skip


def test_figures_of_what_is_unknown_are_left_out() -> None:
    from pipelines.pages.autopilot.figures import autopilot_pictures

    figures = autopilot_pictures(autopilot_series(busy_decisions(NOW))).figures
    assert list(figures) == ["rate", "lag", "tasks", "budget", "price"]
    assert {one["name"] for one in figures["tasks"]["data"]} == {
        "source",
        "count",
        "task slots",
        "rescaled",
        "rolled-back",
    }
    assert list(autopilot_pictures(autopilot_series([decided(1, NOW, seen=unknown())])).figures) == ["rate"]
