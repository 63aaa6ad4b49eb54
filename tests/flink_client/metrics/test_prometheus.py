"""A fake of Prometheus' HTTP API, for faults that a healthy server does not show; `test_named` uses a real one."""

import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from answering.server import AnsweringServer
from flink_client.metrics.prometheus import PrometheusReadings
from flink_client.metrics.readings import COUNTERS, TIMES
from flink_client.rest.answers import Vertex
from models.errors import InvalidInput, SluiceError
from testbeds.flink.measuring.meter import CounterMeter

VERTEX = Vertex("v1", "Calc", parallelism=1, running=1)
WINDOW = "flink_taskmanager_job_task_operator_"


class Answers:
    """The server's answers: samples (seconds ago, value) of each series."""

    def __init__(self) -> None:
        self.began = time.time()
        self.cpu: list[float] = [12.0, 10.0, 8.0]
        self.series: list[tuple[dict[str, str], list[tuple[float, float]]]] = []

    def counter(self, name: str, samples: list[tuple[float, float]], **labels: str) -> None:
        known = {"__name__": name, "task_id": "v1", "subtask_index": "0", "task_attempt_num": "0", "tm_id": "tm_1"}
        self.series.append((known | labels, samples))

    def counters(self, ago: list[float], **labels: str) -> None:
        """All counters of a task: a record a millisecond, idle half of the time."""
        for name in COUNTERS:
            per_s = 500.0 if name in TIMES[1:] else 0.0 if name in TIMES else 1000.0
            self.counter(f"flink_taskmanager_job_task_{name}", [(s, per_s * (100 - s)) for s in ago], **labels)

    def result(self, query: str) -> Any:
        if query == "time()":
            return [time.time(), str(time.time())]
        if "CPU_Time" in query:
            found = [({"tm_id": "tm_1"}, [(s, 1e9 * (100 - s)) for s in self.cpu])] if "tm_1" in query else []
        else:
            found = self.series
        return [
            {"metric": labels, "values": [[self.began - ago, str(value)] for ago, value in samples]}
            for labels, samples in found
        ]


@pytest.fixture
def answers() -> Answers:
    return Answers()


@pytest.fixture
def readings(answers: Answers) -> Iterator[Callable[[], PrometheusReadings]]:
    def answer(request: BaseHTTPRequestHandler, body: bytes) -> tuple[int, object]:
        query = parse_qs(urlsplit(request.path).query)["query"][0]
        return 200, {"status": "success", "data": {"result": answers.result(query)}}

    with AnsweringServer(answer) as server:
        yield lambda: PrometheusReadings(server.url, "job", ["tm.1"])


def test_each_scrape_is_a_reading_at_its_own_time(answers: Answers, readings: Callable[[], PrometheusReadings]) -> None:
    answers.counters([6.0, 4.0, 2.0])
    for state, value in (("a", 3.0), ("b", 4.0)):
        answers.counter(f"{WINDOW}rocksdb_bytes_read", [(2.0, value)], operator_id=state)
        latency = f"{WINDOW}state_name_valueStateGetLatency"
        answers.counter(latency, [(2.0, 1000 * value)], operator_id=state, state_name="s", quantile="0.5")
        answers.counter(latency, [(2.0, 9e9)], operator_id=state, state_name="s", quantile="0.99")
    answers.counter(f"{WINDOW}rocksdb_bytes_written", [(2.0, float("nan"))])
    made = readings()
    assert made.refresh_s == pytest.approx(2.0)
    found = made.of_vertex(VERTEX, by_operator=True)
    now = time.monotonic()
    assert [now - one.time_s for one in found] == pytest.approx([6.0, 4.0, 2.0], abs=1.0)
    assert [one.values["numRecordsIn"] for one in found] == [94_000.0, 96_000.0, 98_000.0]
    assert found[-1].values["rocksdb_bytes_read"] == 7.0
    assert found[-1].values["state_latency_s"] == pytest.approx(3.5e-6)
    assert "rocksdb_bytes_written" not in found[-1].values and "state_latency_s" not in found[0].values
    assert made.of_vertex(VERTEX, by_operator=True) == []
    assert [value for _, value in made.cpu_s("tm.1")] == pytest.approx([88.0, 90.0, 92.0])
    assert made.cpu_s("tm.1") == []


def test_of_two_scrape_jobs_one_is_used(answers: Answers, readings: Callable[[], PrometheusReadings]) -> None:
    answers.counters([4.0, 2.0], job="flink", instance="a:9249")
    answers.counters([3.0, 1.0], job="flink", instance="b:9249")
    assert len(readings().of_vertex(VERTEX, by_operator=False)) == 2


def test_a_task_that_is_restarted_while_it_is_read_is_reported(
    answers: Answers, readings: Callable[[], PrometheusReadings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flink_client.metrics.prometheus._ASK_EVERY_S", 0.0)
    answers.counters([6.0, 4.0])
    made = readings()
    assert len(made.of_vertex(VERTEX, by_operator=False)) == 2
    answers.counters([2.0], task_attempt_num="1")
    with pytest.raises(SluiceError, match=r"task 0 of vertex v1 was restarted .*attempt 0, then 1"):
        made.of_vertex(VERTEX, by_operator=False)


@pytest.mark.parametrize("order", [1, -1])
def test_what_was_scraped_before_a_rescale_is_left_out(
    answers: Answers, readings: Callable[[], PrometheusReadings], order: int
) -> None:
    answers.counters([6.0, 4.0])
    answers.counters([2.0], task_attempt_num="1")
    answers.series = answers.series[::order]
    now, (one,) = time.monotonic(), readings().of_vertex(VERTEX, by_operator=False)
    assert now - one.time_s == pytest.approx(2.0, abs=1.0)


def test_a_counter_that_was_reset_is_reported(answers: Answers, readings: Callable[[], PrometheusReadings]) -> None:
    """Only while measuring: before, a task that is being replaced is expected."""
    answers.counter("flink_taskmanager_job_task_numRecordsIn", [(4.0, 900.0), (2.0, 5.0)])
    CounterMeter(readings(), [VERTEX], []).read()
    measuring = CounterMeter(readings(), [VERTEX], [])
    measuring.begin()
    with pytest.raises(SluiceError, match="went from 900 back to 5"):
        measuring.read()


def test_one_scrape_may_be_missing_and_two_may_not(
    answers: Answers, readings: Callable[[], PrometheusReadings]
) -> None:
    for ago, fails in (([12.0, 10.0, 6.0, 4.0, 2.0], False), ([12.0, 10.0, 4.0, 2.0], True)):
        answers.series = []
        answers.counters(ago)
        meter = CounterMeter(readings(), [VERTEX], [])
        meter.read()
        end = time.monotonic() - (time.time() - answers.began) - 3.0
        if fails:
            with pytest.raises(SluiceError, match=r"for 6\.0 s while it was measured \(5 s at most\)"):
                meter.increments([end - 5.0, end])
        else:
            assert meter.increments([end - 5.0, end])["v1", 0]["numRecordsIn"] == pytest.approx([5000.0], rel=0.01)


def test_an_unscraped_task_manager_is_reported(answers: Answers, readings: Callable[[], PrometheusReadings]) -> None:
    answers.cpu = [2.0]
    with pytest.raises(InvalidInput, match=r"has 1 samples of 'tm\.1'"):
        readings()
