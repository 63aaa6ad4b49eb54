"""What waits by what Kafka's consumer has fetched."""

from dataclasses import replace

import pytest

from models.capacity.observed.counters.counts import TaskCounts
from models.capacity.observed.waiting.fetched import waiting_by_fetches

BEFORE = TaskCounts(
    0, 0, runs=True, finished=False, worker="tm1", emitted=900.0, read=900.0, fetched=1000.0, polled_s=0.0, pending=0.0
)
NOW = replace(BEFORE, emitted=1300.0, read=1300.0, fetched=1450.0, polled_s=2.0, pending=30.0)
"""150 records are fetched and not read, and 30 waited behind them 2 s ago."""


def test_what_is_fetched_and_not_read_waits_and_what_came_since() -> None:
    assert waiting_by_fetches(BEFORE, NOW, rate=50.0) == 150 + 30 + 2 * 50


def test_what_the_source_will_drop_does_not_wait() -> None:
    """It emits one record of two; what it reports as pending is counted so already."""
    assert waiting_by_fetches(BEFORE, replace(NOW, emitted=650.0), rate=50.0) == 150 / 2 + 30 + 2 * 50


def test_after_a_start_what_was_counted_before_does_not_count() -> None:
    """The new task has fetched fewer records than the one before it."""
    assert waiting_by_fetches(None, NOW, rate=50.0) == 280
    started = replace(NOW, attempt=1, emitted=40.0, read=40.0, fetched=100.0)
    assert waiting_by_fetches(NOW, started, rate=50.0) == 60 + 30 + 2 * 50


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (BEFORE, replace(NOW, fetched=1800.0)),
        (BEFORE, replace(NOW, fetched=1250.0)),
        (replace(BEFORE, fetched=1450.0), NOW),
    ],
    ids=["as many as the consumer hands out", "a fetch that is not counted yet", "nothing fetched since"],
)
def test_a_fetch_of_many_records_does_not_say_what_waits(before: TaskCounts, now: TaskCounts) -> None:
    assert waiting_by_fetches(before, now, rate=50.0) is None


def test_where_nothing_was_read_since_nothing_need_be_fetched() -> None:
    idle = replace(BEFORE, read=1000.0, emitted=1000.0, polled_s=8.0)
    assert waiting_by_fetches(idle, idle, rate=0.0) == 0.0


@pytest.mark.parametrize("unknown", ["pending", "fetched", "read"])
def test_what_a_source_does_not_report_is_unknown(unknown: str) -> None:
    assert waiting_by_fetches(BEFORE, replace(NOW, **{unknown: None}), rate=50.0) is None


def test_a_source_that_has_read_nothing_does_not_say_what_waits() -> None:
    assert waiting_by_fetches(None, replace(NOW, emitted=0.0, read=0.0, fetched=0.0), rate=50.0) is None
