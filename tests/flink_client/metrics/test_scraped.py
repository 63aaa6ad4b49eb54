"""Readings of the past from a server that answers as Prometheus does; `test_on_flink` has a real one of a real Flink."""

import re
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest

from flink.observed import COUNT, JOB_ID, SINK, SOURCE, ObservedFlink
from flink.scraping_prometheus import OPERATOR, RATE, Scraping
from flink_client.jobs.running import NotRunning
from flink_client.metrics.prometheus_api import Prometheus
from flink_client.metrics.scraped import ScrapedCounts, scraped_counts
from flink_client.rest.client import FlinkRest
from models.capacity.observed.counters.intervals import intervals
from models.errors import SluiceError


@pytest.fixture
def prometheus() -> Iterator[Scraping]:
    with Scraping() as server:
        yield server


@pytest.fixture
def read(prometheus: Scraping) -> Iterator[Callable[[], ScrapedCounts]]:
    with ObservedFlink() as flink, FlinkRest(flink.url, patience_s=0.0) as rest:
        with Prometheus(prometheus.url, timeout_s=30.0) as client:
            yield lambda: scraped_counts(client, rest, JOB_ID, 60.0)
        assert {request.split()[0] for request in flink.requests} == {"GET"}


def test_the_past_is_read_as_if_it_had_been_watched(prometheus: Scraping, read: Callable[[], ScrapedCounts]) -> None:
    found = read()
    assert found.step_s == pytest.approx(5.0)
    assert len(found.readings) == 13
    assert found.missing == ()
    assert all(b.time_s - a.time_s == pytest.approx(5.0) for a, b in pairwise(found.readings))
    done = intervals(found.readings)
    assert len(done) == 12 * 5
    assert sum(one.records_in for one in done if one.vertex == SOURCE) == pytest.approx(RATE * 60)
    assert sum(one.records_in for one in done if one.vertex == COUNT) == pytest.approx(RATE * 60)
    assert {one.seconds for one in done} == {5.0}
    assert sum(one.busy_s or 0.0 for one in done if one.vertex == SINK) == pytest.approx(2 * 60 * 0.6)
    source, count, _ = found.readings[-1].vertices
    # 50 records wait to be read, of which half are dropped.
    assert (source.tasks[0].pending, source.tasks[0].partitions) == (25.0, 8)
    assert source.tasks[0].age_s == 0.04, "that of the other source is unknown"
    state = [one.state for one in done if one.vertex == COUNT and one.state is not None]
    assert sum(one.read_bytes for one in state) == pytest.approx(10 * RATE * 60)
    assert (count.max_parallelism, count.operators) == (128, ("count",))
    (worker,) = found.readings[-1].workers.values()
    assert (worker.cpu_s, worker.heap_used) == (pytest.approx(30.0), 0.25)
    assert all(re.search(r"\[60s\]$", query) for query in prometheus.queries)


def test_what_kafkas_consumer_has_fetched_counts(prometheus: Scraping, read: Callable[[], ScrapedCounts]) -> None:
    """80 records are fetched and not read, of which half are dropped, and 25 wait behind them."""
    prometheus.fetched_ahead = 80.0
    assert read().readings[-1].vertices[0].tasks[0].pending == pytest.approx(80 / 2 + 25)


def test_a_missing_scrape_is_bridged_and_several_are_not_counted(
    prometheus: Scraping, read: Callable[[], ScrapedCounts]
) -> None:
    prometheus.skips = frozenset({4})
    assert sum(one.records_in for one in intervals(read().readings) if one.vertex == COUNT) == pytest.approx(RATE * 60)
    prometheus.skips = frozenset(range(4, 9))
    readings = read().readings
    assert any(not task.runs for reading in readings for task in reading.vertices[0].tasks)
    # Before the gap 15 s, after it 15 s.
    assert sum(one.records_in for one in intervals(readings) if one.vertex == COUNT) == pytest.approx(RATE * 30)


def test_a_restart_is_no_negative_rate(prometheus: Scraping, read: Callable[[], ScrapedCounts]) -> None:
    prometheus.restart = 6
    readings = read().readings
    assert {task.attempt for reading in readings for task in reading.vertices[0].tasks} == {0, 1}
    assert sum(one.records_in for one in intervals(readings) if one.vertex == COUNT) == pytest.approx(RATE * (25 + 30))


def test_of_two_scrapers_one_counts(prometheus: Scraping, read: Callable[[], ScrapedCounts]) -> None:
    prometheus.scrapers = ("flink", "again")
    assert sum(one.records_in for one in intervals(read().readings) if one.vertex == COUNT) == pytest.approx(RATE * 60)


def test_what_is_not_scraped_is_said(prometheus: Scraping, read: Callable[[], ScrapedCounts]) -> None:
    jvm = "flink_taskmanager_Status_JVM_"
    names = ("CPU_Time", "GarbageCollector_All_Time", "Memory_Heap_Used", "Memory_Heap_Max")
    prometheus.silent = frozenset({f"{OPERATOR}pendingRecords", *(f"{jvm}{name}" for name in names)})
    found = read()
    assert found.missing == ("tm1",)
    assert found.readings[-1].vertices[0].tasks[0].pending is None
    prometheus.scrapes = 0
    with pytest.raises(SluiceError, match=r"no samples of job .* PrometheusReporter be on"):
        read()


@pytest.mark.parametrize("result", [None, [{}], [{"metric": {}, "values": [[1]]}], "text"])
def test_answers_of_another_form_are_explained(
    prometheus: Scraping, read: Callable[[], ScrapedCounts], result: object
) -> None:
    prometheus.answer = (200, {"status": "success", "data": {"resultType": "matrix", "result": result}})
    with pytest.raises(SluiceError, match=r"unexpected answer|no samples"):
        read()
    prometheus.answer = (503, "starting")
    with pytest.raises(SluiceError, match="refuses the query: status 503"):
        read()


def test_a_time_in_which_no_task_was_scraped_twice_is_too_short(
    prometheus: Scraping, read: Callable[[], ScrapedCounts]
) -> None:
    prometheus.scrapes, prometheus.later_s = 1, 2.0
    with pytest.raises(SluiceError, match=r"scraped no task of job .* twice in the last 60 s"):
        read()
    prometheus.scrapes = 3
    assert len(read().readings) == 3


def test_a_job_that_has_ended_is_not_read(prometheus: Scraping) -> None:
    with (
        ObservedFlink(state="FINISHED") as flink,
        FlinkRest(flink.url) as rest,
        Prometheus(prometheus.url, timeout_s=30.0) as client,
        pytest.raises(NotRunning, match="is finished"),
    ):
        scraped_counts(client, rest, JOB_ID, 60.0)
