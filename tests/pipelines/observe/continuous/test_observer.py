"""Observing a job for as long as Airflow runs: no time is lost or counted twice, whatever is killed and when."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from flink.observed import COUNT, SINK, SOURCE, ObservedFlink
from models.errors import SluiceError
from pipelines.drift.production import find_samples
from pipelines.inputs.operations.operations import Observing
from pipelines.inputs.parsing.files import validate_as
from pipelines.observe.continuous.following import observed_windows
from pipelines.observe.continuous.observer import JobObserver, ObservedWindow, observed_jobs, window_samples
from pipelines.observe.continuous.windows import Windows
from pipelines.store.workspace import Workspace
from testbeds.protocol import SAMPLE_SCHEMA

JOB = "fraud"
BEGIN_S = 1_700_000_000.0
EVERY_S, WINDOW_S = 20.0, 100.0
NAMES = {SOURCE: "card-transactions-parse", COUNT: "count", SINK: "store-nowhere"}


class Airflow:
    """Polls a job at the times that are due; the clock of the job's tasks keeps in step, at a look for each reading."""

    def __init__(self, place: Workspace, job: str = JOB) -> None:
        self.now_s, self._place, self._job = BEGIN_S, place, job
        self.restart()

    def restart(self) -> None:
        self.observer = JobObserver(self._place, self._job, now_s=lambda: self.now_s, sleep=lambda _seconds: None)

    def run(self, polls: int, *, restarts: bool = False) -> list[ObservedWindow]:
        found = []
        for _ in range(polls):
            if restarts:
                self.restart()
            if (window := self.observer.poll()) is not None:
                found.append(window)
            self.now_s += EVERY_S
        return found


@pytest.fixture
def airflow(place: Workspace, says: Callable[..., Path], flink: ObservedFlink) -> Iterator[Airflow]:
    says()
    flink.second_s = EVERY_S
    made = Airflow(place)
    yield made
    made.observer.close()


def rows(place: Workspace, operator: str) -> list[dict[str, Any]]:
    keys = place.list(f"production/{JOB}")
    return [row for key in keys for row in place.read_table(key).to_pylist() if row["operator"] == operator]


def seconds_of(place: Workspace) -> float:
    return sum(row["interval_s"] for row in rows(place, "card-transactions-parse"))


def test_each_window_is_a_file_that_drift_reads(airflow: Airflow, place: Workspace) -> None:
    first, second = airflow.run(11)
    assert [key.rpartition("/")[2] for key in place.list(f"production/{JOB}")] == [
        "observed-20231114T221320Z.parquet",
        "observed-20231114T221500Z.parquet",
    ]
    assert len(find_samples(place, JOB, None, 12).files) == 2
    # Five readings are a window; from the second on, its first interval begins in the window before.
    assert [len(place.read_table(w.finished.samples or "")) for w in (first, second)] == [4 * 5, 5 * 5]
    assert {row["run"] for row in rows(place, "count")} == {
        "observed-20231114T221320Z",
        "observed-20231114T221500Z",
    }
    assert place.read_table(first.finished.samples or "").schema.equals(SAMPLE_SCHEMA)
    assert {row["phase"] for row in rows(place, "count")} == {"observe"}
    assert seconds_of(place) == pytest.approx(180)
    # Times count from the window's beginning, which its name says, not from the last reading of the window before.
    ends = [{row["time_s"] for row in place.read_table(w.finished.samples or "").to_pylist()} for w in (first, second)]
    assert ends == [{20.0, 40.0, 60.0, 80.0}, {0.0, 20.0, 40.0, 60.0, 80.0}]
    assert sum(row["records_in"] for row in rows(place, "count")) == pytest.approx(600 * 180)
    assert second.seen is not None
    assert second.seen.consumed_rate == pytest.approx(600)
    assert place.exists(second.finished.observed or "")


@pytest.mark.parametrize("restarts", [False, True])
def test_restarts_and_second_processes_neither_lose_nor_repeat(
    airflow: Airflow, place: Workspace, restarts: bool
) -> None:
    other = Airflow(place)
    for _ in range(16):
        airflow.run(1, restarts=restarts)
        airflow.now_s -= EVERY_S
        airflow.run(1, restarts=restarts)  # it is asked again at the same time
        other.run(1)
    assert seconds_of(place) == pytest.approx(14 * EVERY_S)
    times = sorted((row["run"], row["time_s"]) for row in rows(place, "card-transactions-parse"))
    assert len(set(times)) == len(times) == 14


def test_while_nothing_runs_the_counters_run_on(airflow: Airflow, place: Workspace, flink: ObservedFlink) -> None:
    airflow.run(3)
    airflow.now_s += 1000.0
    flink._looks += 50
    airflow.restart()
    airflow.run(8)
    assert seconds_of(place) == pytest.approx(1180), "from the first reading to that at 1,180 s"


