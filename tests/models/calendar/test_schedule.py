"""Schedules cover what is expected, early enough, change nothing in a freeze, and cost the least."""

from datetime import UTC, datetime, time, timedelta
from itertools import combinations, pairwise
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.calendar.rules import GRID_S, Calendar, DatedFreeze, StatedEvent
from models.calendar.schedule import LEAST_SHARE, ScheduledRate, _breaks, in_force, schedule
from models.calendar.season import Season
from models.errors import InvalidInput
from models.scaling.control.limits import FreezeWindow

CELL = timedelta(seconds=GRID_S)
FRIDAY = StatedEvent(name="Black Friday", start="2026-11-27T08:00", end="2026-11-28T00:00", factor=3)
BERLIN = ZoneInfo("Europe/Berlin")


def made(calendar: Calendar, running: ScheduledRate | None = None) -> list[ScheduledRate]:
    """Two days from midnight in Berlin."""
    begin = datetime(2026, 11, 26, 23, tzinfo=UTC)
    return schedule(calendar, Season.flat(1000.0, 900.0), begin, begin + timedelta(days=2), 240.0, running)


def local(one: ScheduledRate) -> tuple[str, str, float]:
    starts, ends = (at.astimezone(BERLIN) for at in (one.starts_at, one.ends_at))
    return f"{starts:%d %H:%M}", f"{ends:%d %H:%M}", one.rate


def test_a_plan_for_a_peak_is_made_ahead_of_it_and_left_at_its_end() -> None:
    """Ten minutes ahead, and four for the change, are 14, which three cells of five minutes cover."""
    before, peak, after = made(Calendar(time_zone="Europe/Berlin", events=(FRIDAY,)))
    assert local(before) == ("27 00:00", "27 07:45", 1000.0)
    assert local(peak) == ("27 07:45", "28 00:00", 3000.0)
    assert local(after) == ("28 00:00", "29 00:00", 1000.0)
    assert (peak.event, peak.rises_at) == ("Black Friday", datetime(2026, 11, 27, 7, tzinfo=UTC))
    assert (before.event, after.event) == (None, None)


def test_a_freeze_moves_the_change_before_it_and_the_one_back_behind_it() -> None:
    frozen = DatedFreeze(begin="2026-11-27T06:00", end="2026-11-28T09:00")
    before, peak, _ = made(Calendar(time_zone="Europe/Berlin", events=(FRIDAY,), freeze_dates=(frozen,)))
    # The change takes 4 minutes, and must be over at 06:00.
    assert local(before) == ("27 00:00", "27 05:55", 1000.0)
    assert local(peak) == ("27 05:55", "28 09:00", 3000.0)


def test_a_change_that_saves_less_than_it_costs_is_not_made() -> None:
    """Between two events, an hour at a third of the rate saves 2/3 of an hour at the peak's rate: 2,400 s."""
    events = tuple(
        StatedEvent(name=f"{hour}", start=f"2026-11-27T{hour}:00", duration_s=3600, factor=3) for hour in ("08", "10")
    )

    def rates(cost_s: float) -> list[float]:
        calendar = Calendar(time_zone="Europe/Berlin", events=events, before_s=0, least_between_s=0)
        found = schedule(
            calendar.model_copy(update={"change_cost_s": cost_s}),
            Season.flat(1000.0, 900.0),
            datetime(2026, 11, 27, tzinfo=UTC),
            datetime(2026, 11, 28, tzinfo=UTC),
            rescale_s=300.0,
        )
        return [one.rate for one in found]

    # The lead takes 5 minutes of the hour: 55 minutes at 2/3 are 2,200 s, for two changes of 1,100 s.
    assert rates(1099.0) == [1000.0, 3000.0, 1000.0, 3000.0, 1000.0]
    assert rates(1101.0) == [1000.0, 3000.0, 1000.0]


def test_the_shortest_time_between_changes_joins_close_peaks() -> None:
    events = tuple(
        StatedEvent(name=str(minute), start=f"2026-11-27T08:{minute}", duration_s=600, factor=3) for minute in (10, 50)
    )
    calendar = Calendar(time_zone="Europe/Berlin", events=events, before_s=0, change_cost_s=0, least_between_s=3600)
    found = made(calendar)
    assert [local(one) for one in found[1:-1]] == [("27 08:00", "27 09:00", 3000.0)]


