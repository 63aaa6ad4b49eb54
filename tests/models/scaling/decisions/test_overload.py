"""The rate at which records arrive, where sources emit less than that, or more, since they catch up."""

import math
from collections.abc import Sequence

import pytest

from models.scaling.decisions.overload import (
    Growth,
    PendingRecords,
    SourceLoad,
    SourceReading,
    arriving_rate,
    overload,
    pending_records,
)


def reading(rate: float = 1000.0, **load: float) -> SourceReading:
    return SourceReading(rate, (SourceLoad("events", **load),))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("load", "growth_per_s", "why"),
    [
        ({}, None, None),
        ({"busyness": 0.94, "backpressure": 0.1, "pending": 1e9}, None, None),
        ({"backpressure": 0.11}, None, "the source 'events' is backpressured 11% of the time"),
        ({"busyness": 0.95, "backpressure": 0.0}, None, "the source 'events' is busy 95% of the time"),
        ({"pending": 500.0}, 50.0, None),
        ({"pending": 500.0}, 51.0, "the pending records of the sources grow by 51/s"),
        ({"pending": 500.0}, -1e6, None),
    ],
)
def test_backpressure_a_busy_source_or_a_growing_lag_is_overload(
    load: dict[str, float], growth_per_s: float | None, why: str | None
) -> None:
    assert overload(reading(**load), None if growth_per_s is None else Growth(growth_per_s, 15.0)) == why


def test_one_source_that_is_held_back_is_enough() -> None:
    sources = (SourceLoad("a", backpressure=0.0), SourceLoad("b", backpressure=0.5))
    assert overload(SourceReading(10.0, sources), None) == "the source 'b' is backpressured 50% of the time"


def test_records_that_wait_are_known_where_every_source_reports_them() -> None:
    assert pending_records([SourceLoad("a", pending=2.0), SourceLoad("b", pending=3.0)]) == 5.0
    assert pending_records([SourceLoad("a", pending=2.0), SourceLoad("b")]) is None
    assert pending_records([]) is None


def growths(pending: Sequence[float | None], every_s: float = 15.0, tasks: Sequence[int] | None = None) -> list[object]:
    """Of one reading every 15 s: (records/s, over seconds)."""
    follows = PendingRecords()
    found = [
        follows.see(every_s * n, [SourceLoad("events", pending=p, pending_tasks=2 if tasks is None else tasks[n])])
        for n, p in enumerate(pending)
    ]
    return [None if one is None else (one.per_s, one.over_s) for one in found]


def test_growth_is_over_the_minute_that_the_rate_is_the_mean_of() -> None:
    assert growths([0, 150, 300, 450, 600, 600, 600]) == [
        None,
        (10.0, 15.0),
        (10.0, 30.0),
        (10.0, 45.0),
        (10.0, 60.0),
        (7.5, 60.0),
        (5.0, 60.0),
    ]
    assert growths([0, 6000, 0], every_s=600.0) == [None, (10.0, 600.0), (-10.0, 600.0)]


def test_growth_is_unknown_again_where_other_tasks_report_or_none_does() -> None:
    assert growths([0, 150, 9000, 9150], tasks=[2, 2, 3, 3]) == [None, (10.0, 15.0), None, (10.0, 15.0)]
    assert growths([0, 150, None, 450, 600]) == [None, (10.0, 15.0), None, None, (10.0, 15.0)]


@pytest.mark.parametrize(
    ("reading_", "growth", "expected"),
    [
        # Nothing but the rate is known: it is the rate that arrives.
        (SourceReading(1000.0), None, (1000, 1000, 1000)),
        (reading(busyness=0.5), None, (1000, 1000, 1000)),
        # An overloaded source: at least as much arrives.
        (reading(busyness=1.0), None, (1000, 1000, math.inf)),
        # 400,000/s are offered, 23,000/s are achieved.
        (reading(23_000.0, busyness=1.0, pending=1e9), Growth(377_000.0, 60.0), (400_000, 400_000, math.inf)),
        # A lag that grows although the source is not full: it is held back by something else.
        (reading(pending=1e5), Growth(500.0, 60.0), (1500, 1500, math.inf)),
        # It catches up: 300/s arrive, but while it is full it is not planned smaller.
        (reading(busyness=1.0, pending=1e5), Growth(-700.0, 60.0), (300, 300, math.inf)),
        # It catches up without being full: at most as much arrives as is emitted.
        (reading(pending=1e5), Growth(-700.0, 60.0), (300, 300, 1000)),
        (reading(pending=0.0), Growth(-2000.0, 60.0), (0, 0, 1000)),
        # Known for less than the minute of the rate.
        (reading(pending=1e5), Growth(0.0, 59.0), (1000, 0, 1000)),
        (reading(pending=1e5), None, (1000, 0, math.inf)),
    ],
)
def test_what_arrives_is_what_is_emitted_plus_the_growth_of_the_lag(
    reading_: SourceReading, growth: Growth | None, expected: tuple[float, float, float]
) -> None:
    found = arriving_rate(reading_, growth)
    assert (found.estimate, found.least, found.most) == expected
    assert (found.doubt is None) == (found.most < math.inf and found.least == found.estimate)
