"""How soon one rescale can follow another."""

from models.scaling.sluice.learned.pace import Pace


def test_before_the_first_rescale_it_is_the_stated_time() -> None:
    assert Pace(60.0).between_s == 60.0


def test_it_is_the_median_of_what_was_seen_lately_the_stated_time_among_them() -> None:
    pace = Pace(60.0)
    pace.observe(115.0)
    assert pace.between_s == 60.0  # the lower one of 60 and 115
    pace.observe(118.0)
    assert pace.between_s == 115.0  # of 60, 115, 118
    for seconds in (30.0, 31.0, 32.0):
        pace.observe(seconds)
    assert pace.between_s == 32.0  # of 115, 118, 30, 31, 32


def test_ten_minutes_without_records_do_not_count_as_the_pace() -> None:
    pace = Pace(60.0)
    for seconds in (65.0, 600.0, 66.0):
        pace.observe(seconds)
    assert pace.between_s == 65.0  # the lower one of the two in the middle of 60, 65, 66, 600


def test_without_learning_nothing_changes_it() -> None:
    pace = Pace(60.0, learns=False)
    for _ in range(5):
        pace.observe(120.0)
    assert pace.between_s == 60.0