def test_a_running_interval_keeps_its_rate_and_is_left_only_once_it_has_lasted() -> None:
    running = ScheduledRate(
        starts_at=datetime(2026, 11, 26, 22, tzinfo=UTC),
        ends_at=datetime(2026, 11, 27, 4, tzinfo=UTC),
        rate=1400.0,
        rises_at=datetime(2026, 11, 26, 22, tzinfo=UTC),
        event=None,
        event_begins_at=None,
    )
    calendar = Calendar(time_zone="Europe/Berlin", events=(FRIDAY,), least_between_s=7200)
    found = made(calendar, running=running)
    assert found[0] == running.model_copy(update={"ends_at": datetime(2026, 11, 27, 0, tzinfo=UTC)})
    assert [one.rate for one in found] == [1400.0, 1000.0, 3000.0, 1000.0]
    # One that is too low where a change of the calendar has frozen it is not kept.
    frozen = DatedFreeze(begin="2026-11-26T00:00", end="2026-11-27T12:00")
    assert made(calendar.model_copy(update={"freeze_dates": (frozen,)}), running=running)[0].rate == 3000.0


def test_an_interval_that_has_run_for_weeks_is_not_left_in_the_past() -> None:
    running = ScheduledRate(
        starts_at=datetime(2026, 10, 1, tzinfo=UTC),
        ends_at=datetime(2026, 11, 28, tzinfo=UTC),
        rate=1400.0,
        rises_at=datetime(2026, 10, 1, tzinfo=UTC),
        event=None,
        event_begins_at=None,
    )
    first, second, *_ = made(Calendar(time_zone="Europe/Berlin", events=(FRIDAY,)), running=running)
    assert first == running.model_copy(update={"ends_at": datetime(2026, 11, 26, 23, 5, tzinfo=UTC)})
    assert local(second) == ("27 00:05", "27 07:45", 1000.0)


def test_without_a_record_to_expect_there_is_no_schedule() -> None:
    begin = datetime(2026, 11, 26, tzinfo=UTC)
    with pytest.raises(InvalidInput, match="no record is expected from 2026-11-26 00:00:00 to 2026-11-27"):
        schedule(Calendar(time_zone="UTC"), Season.flat(0.0, 900.0), begin, begin + timedelta(days=1), 240.0)


def test_a_schedule_does_not_end_in_a_freeze() -> None:
    frozen = DatedFreeze(begin="2026-11-28T12:00", end="2026-11-30T12:00")
    sunday = StatedEvent(name="Sunday", start="2026-11-29T12:00", duration_s=3600, factor=2)
    *_, last = made(Calendar(time_zone="Europe/Berlin", events=(sunday,), freeze_dates=(frozen,)))
    assert local(last) == ("28 11:55", "30 12:00", 2000.0)


ZONES = {
    # Each with a change of the clock within the days after.
    "Europe/Berlin": datetime(2026, 3, 28, tzinfo=UTC),
    "America/New_York": datetime(2026, 10, 31, tzinfo=UTC),
    "Australia/Lord_Howe": datetime(2026, 4, 3, 12, tzinfo=UTC),  # by half an hour
    "Asia/Kolkata": datetime(2026, 6, 1, tzinfo=UTC),  # never, but half an hour off
}


@st.composite
def calendars(draw: st.DrawFn) -> tuple[Calendar, Season, datetime, float]:
    zone = draw(st.sampled_from(sorted(ZONES)))
    step_s = draw(st.sampled_from([900.0, 3600.0]))
    rates = draw(st.lists(st.floats(0.0, 1000.0), min_size=24, max_size=24))
    season = Season("day", step_s, tuple(rate for rate in rates for _ in range(int(3600 / step_s))))
    hour, minute = draw(st.integers(0, 23)), draw(st.integers(0, 59))
    calendar = Calendar(
        time_zone=zone,
        events=(
            StatedEvent(
                name="repeated",
                cron=f"{minute} {hour} * * *",
                duration_s=draw(st.integers(60, 20_000)),
                factor=draw(st.floats(0.5, 4.0)),
            ),
            StatedEvent(name="once", start=ZONES[zone] + timedelta(hours=20, minutes=7), duration_s=9000, rate=1500.0),
        ),
        freeze=draw(st.sampled_from([(), (FreezeWindow(begin=time(22, 3), end=time(1, 31)),)])),
        before_s=draw(st.sampled_from([0.0, 600.0, 1200.0])),
        least_between_s=draw(st.sampled_from([0.0, 3600.0])),
        change_cost_s=draw(st.sampled_from([0.0, 900.0])),
    )
    return calendar, season, ZONES[zone], draw(st.sampled_from([30.0, 240.0, 700.0]))