@pytest.mark.parametrize("step", ["write_table", "write", "create_bytes", "delete"])
def test_a_process_that_is_killed_at_any_step_of_finishing_a_window_finishes_it_later(
    airflow: Airflow, place: Workspace, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    airflow.run(4)
    real = getattr(Workspace, step)

    def killed(self: Workspace, key: str, *given: Any) -> Any:
        if step != "create_bytes" or key.endswith("finished.json"):
            raise KeyboardInterrupt
        return real(self, key, *given)

    airflow.run(1)
    monkeypatch.setattr(Workspace, step, killed)
    with pytest.raises(KeyboardInterrupt):
        airflow.run(1)
    monkeypatch.setattr(Workspace, step, real)
    airflow.restart()
    airflow.run(11)
    assert seconds_of(place) == pytest.approx(14 * EVERY_S)
    # Of what is over only the last reading is kept, with the mark of its window.
    assert len(place.list(f"observing/{JOB}")) == 2 + 1


def test_a_damaged_reading_is_covered_by_the_next(airflow: Airflow, place: Workspace) -> None:
    airflow.run(3)
    place.write_bytes(place.list(f"observing/{JOB}")[1], b"\x1f\x8b cut off")
    airflow.run(4)
    assert seconds_of(place) == pytest.approx(80)
    assert len(rows(place, "card-transactions-parse")) == 3


def test_readings_that_fail_are_said_once_and_bridged(
    airflow: Airflow, place: Workspace, flink: ObservedFlink, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "pipelines.observe")
    airflow.run(2)
    flink.reports = False
    flink.fails_at = range(3, 6)
    airflow.run(3)
    flink.reports, flink.fails_at = True, range(0)
    looked = flink._looks
    (window,) = airflow.run(5)
    assert looked == 5
    assert sum("is missing: the JobManager is failing over" in said for said in caplog.messages) == 1
    assert sum("is observed every 20 s" in said for said in caplog.messages) == 2
    assert window.finished.samples is not None


def test_a_job_that_is_deployed_again_is_another_run(airflow: Airflow, place: Workspace) -> None:
    airflow.run(5)
    windows = Windows(place, JOB)
    (name,) = {key.split("/")[2] for key in place.list(f"observing/{JOB}")}
    readings = windows.readings(name)
    later = [replace(one, job="3" * 32, counts=replace(one.counts, time_s=one.counts.time_s + 100)) for one in readings]
    table = window_samples([*readings, *later], JOB, name)
    assert table is not None
    runs = table["run"].to_pylist()
    assert (runs.count(f"observed-{name}"), runs.count(f"observed-{name}-2")) == (20, 20)
    assert window_samples(later[:1], JOB, name) is None


def test_operators_that_are_chained_are_seen_but_leave_no_samples(
    place: Workspace, says: Callable[..., Path], seen_file: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    source, *others = seen_file["operators"]
    cards = source | {"name": "cards", "flink_name": "card transactions"}
    parse = {"name": "parse", "figures_from": "a test", "cost": source["cost"]}
    edges = [
        {"from": "cards", "to": "parse", "partitioning": "rebalance"},
        {"from": "parse", "to": "count", "partitioning": "hash"},
    ]
    changed = {"operators": [cards, parse, *others], "edges": [*edges, seen_file["edges"][1]], "vertices": []}
    says(file=seen_file | changed)
    (window,) = Airflow(place).run(6)
    assert window.finished.samples is None
    assert place.list("production") == []
    assert window.finished.observed is not None
    assert any("leaves no samples for drift: Flink runs 'cards', 'parse' chained" in said for said in caplog.messages)


def test_jobs_of_the_catalogue_with_an_address_are_observed(place: Workspace, says: Callable[..., Path]) -> None:
    says()
    says("silent", operations=None)
    says("wrong").write_text("name: [")
    assert observed_jobs(place) == [JOB]


def test_without_a_catalogue_jobs_with_a_plan_are_left(
    place: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SLUICE_CATALOGUE", str(tmp_path / "none"))
    assert observed_jobs(place) == []
    assert any("only jobs with a plan are observed" in said for said in caplog.messages)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"every_s": 60, "window_s": 90}, "at least twice 'every_s'"),
        ({"every_s": 5, "window_s": 86400}, "at most 1000 readings"),
    ],
)
def test_rules_that_make_no_sense_are_refused(rules: dict[str, float], message: str) -> None:
    with pytest.raises(SluiceError, match=message):
        validate_as({"flink": "http://f:8081", **rules}, Observing, origin="a test")


def test_a_slow_flink_delays_its_own_job_only_and_not_the_event_loop(
    place: Workspace, says: Callable[..., Path], flink: ObservedFlink
) -> None:
    def hangs(request: Any, _body: bytes) -> tuple[int, object]:
        time.sleep(30)
        return 500, {}

    from answering.server import AnsweringServer

    ticks: list[float] = []

    async def observed() -> ObservedWindow:
        async def tick() -> None:
            while True:
                ticks.append(time.monotonic())
                await asyncio.sleep(0.01)

        ticking = asyncio.create_task(tick())
        try:
            async for window in observed_windows(place, look_every_s=0.1):
                return window
            raise AssertionError
        finally:
            ticking.cancel()

    with AnsweringServer(hangs) as slow:
        says(every_s=5.0, window_s=10.0)
        says("slow", flink=slow.url, every_s=5.0, window_s=10.0)
        window = asyncio.run(asyncio.wait_for(observed(), 120))
    assert window.finished.job == JOB
    # Threads share the interpreter with the loop, and other processes the machine; a reading takes two seconds.
    gaps = sorted(after - before for before, after in pairwise(ticks))
    assert gaps[int(0.99 * len(gaps))] < 0.5
