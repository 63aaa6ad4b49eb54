"""The state of each scheduled change, from before it is due until its time is over."""

from typing import Any

from pipelines.pages.calendar.changes import ScheduledChange
from pipelines.pages.calendar.detail import CalendarSchedule
from pipelines.rates.record import take
from pipelines.store.pins import release_pin
from pipelines.store.plans import PlanStore
from workspaces.operated_job import JOB

DAY_BEFORE, DUE, IN_IT, AFTER = "2026-11-26T12:00", "2026-11-27T06:45", "2026-11-27T12:00", "2026-11-28T12:00"
"""The peak begins at 07:00 UTC; its replan 14 minutes earlier, on the grid of five minutes."""


def states(changes: tuple[ScheduledChange, ...]) -> list[tuple[float, str, int | None]]:
    return [(one.rate, one.state, one.version) for one in changes]


def peak(schedule: CalendarSchedule) -> ScheduledChange:
    (found,) = [one for one in (*schedule.changes, *schedule.past) if one.rate == 3000.0]
    return found


def test_a_coming_change_says_when_it_is_due_and_in_force(job: Any) -> None:
    job.follow(DAY_BEFORE)
    schedule = job.look(DAY_BEFORE)
    assert states(schedule.changes) == [(1000.0, "in force", 1), (3000.0, "coming", None), (1000.0, "coming", None)]
    one = peak(schedule)
    assert f"{one.due_at:%H:%M} {one.runs_at:%H:%M} {one.ends_at:%d %H:%M}" == "06:45 06:49 27 23:00"
    assert (one.reason, one.slots, one.price_per_hour) == ("Black Friday at Fri 08:00", 13, None)


def test_a_change_goes_from_due_to_its_version_and_is_history_then(job: Any) -> None:
    job.follow(DAY_BEFORE)
    assert peak(job.look(DUE)).remark == "not asked for yet"
    change = job.follow(DUE)
    one = peak(job.look(DUE))
    assert (one.state, one.remark) == ("due", "asked for; no run of the DAG replan has taken it")
    take(job.workspace, change.key, "a run")
    assert peak(job.look(DUE)).remark == "asked for; a run of the DAG replan has taken it"
    assert job.replan(change, "2026-11-27T06:46") == 2
    schedule = job.look("2026-11-27T06:47")
    assert states(schedule.changes) == [(3000.0, "in force", 2), (1000.0, "coming", None)]
    job.replan(job.follow("2026-11-27T23:00"), "2026-11-27T23:01")
    schedule = job.look(AFTER)
    assert states(schedule.changes) == [(1000.0, "in force", 3)]
    assert states(schedule.past) == [(3000.0, "replanned", 2)]


def test_a_change_to_the_rate_of_the_plan_is_skipped(job: Any) -> None:
    event = {"start": "2026-11-27T08:00", "end": "2026-11-28T00:00", "rate": 3500.0}
    job.state(base_rate=3000.0, events=[{"name": "Black Friday", **event}])
    job.publish_at("2026-11-26T00:00", 8, 3500.0)
    job.follow(DAY_BEFORE)
    (one,) = [one for one in job.look(AFTER).past if one.rate == 3500.0]
    assert (one.state, one.version, one.remark) == ("skipped", 2, "version 2 was for this rate already")


def test_a_version_for_another_rate_takes_the_place_of_the_scheduled_one(job: Any) -> None:
    job.follow(DAY_BEFORE)
    job.replan(job.follow(DUE), "2026-11-27T06:46")
    job.publish_at("2026-11-27T09:00", 7, 3500.0)  # as for a followed rate
    one = peak(job.look(IN_IT))
    assert (one.state, one.version, one.remark, one.slots) == ("replanned", 2, "version 3 is in force", 13)


def test_a_change_of_a_pinned_job_is_due_and_then_skipped(job: Any) -> None:
    job.follow(DAY_BEFORE)
    job.publish(3, rate=1000.0)
    PlanStore(job.workspace).rollback(JOB, 1, "2026-11-01T00:00:00+00:00", "Ada", "a test")
    assert job.follow(IN_IT) is None
    one = peak(job.look(IN_IT))
    assert one.state == "due" and "pinned to version 3 of its plan by Ada" in str(one.remark)
    release_pin(job.workspace, JOB)
    assert peak(job.look(IN_IT)).remark == "not asked for yet"
    one = peak(job.look(AFTER))
    assert (one.state, one.version, one.remark) == ("skipped", None, "no change was asked for")


def test_a_change_that_no_version_followed_is_skipped(job: Any) -> None:
    job.follow(DAY_BEFORE)
    job.follow(DUE)
    one = peak(job.look(AFTER))
    assert (one.state, one.remark) == ("skipped", "it was asked for, and no version for it is known")


def test_a_freeze_of_today_is_named(job: Any) -> None:
    job.state(freeze=[{"begin": "06:00", "end": "07:30"}])
    assert job.follow("2026-11-27T07:00") is None
    schedule = job.look("2026-11-27T07:00")
    assert schedule.obstacle == "the calendar of wordcount is frozen"
    assert (peak(schedule).state, peak(schedule).remark) == ("due", schedule.obstacle)


def test_a_rollback_to_the_version_of_a_change_is_not_the_change(job: Any) -> None:
    job.follow(DAY_BEFORE)
    change = job.follow(DUE)
    job.replan(change, "2026-11-27T06:46")
    job.publish_at("2026-11-27T07:30", 2, 900.0)
    PlanStore(job.workspace).rollback(JOB, 2, "2026-11-27T08:00:00+00:00", "Ada", "a test")
    one = peak(job.look(IN_IT))
    assert (one.state, one.version, one.remark) == ("replanned", 2, "version 4 is in force")
