"""Faults during a measurement end in a clear error or change nothing; they never cause a wrong number."""

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from answering.server import AnsweringServer
from flink_client.rest.client import FlinkRest
from models.cluster import Cluster
from models.dataflow import Edge
from models.errors import SluiceError
from testbeds.flink.programs.user_programs import SqlScript
from testbeds.flink.run import FlinkRun
from testbeds.flink.testbed import FlinkTestbed
from testbeds.protocol import Configuration, Disturbed, MeasuredWindow, Run
from testbeds.repeating import measured
from testbeds.suite import small_job

pytestmark = pytest.mark.slow
CLUSTER = Cluster.model_validate({"name": "local", "count": 1, "slots": 5, "cores": 1.0, "memory_mb": 1024})
CONFIGURATION = Configuration(parallelism={"source": 1, "map": 1, "count": 1, "sink": 1}, memory_mb=1024.0)
RATE = 1000.0
NOWHERE = """
CREATE TABLE clicks (who BIGINT) WITH ('connector' = 'sluice', 'control' = '{control}', 'path' = '/nowhere/clicks.jsonl',
    'format' = 'json');
CREATE TABLE counts (who BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO counts SELECT who FROM clicks;
"""


class Proxy(AnsweringServer):
    """Passes requests on to Flink, late or with an error instead of the answer, as its fields say."""

    def __init__(self, url: str) -> None:
        super().__init__(self._pass_on)
        self.upstream, self.delay_s, self.failing = url, 0.0, False

    def _pass_on(self, asked: BaseHTTPRequestHandler, body: bytes) -> tuple[int, bytes]:
        time.sleep(self.delay_s)
        if self.failing:
            return 503, b'{"errors": ["out of order"]}'
        headers = {"Content-Type": "application/json"}
        request = Request(self.upstream + asked.path, body or None, headers, method=asked.command)
        try:
            with urlopen(request, timeout=30) as answer:
                return answer.status, answer.read()
        except HTTPError as error:
            return error.code, error.read()


@pytest.fixture(scope="module")
def testbed() -> Iterator[FlinkTestbed]:
    with FlinkTestbed(CLUSTER, [1024.0]) as made:
        yield made


@pytest.fixture
def run(testbed: FlinkTestbed) -> Iterator[FlinkRun]:
    with testbed.deploy(small_job(), CONFIGURATION, run="r", seed=1) as deployed:
        yield deployed


@pytest.fixture
def proxy(testbed: FlinkTestbed, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """Between the testbed and Flink, for runs deployed after it."""
    testbed.deploy(small_job(), CONFIGURATION, run="r", seed=1).close()
    made = Proxy(testbed.local.rest.url)
    monkeypatch.setattr(testbed.local, "_rest", FlinkRest(made.url, timeout_s=20.0))
    yield made
    made.close()


def _later(seconds: float, act: object) -> threading.Timer:
    timer = threading.Timer(seconds, act)  # type: ignore[arg-type]
    timer.start()
    return timer


def test_rest_that_fails_for_a_moment_changes_no_number(proxy: Proxy, testbed: FlinkTestbed) -> None:
    with testbed.deploy(small_job(), CONFIGURATION, run="r", seed=1) as run:
        run.inject(RATE, 5.0, "ramp")
        timers = [
            _later(1.0, lambda: setattr(proxy, "failing", True)),
            _later(2.5, lambda: setattr(proxy, "failing", False)),
        ]
        window = run.inject(RATE, 5.0, "observe")
        for timer in timers:
            timer.join()
    assert window.achieved_rate == pytest.approx(RATE, rel=0.02)
    counted = {row["operator"]: row["records_in"] for row in window.samples.to_pylist()}
    assert counted["map"] == pytest.approx(5 * RATE, rel=0.15)


def test_rest_that_is_too_slow_ends_the_measurement(
    proxy: Proxy, testbed: FlinkTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("testbeds.flink.measuring.watch._LATE_S", 5.0)
    with testbed.deploy(small_job(), CONFIGURATION, run="r", seed=1) as run:
        run.inject(RATE, 5.0, "ramp")
        _later(1.0, lambda: setattr(proxy, "delay_s", 2.0))
        with pytest.raises(SluiceError, match="measure again, on a machine that is less busy"):
            run.inject(RATE, 5.0, "observe")
        proxy.delay_s = 0.0


def test_a_job_that_fails_at_its_start_is_reported_in_flinks_words(
    testbed: FlinkTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, *_, sink = small_job().operators
    operators = (source.model_copy(update={"name": "clicks"}), sink.model_copy(update={"name": "counts"}))
    edge = Edge.model_validate({"from": "clicks", "to": "counts", "partitioning": "rebalance"})
    job = small_job().model_copy(update={"operators": operators, "edges": (edge,)})
    monkeypatch.setattr(testbed, "_program", SqlScript(NOWHERE))
    with pytest.raises(SluiceError, match=r"/nowhere/clicks\.jsonl"):
        testbed.deploy(job, Configuration({"clicks": 1, "counts": 1}, 1024.0), run="r", seed=1)


@pytest.mark.parametrize("victim", ["tm-1", "jobmanager"])
def test_a_process_that_dies_ends_the_measurement_and_not_the_testbed(
    testbed: FlinkTestbed, run: FlinkRun, victim: str
) -> None:
    timer = _later(2.0, lambda: testbed.local.kill(victim))
    with pytest.raises(Disturbed, match=f"process {victim} ended with code -9|does not answer"):
        run.inject(RATE, 5.0, "observe")
    timer.join()
    run.close()
    with pytest.raises(SluiceError, match="closed run"):
        run.inject(RATE, 5.0, "observe")


def test_a_measurement_that_a_dying_taskmanager_broke_off_is_made_again(testbed: FlinkTestbed) -> None:
    """Killed in the middle of the first window, and of the first one of the first repetition."""
    messages: list[str] = []
    timers: list[threading.Timer] = []

    def measure(run: Run) -> MeasuredWindow:
        run.inject(RATE, 5.0, "ramp")
        if len(timers) < 2:
            timers.append(_later(2.0, lambda: testbed.local.kill("tm-1")))
        return run.inject(RATE, 5.0, "observe")

    window = measured(testbed, small_job(), CONFIGURATION, measure, run="r", seed=1, say=messages.append)
    assert window.achieved_rate == pytest.approx(RATE, rel=0.02)
    assert len(messages) == 2 and all("measuring again" in line for line in messages)
    assert all("process tm-1 ended with code -9" in line or "job" in line for line in messages)


def test_a_job_that_restarts_in_mid_measurement_is_no_number(testbed: FlinkTestbed, run: FlinkRun) -> None:
    """Rescaled from outside."""
    run.inject(RATE, 5.0, "ramp")
    rest = testbed.local.rest
    vertices = {v.name: v for v in rest.job(run.id).vertices}
    timer = _later(1.0, lambda: rest.require(run.id, {vertices["map"].id: 2}))
    testbed.local.place([])
    with pytest.raises(Disturbed):
        run.inject(RATE, 5.0, "observe")
    timer.join()


def test_a_rescale_that_goes_wrong_is_reported(testbed: FlinkTestbed, run: FlinkRun) -> None:
    testbed.local.kill("tm-1")
    with pytest.raises(Disturbed):
        run.rescale(replace(CONFIGURATION, parallelism={**CONFIGURATION.parallelism, "sink": 2}))
