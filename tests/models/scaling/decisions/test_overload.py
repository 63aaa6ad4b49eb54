"""When a source emits less than what arrives."""

import pytest

from models.scaling.decisions.overload import SourceLoad, SourceReading, overload, pending_records


def _overload(growth_per_s: float | None = None, **load: float) -> str | None:
    return overload(SourceReading(1000.0, (SourceLoad("events", **load),)), growth_per_s)


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
    assert _overload(growth_per_s, **load) == why


def test_one_source_that_is_held_back_is_enough() -> None:
    sources = (SourceLoad("a", backpressure=0.0), SourceLoad("b", backpressure=0.5))
    assert overload(SourceReading(10.0, sources), None) == "the source 'b' is backpressured 50% of the time"


def test_records_that_wait_are_known_where_every_source_reports_them() -> None:
    assert pending_records([SourceLoad("a", pending=2.0), SourceLoad("b", pending=3.0)]) == 5.0
    assert pending_records([SourceLoad("a", pending=2.0), SourceLoad("b")]) is None
    assert pending_records([]) is None
