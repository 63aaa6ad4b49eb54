"""What the schedule costs and saves, its events and freezes, and calendars that cannot be shown."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from models.errors import InvalidInput, SluiceError
from pipelines.calendar.costs import SizedRate
from pipelines.pages.calendar.detail import CalendarDetail, around, calendar_detail
from pipelines.pages.calendar.figures import calendar_pictures
from pipelines.pages.calendar.terms import MOST_TERMS
from pipelines.store.pins import PlanPin, keep_pin
from pipelines.store.workspace import Workspace
from workspaces.operated_job import JOB

BEFORE, AFTER = "2026-11-24T12:00", "2026-11-29T12:00"
NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)


def none_known(workspace: Workspace, job: str, rates: Sequence[float]) -> Mapping[float, SizedRate]:
    raise SluiceError("no model")


def looked(job: Any, sizes_of: Any = none_known) -> CalendarDetail:
    return calendar_detail(job.workspace, JOB, NOW, sizes_of)


def test_the_forecast_is_beside_the_peak_all_day(job: Any) -> None:
    forecast = job.look(BEFORE).forecast
    assert forecast is not None
    # From 06:45 to 23:00 UTC on Friday 16.25 h of 13 slots, and 151.75 h of 5; 168 h of 13 slots are 2,184.
    assert (forecast.hours, forecast.peak_rate) == (168.0, 3000.0)
    assert (forecast.slot_hours, forecast.peak_slot_hours, forecast.saved_slot_hours) == (970.0, 2184.0, 1214.0)
    assert forecast.saved_share == pytest.approx(1214 / 2184)
    assert (forecast.dollars, forecast.peak_dollars, forecast.saved_dollars) == (None, None, None)


def test_with_prices_it_is_in_dollars_too(job: Any) -> None:
    def sizes_of(workspace: Workspace, name: str, rates: Sequence[float]) -> Mapping[float, SizedRate]:
        from decimal import Decimal

        return {1000.0: SizedRate(5, Decimal("1")), 3000.0: SizedRate(13, Decimal("2.5"))}

    schedule = looked(job, sizes_of).schedule
    assert schedule is not None and schedule.forecast is not None
    # 151.75 h at 1 USD and 16.25 h at 2.50; 168 h at 2.50 are 420.
    assert (schedule.forecast.dollars, schedule.forecast.peak_dollars) == (192.375, 420.0)
    assert schedule.forecast.saved_dollars == 227.625
    assert [str(one.price_per_hour) for one in schedule.changes[1:]] == ["2.5", "1"]


def test_what_was_in_force_costs_what_its_versions_take(job: Any) -> None:
    job.follow(BEFORE)
    for due, published in (("2026-11-27T06:45", "2026-11-27T07:00"), ("2026-11-27T23:00", "2026-11-27T23:00")):
        job.replan(job.follow(due), published)
    schedule = job.look(AFTER)
    spent = schedule.spent
    assert spent is not None and not schedule.are_applied
    # The peak's version was published at 07:00 and in force for 16 h; 152 h of 5 slots.
    assert (spent.hours, spent.slot_hours, spent.peak_slot_hours) == (168.0, 968.0, 2184.0)
    assert (spent.saved_slot_hours, spent.peak_rate) == (1216.0, 3000.0)
    assert f"{spent.begin:%d %H:%M} {spent.end:%d %H:%M}" == "22 12:00 29 12:00"
    assert schedule.is_followed


def test_a_rate_out_of_reach_has_no_cost_but_a_reason(job: Any) -> None:
    def sizes_of(workspace: Workspace, name: str, rates: Sequence[float]) -> Mapping[float, SizedRate]:
        return {1000.0: SizedRate(5, None), 3000.0: SizedRate(None, None, "out of reach")}

    schedule = looked(job, sizes_of).schedule
    assert schedule is not None
    assert (schedule.forecast, schedule.forecast_unknown) == (None, "out of reach")
    assert [(one.slots, one.remark) for one in schedule.changes[1:]] == [(None, "out of reach"), (5, None)]


def test_without_a_model_the_schedule_is_shown(job: Any) -> None:
    schedule = looked(job).schedule
    assert schedule is not None and not schedule.is_followed
    assert (schedule.forecast, schedule.forecast_unknown, schedule.past) == (None, "no model", ())
    assert [(one.rate, one.slots) for one in schedule.changes] == [(1000.0, 5), (3000.0, None), (1000.0, None)]


def test_events_and_freezes_that_are_not_over_are_listed(job: Any) -> None:
    match = {"name": "Match", "cron": "30 17 * * SAT", "duration_s": 9000, "rate": 800000}
    once = {"name": "Sale", "start": "2027-01-02T08:00", "duration_s": 3600, "factor": 1.5}
    over = {"name": "Over", "start": "2026-11-01T08:00", "duration_s": 3600, "factor": 2}
    job.state(
        events=[once, match, over],
        freeze=[{"begin": "22:00", "end": "23:30"}, {"begin": "11:00", "end": "13:00"}],
        freeze_dates=[
            {"begin": "2026-12-24T00:00", "end": "2026-12-27T00:00"},
            {"begin": "2026-11-01T00:00", "end": "2026-11-02T00:00"},
        ],
    )
    schedule = looked(job).schedule
    assert schedule is not None
    assert [(one.name, f"{one.begin:%Y-%m-%d %H:%M}", one.effect, one.cron) for one in schedule.events] == [
        ("Match", "2026-11-28 16:30", "at least 800,000 records/s", "30 17 * * SAT"),
        ("Sale", "2027-01-02 07:00", "1.5 times the season", None),
    ]
    # At 12:00 UTC the window from 11:00 is open, and that of the night comes next.
    assert [(f"{one.begin:%m-%d %H:%M}", f"{one.end:%m-%d %H:%M}", one.daily) for one in schedule.freezes] == [
        ("11-24 11:00", "11-24 13:00", "11:00-13:00 UTC"),
        ("11-24 22:00", "11-24 23:30", "22:00-23:30 UTC"),
        ("12-23 23:00", "12-26 23:00", None),
    ]
    assert schedule.obstacle == "the calendar of wordcount is frozen"


def test_a_repeated_event_is_one_row_however_often_and_far_ahead(job: Any) -> None:
    hourly = {"name": "Hourly", "cron": "0 * * * *", "duration_s": 600, "factor": 2}
    leap_day = {"name": "Leap day", "cron": "0 12 29 2 *", "duration_s": 3600, "factor": 2}
    job.state(events=[leap_day, hourly])
    schedule = looked(job).schedule
    assert schedule is not None
    assert [(one.name, f"{one.begin:%Y-%m-%d %H:%M}") for one in schedule.events] == [
        ("Hourly", "2026-11-24 12:00"),  # it has just begun
        ("Leap day", "2028-02-29 11:00"),
    ]


def test_many_events_are_counted(job: Any) -> None:
    once = {"start": "2027-01-02T08:00", "duration_s": 3600, "factor": 2}
    job.state(events=[{"name": f"Event {i}", **once} for i in range(MOST_TERMS + 3)])
    schedule = looked(job).schedule
    assert schedule is not None
    assert (len(schedule.events), schedule.more_events) == (MOST_TERMS, 3)


def test_a_damaged_pin_is_named_and_hides_nothing_else(job: Any) -> None:
    keep_pin(
        job.workspace, PlanPin(job=JOB, version=1, by="Ada", reason="a test", pinned_at="2026-11-01T00:00:00+00:00")
    )
    (key,) = [key for key in job.workspace.list() if "pin" in key]
    job.workspace.write_bytes(key, b"{")
    detail = looked(job)
    assert detail.schedule is not None and detail.schedule.obstacle is None
    assert "is damaged" in detail.faults[0]


def test_a_job_without_a_calendar_has_no_schedule_and_no_fault(job: Any) -> None:
    job.operate(None)
    assert looked(job) == CalendarDetail(job=JOB, schedule=None, fault=None)
    assert calendar_pictures(around(job.workspace, JOB, NOW)).figures == {}


def test_a_calendar_that_cannot_be_read_says_why(job: Any) -> None:
    job.state(base_rate=None, history="rates.csv")
    assert "the history" in str(looked(job).fault) and looked(job).schedule is None
    job.file.unlink()
    assert str(job.file) in str(looked(job).fault)
    with pytest.raises(InvalidInput, match="There is no plan of a job named 'other'"):
        calendar_detail(job.workspace, "other", NOW, none_known)


def test_the_page_stores_nothing(job: Any) -> None:
    before = job.workspace.list()
    job.look(BEFORE)
    calendar_pictures(around(job.workspace, JOB, NOW))
    assert job.workspace.list() == before


def test_the_picture_is_that_of_the_command(job: Any) -> None:
    (name, figure), *_ = calendar_pictures(around(job.workspace, JOB, NOW)).figures.items()
    expected, planned = figure["data"]
    assert (name, planned["name"], expected["name"]) == ("schedule", "planned for", "expected")
    # On the clock of Berlin, from now on: due at 07:45 for 08:00, and over at midnight.
    assert list(zip(planned["x"], planned["y"], strict=True)) == [
        ("2026-11-24T13:00:00", 1000.0),
        ("2026-11-27T07:45:00", 3000.0),
        ("2026-11-28T00:00:00", 1000.0),
        ("2026-12-01T13:00:00", 1000.0),
    ]
    assert list(zip(expected["x"], expected["y"], strict=True)) == [
        ("2026-11-24T13:00:00", 1000.0),
        ("2026-11-27T08:00:00", 3000.0),
        ("2026-11-28T00:00:00", 1000.0),
        ("2026-12-01T13:00:00", 1000.0),
    ]
