"""The activity of tasks, from late reports."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flink_client.metrics.readings import COUNTERS, TIMES, Reading
from flink_client.rest.answers import Vertex
from testbeds.flink.measuring.meter import CounterMeter, TaskClock

VERTEX = Vertex(id="v", name="count", parallelism=1, running=1)
STARTED_S = 100.0
"""When the task was started."""
RATE_FROM = 10.0
"""Seconds after which it begins to take 1,000 records/s."""


def _taken(ran_s: float) -> dict[str, float]:
    """The counters of a task that has run for so long, idle at first and then busy."""
    values = dict.fromkeys(COUNTERS, 0.0)
    values[TIMES[0]] = 1000 * max(ran_s - RATE_FROM, 0.0)
    values[TIMES[2]] = 1000 * min(ran_s, RATE_FROM)
    values["numRecordsIn"] = values[TIMES[0]]
    return values


class _Late:
    """Values taken each second, which arrive after these delays in turn, seconds."""

    refresh_s = 1.0

    def __init__(self, *delays_s: float) -> None:
        self._delays, self._now = itertools.cycle(delays_s), 0

    def of_vertex(self, vertex: Vertex, by_operator: bool) -> list[Reading]:
        assert (vertex, by_operator) == (VERTEX, False)
        self._now += 1
        return [Reading(0, STARTED_S + self._now + next(self._delays), _taken(self._now))]

    def cpu_s(self, task_manager: str) -> list[tuple[float, float]]:
        raise AssertionError(task_manager)


def _read_by(late: _Late, seconds: int) -> CounterMeter:
    meter = CounterMeter(late, [VERTEX], [])
    for _ in range(seconds):
        meter.read()
    return meter


def test_what_came_late_counts_when_it_was_taken() -> None:
    # The news that was the least late says when the task was started, to 0.2 s; all other delays drop out.
    meter = _read_by(_Late(1.0, 0.2, 0.6), 20)
    assert meter.covers(STARTED_S + 10, STARTED_S + 20) and not meter.covers(STARTED_S + 10, STARTED_S + 20.3)
    begin = STARTED_S + RATE_FROM + 0.2
    (did,) = meter.increments([begin - 5, begin, begin + 5]).values()
    assert did["numRecordsIn"].tolist() == pytest.approx([0.0, 5000.0])


def test_tasks_that_have_finished_are_not_waited_for_and_did_nothing() -> None:
    rules = Vertex(id="r", name="rules", parallelism=2, running=0, finished=2)
    meter = CounterMeter(_Late(0.0), [VERTEX, rules], [], done={"r"})
    for _ in range(20):
        meter.read()  # asks for VERTEX alone
    assert meter.has_read_all and meter.covers(STARTED_S + 10, STARTED_S + 20)
    did = meter.increments([STARTED_S + 10, STARTED_S + 15, STARTED_S + 20])
    assert set(did) == {("v", 0), ("r", 0), ("r", 1)}
    assert did["r", 1]["numRecordsIn"].tolist() == [0.0, 0.0]


def test_news_counts_from_when_it_was_taken_not_from_when_it_came() -> None:
    meter = _read_by(_Late(0.9, 0.1), 4)
    assert meter.has_news_since(STARTED_S + 4.0) and not meter.has_news_since(STARTED_S + 4.2)


def test_a_task_that_does_not_report_all_times_counts_at_its_arrival() -> None:
    values = {name: value for name, value in _taken(5.0).items() if name != TIMES[0]}
    assert TaskClock().dated(Reading(0, 107.0, values)) == 107.0


@given(st.lists(st.floats(0.0, 0.99), min_size=1, max_size=30))
def test_dates_are_in_order_and_never_after_the_news(delays_s: list[float]) -> None:
    clock, before = TaskClock(), -1.0
    for ran_s, delay_s in enumerate(delays_s, start=1):
        came = STARTED_S + ran_s + delay_s
        taken = clock.dated(Reading(0, came, _taken(ran_s)))
        assert STARTED_S + ran_s - 1e-6 <= taken <= came + 1e-6 and taken >= before - 1e-6
        before = taken
