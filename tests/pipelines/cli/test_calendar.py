"""`sluice calendar` shows what its job's calendar plans for, and refuses what it cannot show."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipelines.calendar.figure import curves
from pipelines.calendar.scheduling import JobCalendar
from pipelines.cli import run as sluice
from pipelines.inputs.catalogue import load_job
from pipelines.store.workspace import Workspace

CALENDAR: dict[str, Any] = {
    "time_zone": "Europe/Berlin",
    "base_rate": 1000,
    "rescale_s": 240,
    "events": [{"name": "Black Friday", "start": "2026-11-27T08:00", "end": "2026-11-28T00:00", "factor": 3}],
}


@pytest.fixture
def job(tmp_path: Path, root: Path) -> Path:
    document = yaml.safe_load((root / "jobs" / "wordcount.yaml").read_text())
    file = tmp_path / "wordcount.yaml"
    file.write_text(yaml.safe_dump(document | {"operations": {"calendar": CALENDAR}}))
    return file


def show(job: Path, *options: str) -> int:
    at = ["--from", "2026-11-27", "--days", "1", "--workspace", str(job.parent / "workspace")]
    return sluice(["calendar", str(job), *at, *options])


def test_the_schedule_is_a_table(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert show(job) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "wordcount: no season, from the base rate of the calendar; times of Europe/Berlin"
    assert "Fri 27 Nov 00:00" in lines[3] and " 1,000 " in lines[3]
    assert "Fri 27 Nov 07:45  Black Friday at Fri 08:00" in lines[4] and " 3,000 " in lines[4]
    assert lines[-1] == "What it costs is unknown: wordcount has no plan yet"


def test_json_holds_all_of_it(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert show(job, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    before, peak = found["intervals"]
    assert (found["season"], found["before_s"], found["rescale_s"]) == ("none", 600.0, 240.0)
    assert (before["rate"], before["event"], before["slots"], found["cost"]) == (1000.0, None, None, None)
    assert peak["starts_at"] == "2026-11-27T06:45:00Z" and peak["event"] == "Black Friday"


def test_a_history_on_the_command_line_comes_before_that_of_the_file(
    job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history = job.parent / "other.csv"
    history.write_text("time,rate\n" + "".join(f"2026-11-0{day}T10:00,{day}00\n" for day in range(1, 6)))
    assert show(job, "--json", "--rates", str(history)) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["season_from"] == "5 readings of other.csv, of 5 days"
    assert found["intervals"][0]["rate"] == 500.0  # quantile 0.95 of five is between the last two


@pytest.mark.slow
def test_the_plot_shows_what_is_expected_and_planned_for(job: Path) -> None:
    plot = job.parent / "schedule.svg"
    assert show(job, "--plot", str(plot)) == 0
    assert "<svg " in plot.read_text() and "schedule, times of Europe/Berlin" in plot.read_text()
    calendar = JobCalendar.of(Workspace(job.parent / "workspace"), load_job(str(job)), job.parent)
    _, intervals = calendar.ahead(datetime(2026, 11, 26, 23, tzinfo=UTC), datetime(2026, 11, 27, 23, tzinfo=UTC))
    shown = curves(calendar, intervals)
    assert shown.planned == (1000.0, 3000.0, 3000.0)
    assert [f"{at:%H:%M}" for at in shown.planned_from] == ["00:00", "07:45", "00:00"]
    # 8 hours of 12 cells at 1,000 records/s, and 16 at 3,000.
    assert (shown.expected.count(1000.0), shown.expected.count(3000.0)) == (96, 192)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--from", "soon"], "--from must be a time such as 2026-11-27T08:00, but got 'soon'"),
        (["--plot", "schedule.png"], "must end with .svg, but got 'schedule.png'"),
        (["--rates", "missing.csv"], "the file missing.csv does not exist"),
    ],
)
def test_what_cannot_be_shown_is_explained(
    job: Path, capsys: pytest.CaptureFixture[str], options: list[str], said: str
) -> None:
    assert show(job, *options) == 2
    assert said in capsys.readouterr().err


def test_a_job_without_a_calendar_says_what_to_add(capsys: pytest.CaptureFixture[str]) -> None:
    assert sluice(["calendar", "wordcount"]) == 2
    assert "add operations.calendar" in capsys.readouterr().err
