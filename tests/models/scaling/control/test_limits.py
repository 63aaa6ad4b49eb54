from datetime import UTC, time

import pytest
from pydantic import ValidationError

from models.scaling.control.limits import ControlLimits, FreezeWindow


@pytest.mark.parametrize(
    ("begin", "end", "open_at", "shut_at"),
    [("08:00", "10:00", "09:59", "10:00"), ("22:00", "06:00", "05:59", "21:59"), ("22:00", "06:00", "23:00", "06:00")],
)
def test_a_freeze_window_may_pass_midnight(begin: str, end: str, open_at: str, shut_at: str) -> None:
    window = FreezeWindow(begin=time.fromisoformat(begin), end=time.fromisoformat(end))
    assert window.holds(time.fromisoformat(open_at))
    assert not window.holds(time.fromisoformat(shut_at))


def test_a_freeze_window_has_a_length() -> None:
    with pytest.raises(ValidationError, match="end at another time than it begins"):
        FreezeWindow(begin=time(8), end=time(8))


def test_a_time_that_yaml_has_read_as_a_number_is_refused() -> None:
    # 22:00 without quotes is 22 x 60, which would be 22 minutes past midnight.
    with pytest.raises(ValidationError, match="a time of the day in quotes, such as '22:00', but got 1320"):
        FreezeWindow.model_validate({"begin": 1320, "end": "23:00"})


@pytest.mark.parametrize("zoned", ["22:00Z", "22:00+02:00", time(22, tzinfo=UTC)])
def test_a_time_of_the_day_with_a_time_zone_is_refused(zoned: object) -> None:
    # It cannot be compared with those of UTC, which have none.
    with pytest.raises(ValidationError, match="must be in UTC, without a time zone, such as '22:00', but got '22:00"):
        FreezeWindow.model_validate({"begin": "06:00", "end": zoned})


def test_limits_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ValidationError, match="least_tasks <= most_tasks must hold, but got 4 and 2"):
        ControlLimits(least_tasks=4, most_tasks=2)
    with pytest.raises(ValidationError, match="dollars_per_hour needs price_per_slot_hour"):
        ControlLimits(dollars_per_hour=3)