def expected(calendar: Calendar, season: Season, at: datetime) -> float:
    """The rate of an instant, straight from the definition."""
    base, (repeated, once) = season.at(at.astimezone(calendar.zone)), calendar.events
    found = []
    assert repeated.cron and repeated.duration_s and repeated.factor and once.start and once.duration_s
    minute, hour = map(int, repeated.cron.split()[:2])
    for back in range(2):
        day = at.astimezone(calendar.zone).date() - timedelta(days=back)
        begin = datetime(day.year, day.month, day.day, hour, minute, tzinfo=calendar.zone).astimezone(UTC)
        if begin <= at < begin + timedelta(seconds=repeated.duration_s):
            found.append(base * repeated.factor)
    if once.start <= at < once.start + timedelta(seconds=once.duration_s):
        found.append(max(1500.0, base))
    return max(found, default=base)


@settings(max_examples=8, deadline=None)
@given(calendars())
def test_every_rate_is_covered_ahead_of_it_and_no_freeze_holds_a_change(
    drawn: tuple[Calendar, Season, datetime, float],
) -> None:
    calendar, season, begin, rescale_s = drawn
    end = begin + timedelta(days=2)
    found = schedule(calendar, season, begin, end, rescale_s)
    assert found[0].starts_at == begin and found[-1].ends_at >= end
    assert all(one.ends_at == two.starts_at for one, two in pairwise(found))
    assert all(one.hours * 3600 >= calendar.least_between_s for one in found[1:-1])
    minutes = [begin + timedelta(minutes=minute, seconds=1) for minute in range(0, 2 * 1440, 11)]
    for at in minutes:
        wanted = expected(calendar, season, at)
        early = max(begin, at - timedelta(seconds=calendar.before_s + rescale_s))
        for then in (early, early + (at - early) / 2, at):
            planned = in_force(found, then)
            assert planned is not None and planned.rate >= wanted
    for window in calendar.freeze:
        for one in found[1:]:
            for after_s in np.arange(0, rescale_s, 30.0):
                assert not window.holds((one.starts_at + timedelta(seconds=float(after_s))).time())


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 9), min_size=2, max_size=9),
    st.lists(st.booleans(), min_size=9, max_size=9),
    st.integers(0, 4),
    st.sampled_from([0.0, 3.0, 11.0]),
)
def test_no_other_allowed_schedule_costs_less(rates: list[int], free: list[bool], least: int, cost: float) -> None:
    needed, count = np.array(rates, dtype=np.float64), len(rates)
    allowed = [i for i in range(1, count) if free[i]]

    def total(breaks: tuple[int, ...]) -> float:
        ends = [0, *breaks, count]
        return sum((j - i) * max(rates[i:j]) for i, j in pairwise(ends)) + cost * len(breaks)

    every = [chosen for size in range(len(allowed) + 1) for chosen in combinations(allowed, size)]
    fitting = [chosen for chosen in every if all(j - i >= least for i, j in pairwise(chosen))]
    found = _breaks(needed, np.array(free[:count]), least, cost, None)
    assert found is not None
    chosen = tuple(i for i, _ in found[1:])
    assert chosen in fitting
    assert total(chosen) == pytest.approx(min(map(total, fitting)))


def test_a_rate_of_nothing_is_planned_for_a_hundredth_of_the_highest() -> None:
    night = Season("day", 3600.0, tuple(0.0 if hour < 6 else 1000.0 for hour in range(24)))
    begin = datetime(2026, 6, 1, tzinfo=UTC)
    found = schedule(Calendar(), night, begin, begin + timedelta(days=1), 60.0)
    assert [one.rate for one in found] == [LEAST_SHARE * 1000.0, 1000.0]
