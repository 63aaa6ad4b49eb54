"""Each scheduled change is asked for once, ahead of its peak, in no freeze, and not below what still arrives."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from models.scaling.decisions.overload import SourceReading
from pipelines.calendar.follow import CalendarFollower, jobs_with_calendar
from pipelines.calendar.record import CalendarChange, change_key, read_change
from pipelines.rates.follow import JobFollower
from pipelines.rates.reading import RateUnknown
from pipelines.rates.record import take
from pipelines.rates.status import read_status
from pipelines.store.pins import release_pin
from pipelines.store.plans import PlanStore
from workspaces.operated_job import JOB, OperatedJob

PEAK = f"calendar-changes/{JOB}/20261127T064500Z-3000.json"  # 14 minutes before 08:00 in Berlin, on the grid
RULES = {
    "rates": {"prometheus": {"url": "http://127.0.0.1:1", "query": "q"}, "timeout_s": 1.0},
    "polls": 2,
    "poll_interval_s": 1.0,
    "cool_down_s": 0.0,
}


def asked(planned: OperatedJob, day: Any, *, read: Any = None) -> CalendarChange | None:
    """What a follower asks for that was just started."""
    return CalendarFollower(planned.workspace, JOB, now=day, **({"read": read} if read else {})).poll()


def reading(rate: float) -> Callable[..., SourceReading]:
    return lambda *_: SourceReading(rate)


def test_a_change_is_asked_for_once_and_ahead_of_the_peak(planned: OperatedJob, day: Any) -> None:
    follower = CalendarFollower(planned.workspace, JOB, now=day)
    found = []
    day.at("2026-11-27T05:00")
    for _ in range(36):  # three hours
        found += [(day.now, change)] if (change := follower.poll()) else []
        day.now += timedelta(minutes=5)
    ((at, change),) = found
    assert f"{at:%H:%M:%S}" == "06:45:00"
    assert (change.key, change.scheduled.rate, change.old_rate, change.plan_version) == (PEAK, 3000.0, 1000.0, 1)
    assert change.cause == (
        f"calendar: Black Friday from 08:00 on Fri 27 Nov 2026 (Europe/Berlin); triggered by {PEAK}"
    )


def test_another_or_restarted_follower_does_not_ask_again(planned: OperatedJob, day: Any) -> None:
    day.at("2026-11-27T06:50")  # no poll at 06:45
    one, other = (CalendarFollower(planned.workspace, JOB, now=day) for _ in range(2))
    first = one.poll()
    assert first is not None
    assert one.poll() is None
    # The other one cannot know whether the event has arrived; a run takes the change once.
    assert other.poll() == first and other.poll() is None
    assert [take(planned.workspace, PEAK, run) for run in ("a", "b", "a")] == [True, False, True]
    assert asked(planned, day) is None


def test_what_was_missed_is_not_made_up_for(planned: OperatedJob, day: Any) -> None:
    day.at("2026-11-28T12:00")
    assert asked(planned, day) is None  # planned for 1,000 already, and the peak is over


def test_a_freeze_of_today_holds_the_change(planned: OperatedJob, day: Any, with_calendar: Any) -> None:
    day.at("2026-11-27T06:30")
    with_calendar(freeze=[{"begin": "06:00", "end": "07:30"}])
    assert asked(planned, day) is None  # due at 05:55, when there was no poll
    day.at("2026-11-27T07:29")
    assert asked(planned, day) is None
    day.at("2026-11-27T07:30")
    change = asked(planned, day)
    assert change is not None and change.scheduled.rate == 3000.0


def test_a_pinned_job_keeps_its_plan(planned: OperatedJob, day: Any) -> None:
    planned.publish(3, rate=1000.0)
    PlanStore(planned.workspace).rollback(JOB, 1, "2026-01-02T00:00:00+00:00", "Ada", "a test")
    day.at("2026-11-27T06:50")
    assert asked(planned, day) is None
    release_pin(planned.workspace, JOB)
    assert asked(planned, day) is not None


def test_a_plan_is_not_made_smaller_while_more_arrives(planned: OperatedJob, day: Any, with_calendar: Any) -> None:
    with_calendar(replan=RULES)
    day.at("2026-11-27T06:45")
    assert asked(planned, day, read=reading(500.0)) is not None  # up: whatever arrives now
    planned.publish(6, rate=3000.0)
    day.at("2026-11-27T23:00")  # midnight in Berlin
    assert asked(planned, day, read=reading(1101.0)) is None

    def gone(*_: object) -> SourceReading:
        raise RateUnknown("Prometheus does not answer")

    assert asked(planned, day, read=gone) is None
    change = asked(planned, day, read=reading(1100.0))
    assert change is not None and change.scheduled.rate == 1000.0


def test_a_followed_rate_does_not_undo_the_plan_for_a_peak(planned: OperatedJob, day: Any, with_calendar: Any) -> None:
    """Before a peak that is planned for, less arrives than the plan is for; above the schedule, the band decides."""
    with_calendar(replan=RULES)
    seconds = [0.0]

    def polled(rate: float) -> list[float]:
        found = []
        for _ in range(3):
            seconds[0] += 1.0
            follower._read = reading(rate)
            found += [event.change.new_rate] if (event := follower.poll()) else []
        return found

    follower = JobFollower(planned.workspace, JOB, clock=lambda: seconds[0], now=day)
    day.at("2026-11-27T06:46")
    assert polled(1000.0) == []
    status = read_status(planned.workspace, JOB)
    assert status is not None and status.reason == "its calendar asks for a plan for 3,000.0 records/s"
    planned.publish(6, rate=3000.0)
    assert polled(1000.0) == []  # without the calendar, a change to 1,000
    assert polled(4000.0) == [4000.0]
    planned.publish(8, rate=4000.0)
    assert polled(1000.0) == [] and polled(1000.0) == []  # 3,000 is within the band around 4,000
    day.at("2026-11-28T12:00")
    assert polled(1000.0) == [1000.0]


def test_a_wrong_calendar_is_logged_and_followed_on(
    planned: OperatedJob, day: Any, with_calendar: Any, caplog: pytest.LogCaptureFixture
) -> None:
    follower = CalendarFollower(planned.workspace, JOB, now=day)
    day.at("2026-11-27T06:50")
    with_calendar(base_rate=None, history="rates.csv")
    assert follower.poll() is None
    assert "the calendar of wordcount is not followed: the history" in caplog.messages[-1]
    with_calendar()
    assert follower.poll() is not None


def test_only_jobs_with_a_plan_and_a_calendar_are_followed(planned: OperatedJob) -> None:
    assert jobs_with_calendar(planned.workspace) == [JOB]
    planned.operate(None)
    assert jobs_with_calendar(planned.workspace) == []


def test_a_damaged_change_is_none_and_a_foreign_key_too(planned: OperatedJob, day: Any) -> None:
    day.at("2026-11-27T06:50")
    change = asked(planned, day)
    assert change is not None and read_change(planned.workspace, change.key) == change
    assert change_key(JOB, change.scheduled) == PEAK
    planned.workspace.write_bytes(PEAK, b"{")
    assert read_change(planned.workspace, PEAK) is None
    assert read_change(planned.workspace, "plans/wordcount/v000001.json") is None
    assert isinstance(change.reported_at, datetime)
