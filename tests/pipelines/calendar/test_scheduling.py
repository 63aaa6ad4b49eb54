"""Schedules are stored by the week, and go on where the week before ended."""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from models.calendar.schedule import in_force
from models.errors import InvalidInput
from pipelines.apply.applied import Applied
from pipelines.apply.record import record
from pipelines.calendar.scheduling import WeekSchedule, calendar_of_plan, scheduled_rate
from pipelines.store.plans import PlanStore
from workspaces.operated_job import JOB, OperatedJob

NIGHT = {"name": "Night", "cron": "0 20 * * SUN", "duration_s": 8 * 3600, "factor": 2}
"""From Sunday to Monday."""


def rate_at(planned: OperatedJob, at: datetime) -> float:
    scheduled = scheduled_rate(planned.workspace, PlanStore(planned.workspace).current(JOB), at)
    assert scheduled is not None
    return scheduled.rate


def test_a_week_is_stored_and_made_again_only_if_the_calendar_changes(planned: OperatedJob, with_calendar: Any) -> None:
    noon = datetime(2026, 11, 27, 11, tzinfo=UTC)
    assert rate_at(planned, noon) == 3000.0
    key = f"calendar/{JOB}/2026-11-23.json"
    week = planned.workspace.read_output(key, WeekSchedule)
    assert (week.week, week.season, week.season_from) == (date(2026, 11, 23), "none", "the base rate of the calendar")
    before = planned.workspace.read_bytes(key)
    assert rate_at(planned, noon) == 3000.0
    assert planned.workspace.read_bytes(key) == before
    with_calendar(base_rate=2000.0)
    assert rate_at(planned, noon) == 6000.0


def test_a_changed_history_file_is_learnt_anew(planned: OperatedJob, with_calendar: Any) -> None:
    history = planned.file.parent / "rates.csv"
    with_calendar(base_rate=None, history="rates.csv")
    history.write_text("time,rate\n2026-11-02T10:00,500\n")
    noon = datetime(2026, 11, 26, 11, tzinfo=UTC)
    assert rate_at(planned, noon) == 500.0
    history.write_text("time,rate\n2026-11-02T10:00,700\n")
    assert rate_at(planned, noon) == 700.0


def test_an_interval_that_runs_as_a_week_begins_goes_on(planned: OperatedJob, with_calendar: Any) -> None:
    """No change at midnight before Monday; the same at the end of summer time in Berlin, a week of 169 hours."""
    with_calendar(events=[NIGHT])
    monday = datetime(2026, 10, 18, 22, tzinfo=UTC)
    plan = PlanStore(planned.workspace).current(JOB)
    found: list[tuple[datetime, float]] = []
    for hour in range(0, 24 * 15, 8):
        scheduled = scheduled_rate(planned.workspace, plan, monday + timedelta(hours=hour))
        assert scheduled is not None
        if not found or found[-1] != (scheduled.starts_at, scheduled.rate):
            found.append((scheduled.starts_at, scheduled.rate))
    starts = [(f"{at:%d %b %H:%M}", rate) for at, rate in found]
    assert starts == [
        ("18 Oct 17:45", 2000.0),
        ("19 Oct 02:00", 1000.0),
        ("25 Oct 18:45", 2000.0),
        ("26 Oct 03:00", 1000.0),
        ("01 Nov 18:45", 2000.0),
        ("02 Nov 03:00", 1000.0),
    ]


def test_what_is_ahead_is_what_the_weeks_have(planned: OperatedJob, with_calendar: Any) -> None:
    with_calendar(events=[NIGHT])
    plan = PlanStore(planned.workspace).current(JOB)
    found = calendar_of_plan(planned.workspace, plan)
    assert found is not None
    begin, end = datetime(2026, 10, 24, tzinfo=UTC), datetime(2026, 10, 30, tzinfo=UTC)
    _, ahead = found[1].ahead(begin, end)
    assert (ahead[0].starts_at, ahead[-1].ends_at) == (begin, end)
    assert all(one.ends_at == two.starts_at and one.rate != two.rate for one, two in pairwise(ahead))
    for hour in range(1, 24 * 6, 29):
        at = begin + timedelta(hours=hour)
        one = in_force(ahead, at)
        assert one is not None and one.rate == rate_at(planned, at)


def test_the_time_of_a_change_is_stated_or_seen_or_at_most_that_of_an_application(
    planned: OperatedJob, with_calendar: Any
) -> None:
    plan = PlanStore(planned.workspace).current(JOB)

    def rescale_s() -> float:
        found = calendar_of_plan(planned.workspace, plan)
        assert found is not None
        return found[1].rescale_s

    assert rescale_s() == 240.0
    with_calendar(rescale_s=None)
    assert rescale_s() == 120.0 + 120.0  # what a replan takes, and timeout_s of `apply`
    for seconds, outcome in ((31.0, "applied"), (47.0, "applied"), (300.0, "failed")):
        fields = {"outcome": outcome, "seconds": seconds, "reason": "a test"}
        record(planned.workspace, applied(plan.version, **fields))
    assert rescale_s() == 120.0 + 47.0


def applied(version: int, **fields: Any) -> Applied:
    return Applied(
        job=JOB,
        version=version,
        plan_digest="0" * 64,
        flink_url="http://127.0.0.1:1",
        flink_job="0" * 32,
        started_at="2026-11-01T00:00:00+00:00",
        method="rescale",
        placement="advice",
        changes=(),
        **fields,
    )


def test_a_calendar_without_a_source_of_its_season_is_refused(planned: OperatedJob, with_calendar: Any) -> None:
    with_calendar(base_rate=None)
    with pytest.raises(InvalidInput, match="no samples of its sources source are in"):
        rate_at(planned, datetime(2026, 11, 27, tzinfo=UTC))


def test_faults_of_a_calendar_have_their_line(planned: OperatedJob, tmp_path: Path) -> None:
    from pipelines.inputs.catalogue import load_job_file

    file = tmp_path / "wrong.yaml"
    text = planned.file.read_text().replace("factor: 3", "factor: -3")
    file.write_text(text)
    line = 1 + next(i for i, one in enumerate(text.splitlines()) if "factor" in one)
    with pytest.raises(InvalidInput, match=rf"line {line}\b.*operations\.calendar\.events.*factor"):
        load_job_file(str(file))
