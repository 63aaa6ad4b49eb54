"""Rates from a server that answers as Flink does: what the source tasks emit, by their own meters."""

from collections.abc import Iterator
from typing import Any

import pytest

from flink.server import JOB_ID, FakeFlink
from models.scaling.decisions.overload import SourceLoad
from pipelines.inputs.operations.operations import RateOrigin
from pipelines.rates.origin import describe, read_rate
from pipelines.rates.reading import RateUnknown

SOURCE, CHAIN = "a" * 32, "b" * 32


@pytest.fixture
def flink() -> Iterator[FakeFlink]:
    """Two source tasks that emit 1500 records/s together, and a chain behind them."""
    made = FakeFlink()
    made.tasks = {SOURCE: 2, CHAIN: 1}
    sent = [{"id": SOURCE, "ship_strategy": "HASH"}]
    made.plan = {
        "nodes": [
            {"id": SOURCE, "description": "source", "parallelism": 2},
            {"id": CHAIN, "description": "chain", "parallelism": 1, "inputs": sent},
        ]
    }
    yield made
    made.close()


def origin(flink: FakeFlink, **fields: Any) -> RateOrigin:
    return RateOrigin.model_validate({"flink": {"url": flink.url, **fields}, "timeout_s": 2})


def test_a_rate_is_the_sum_over_the_source_tasks(flink: FakeFlink) -> None:
    assert read_rate(origin(flink), "wordcount").rate == pytest.approx(1500.0)
    assert "numRecordsOutPerSecond of the sources of wordcount" in describe(origin(flink), "wordcount")


def test_the_job_is_known_by_its_own_name_or_that_of_the_file_or_by_an_id(flink: FakeFlink) -> None:
    for named in ("wordcount", JOB_ID):
        assert read_rate(origin(flink, job=named), "another").rate == pytest.approx(1500.0)
    with pytest.raises(RateUnknown, match="no job named 'another' runs"):
        read_rate(origin(flink), "another")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((200, "<html>"), "does not answer as Flink's REST interface does|something other"),
        ((200, {"jobs": 3}), "does not answer as Flink's REST interface does|something other"),
        ((200, []), "does not answer as Flink's REST interface does|something other"),
        ((500, {"errors": ["Service unavailable\n\tat a.b(C)"]}), "Service unavailable"),
        ((404, {"errors": ["Not found"]}), "Not found"),
    ],
    ids=["html", "other", "list", "error", "missing"],
)
def test_an_invalid_answer_is_no_rate(flink: FakeFlink, answer: tuple[int, object], message: str) -> None:
    flink.faults = [answer]
    with pytest.raises(RateUnknown, match=message):
        read_rate(origin(flink), "wordcount")
    assert read_rate(origin(flink), "wordcount").rate == pytest.approx(1500.0)


def test_a_job_that_does_not_run_or_has_no_meters_yet_has_no_rate(flink: FakeFlink) -> None:
    flink.state = "RESTARTING"
    with pytest.raises(RateUnknown, match="restarting"):
        read_rate(origin(flink), "wordcount")
    flink.state, flink.reports = "RUNNING", False
    with pytest.raises(RateUnknown, match=r"does not \(yet\) report numRecordsOutPerSecond for 2 of 2 tasks"):
        read_rate(origin(flink), "wordcount")


def test_the_load_of_the_sources_comes_with_the_rate(flink: FakeFlink) -> None:
    flink.backpressure, flink.busyness = 0.25, 0.75
    (load,) = read_rate(origin(flink), "wordcount").sources
    assert load == SourceLoad("Source: source", busyness=0.75, backpressure=0.25)
    flink.pending = 40.0
    (load,) = read_rate(origin(flink), "wordcount").sources
    assert (load.pending, load.pending_tasks) == (80.0, 2)
    flink.pending = -1.0
    (load,) = read_rate(origin(flink), "wordcount").sources
    assert (load.pending, load.pending_tasks) == (None, 0)


def test_records_that_wait_are_counted_as_what_the_source_will_emit_of_them(flink: FakeFlink) -> None:
    """Its deserializer drops three of four."""
    flink.pending, flink.read_per_emitted = 40.0, 4.0
    (load,) = read_rate(origin(flink), "wordcount").sources
    assert load.pending == pytest.approx(20.0)


def test_sources_and_tasks_that_have_finished_are_no_part_of_the_rate(flink: FakeFlink) -> None:
    """A bounded side input, and one of two tasks of the source: the other one emits 750 records/s."""
    flink.add_done_source(tasks=2)
    flink.plan["nodes"].append({"id": "c" * 32, "description": "rules", "parallelism": 2})  # type: ignore[attr-defined]
    reading = read_rate(origin(flink), "wordcount")
    assert (reading.rate, [s.name for s in reading.sources]) == (pytest.approx(1500.0), ["Source: source"])
    flink.finished[SOURCE] = 1
    assert read_rate(origin(flink), "wordcount").rate == pytest.approx(750.0)
    flink.finished[SOURCE] = 2
    with pytest.raises(RateUnknown, match="all sources of job 'wordcount' have finished"):
        read_rate(origin(flink), "wordcount")


def test_meters_of_tasks_that_have_not_run_for_a_minute_are_no_rate(flink: FakeFlink) -> None:
    """Flink divides by a minute from the start, so that a restarted job seems to have a low rate."""
    flink.running_s = 59.0
    with pytest.raises(
        RateUnknown, match="averages over a minute, but a task of 'Source: source' has run for 59 s only"
    ):
        read_rate(origin(flink), "wordcount")
    flink.running_s = 60.0
    assert read_rate(origin(flink), "wordcount").rate == pytest.approx(1500.0)


def test_a_cluster_that_is_gone_has_no_rate(flink: FakeFlink) -> None:
    gone = FakeFlink()
    gone.close()
    with pytest.raises(RateUnknown, match="does not answer"):
        read_rate(origin(gone), "wordcount")
