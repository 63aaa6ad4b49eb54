"""What a calendar may state, and which instant a time on the wall clock is."""

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from pydantic import ValidationError

from models.calendar.demand import occurrences
from models.calendar.rules import Calendar, StatedEvent, instant

BERLIN = ZoneInfo("Europe/Berlin")
ONCE = {"name": "Sale", "start": "2026-11-27T08:00", "end": "2026-11-28T00:00", "factor": 3}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"cron": "0 8 * * *"}, "exactly one of 'start' and 'cron'"),
        ({"start": None}, "exactly one of 'start' and 'cron'"),
        ({"duration_s": 60}, "exactly one of 'end' and 'duration_s'"),
        ({"factor": None}, "exactly one of 'factor' and 'rate'"),
        ({"rate": 5}, "exactly one of 'factor' and 'rate'"),
        ({"end": "2026-11-27T08:00"}, "an end must be after its begin"),
        ({"end": "2026-11-28T00:00Z"}, "both have an offset, or neither"),
        ({"start": 20261127}, "it must be a date and time such as 2026-11-27T08:00"),
        ({"start": None, "cron": "0 8 * * *"}, "it has no 'end'"),
        ({"start": None, "end": None, "duration_s": 60, "cron": "0 25 * * *"}, "names no time"),
        ({"start": None, "end": None, "duration_s": 60, "cron": "0 8 30 2 *"}, "names no time"),
        ({"start": None, "end": None, "duration_s": 60, "cron": "@daily"}, "five fields"),
    ],
)
def test_an_event_that_says_too_much_or_too_little_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        StatedEvent.model_validate(ONCE | changes)


@pytest.mark.parametrize("zone", ["Europe/Atlantis", "Europe", "../etc/passwd", ""])
def test_a_time_zone_must_exist(zone: str) -> None:
    with pytest.raises(ValidationError, match="time zone"):
        Calendar(time_zone=zone)


def test_a_time_that_the_clock_skips_is_an_hour_later_and_one_shown_twice_the_first() -> None:
    assert instant(datetime(2026, 3, 29, 2, 30), BERLIN) == datetime(2026, 3, 29, 1, 30, tzinfo=UTC)  # 03:30 in summer
    assert instant(datetime(2026, 10, 25, 2, 30), BERLIN) == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert instant(datetime(2026, 10, 25, 2, 30), BERLIN, last=True) == datetime(2026, 10, 25, 1, 30, tzinfo=UTC)
    assert instant(datetime(2026, 10, 25, 2, 30, tzinfo=UTC), BERLIN).hour == 2


def test_a_repeated_event_keeps_its_hour_on_the_wall_clock() -> None:
    weekly = StatedEvent(name="Match", cron="0 18 * * SUN", duration_s=7200, factor=2)
    calendar = Calendar(time_zone="Europe/Berlin", base_rate=1, events=(weekly,))
    found = occurrences(calendar, datetime(2026, 3, 20, tzinfo=UTC), datetime(2026, 4, 1, tzinfo=UTC))
    assert [one.begin for one in found] == [
        datetime(2026, 3, 22, 17, tzinfo=UTC),
        datetime(2026, 3, 29, 16, tzinfo=UTC),
    ]
    assert [(one.end - one.begin).total_seconds() for one in found] == [7200, 7200]


def test_an_event_that_began_before_a_time_reaches_into_it() -> None:
    calendar = Calendar(base_rate=1, events=(StatedEvent.model_validate(ONCE),))
    inside = datetime(2026, 11, 27, 20, tzinfo=UTC)
    assert len(occurrences(calendar, inside, datetime(2026, 11, 29, tzinfo=UTC))) == 1
    assert occurrences(calendar, datetime(2026, 11, 28, tzinfo=UTC), datetime(2026, 11, 29, tzinfo=UTC)) == []
