"""What a calendar schedules around an instant, with and without stored weeks; nothing is stored."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from pipelines.calendar.scheduling import calendar_of_plan, inputs_of, scheduled_rate
from pipelines.calendar.timeline import Timeline, timeline
from pipelines.store.plans import PlanStore
from workspaces.operated_job import JOB, OperatedJob

NIGHT = {"name": "Night", "cron": "0 20 * * SUN", "duration_s": 8 * 3600, "factor": 2}
"""From Sunday to Monday, in Berlin: due 14 minutes before 20:00, on the grid of five minutes."""
TUESDAY = datetime(2026, 11, 24, 12, tzinfo=UTC)


def around(planned: OperatedJob, now: datetime = TUESDAY) -> Timeline:
    found = calendar_of_plan(planned.workspace, PlanStore(planned.workspace).current(JOB))
    assert found is not None
    _, calendar, folder = found
    return timeline(planned.workspace, calendar, inputs_of(calendar, folder), now, now + timedelta(days=7))


def follow(planned: OperatedJob, now: datetime) -> None:
    """As the follower of the calendar does: the week's schedule is stored."""
    assert scheduled_rate(planned.workspace, PlanStore(planned.workspace).current(JOB), now) is not None


def outline(found: Timeline) -> list[tuple[str, float]]:
    return [(f"{one.due_at:%a %d %H:%M}", one.scheduled.rate) for one in found.entries]


def test_a_calendar_that_is_not_followed_has_no_past_week(planned: OperatedJob, with_calendar: Any) -> None:
    with_calendar(events=[NIGHT])
    found = around(planned)
    assert not found.is_stored
    # From midnight before Monday in Berlin; the peak of the Sunday before still lasts then.
    assert outline(found) == [
        ("Sun 22 23:00", 2000.0),
        ("Mon 23 03:00", 1000.0),
        ("Sun 29 18:45", 2000.0),
        ("Mon 30 03:00", 1000.0),
        ("Sun 06 18:45", 2000.0),
    ]
    assert planned.workspace.list("calendar") == []


def test_a_followed_one_begins_with_the_week_before(planned: OperatedJob, with_calendar: Any) -> None:
    with_calendar(events=[NIGHT])
    follow(planned, TUESDAY - timedelta(days=7))
    follow(planned, TUESDAY)
    found = around(planned)
    assert found.is_stored
    assert outline(found)[:4] == [
        ("Sun 15 23:00", 2000.0),
        ("Mon 16 03:00", 1000.0),
        ("Sun 22 18:45", 2000.0),
        ("Mon 23 03:00", 1000.0),
    ]
    assert all(one.ends_at == two.due_at for one, two in pairwise(found.entries))
    first_night = found.entries[2]
    assert (first_night.ends_at - first_night.due_at) == timedelta(hours=8, minutes=15)  # over midnight before Monday


def test_a_changed_calendar_is_followed_again_from_its_own_schedule(planned: OperatedJob, with_calendar: Any) -> None:
    with_calendar(events=[NIGHT])
    follow(planned, TUESDAY)
    with_calendar(events=[NIGHT], base_rate=500.0)
    found = around(planned)
    assert not found.is_stored and found.entries[1].scheduled.rate == 500.0


def test_the_parts_in_a_time_have_its_ends(planned: OperatedJob, with_calendar: Any) -> None:
    with_calendar(events=[NIGHT])
    begin = datetime(2026, 11, 29, 12, tzinfo=UTC)
    parts = around(planned).between(begin, begin + timedelta(days=1))
    assert [(one.hours, one.rate) for one in parts] == [(6.75, 1000.0), (8.25, 2000.0), (9.0, 1000.0)]
