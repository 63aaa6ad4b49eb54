"""Flink and Prometheus that answer wrongly, and what asks them: each as a function from a random generator to how it ended.

A server of this machine gives right answers, of which some are spoilt: in their structure, values, bytes, status or length.
"""

import json
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from answering.server import AnsweringServer
from flink.server import JOB_ID, FakeFlink
from flink_client.address import FlinkAddress
from flink_client.rest.answers import Vertex
from fuzz.entry_points import Ending, EntryPoint, task
from fuzz.mutations import as_bytes, mutated
from models.scaling.rate_band import RateBand
from pipelines.inputs.operations.operations import FlinkRates, PrometheusRates, RateOrigin, Replanning
from pipelines.store.workspace import Workspace
from workspaces.operated_job import JOB, OperatedJob

Right = Callable[[str, str, Mapping[str, list[str]]], tuple[int, Any]]
"""Method, path and query -> status and document."""
REFUSALS: Final = (204, 301, 400, 401, 403, 404, 409, 418, 501)
FAILURES: Final = (500, 502, 503)
"""Asked again by those who ask."""
SPOILT: Final = 0.15
"""Share of answers."""
METERS: Final = ("0.Source__source.numRecordsOutPerSecond", "0.numRecordsOut", "1.count.rocksdb_bytes_read")
VERTEX: Final = Vertex("b" * 32, "flatmap -> count", 2, 2)


class SpoiltServer(AnsweringServer):
    """Spoils answers as `rng` says, which is set for each case."""

    def __init__(self, right: Right, *, repeated: bool) -> None:
        """
        Args:
            repeated: whether who asks asks again at once where the answer is a failure, or none comes.
        """
        self.rng = random.Random(0)
        self._right, self._repeated = right, repeated
        super().__init__(self._answer)

    def _answer(self, request: BaseHTTPRequestHandler, body: bytes) -> None:
        asked = urlsplit(request.path)
        self._serve(request, *self._right(request.command, asked.path, parse_qs(asked.query)))

    def _serve(self, handler: BaseHTTPRequestHandler, status: int, document: Any) -> None:
        rng, headers, body = self.rng, {}, json.dumps(document).encode()
        length = len(body)
        if rng.random() < SPOILT:
            kind = rng.randrange(10)
            if kind < 7:
                body = as_bytes(rng, mutated(rng, document), "json")
                length = len(body)
            elif kind == 7:
                status = rng.choice(REFUSALS + (FAILURES if self._repeated else ()))
                length = len(body) if status != 204 else 0
            elif kind == 8:
                headers["Content-Encoding"] = "gzip"  # which it is not
            elif self._repeated:
                length += rng.choice((-1, 1, 1000))
                if rng.random() < 0.5:
                    return
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(length))
        handler.end_headers()
        handler.wfile.write(body[:length])


def _flink() -> Right:
    """What a cluster says that runs the word count."""
    fake = FakeFlink()
    fake.close()  # its answers are wanted, not its server
    source, chain = fake.names
    fake.tasks[chain] = VERTEX.parallelism
    described = {"description": "Source: source", "parallelism": 1}
    fed = {"id": source, "ship_strategy": "HASH"}
    nodes = [
        {"id": source, **described},
        {"id": chain, "description": "flatmap", "parallelism": 2, "inputs": [fed]},
    ]
    fake.plan = {"nodes": nodes}
    slots = {"slotsNumber": 4, "freeSlots": 4, "totalResource": {"managedMemory": 512}}
    done = {"status": {"id": "COMPLETED"}}
    job = f"/jobs/{JOB_ID}"
    more: dict[tuple[str, str], Any] = {
        ("GET", "/config"): {"flink-version": "1.20.5", "refresh-interval": 3000},
        ("GET", "/taskmanagers"): {"taskmanagers": [{"id": "tm1", **slots}]},
        ("GET", "/taskmanagers/tm1/metrics"): [{"id": "Status.JVM.CPU.Time", "value": "1e9"}],
        ("POST", "/jars/known.jar/plan"): {"plan": fake.plan},
        ("POST", "/jars/known.jar/run"): {"jobid": JOB_ID},
        ("POST", f"{job}/checkpoints"): {"request-id": "r"},
        ("GET", f"{job}/checkpoints/r"): {**done, "operation": {"checkpointId": 3}},
        ("GET", f"{job}/checkpoints"): {"latest": {"savepoint": {"id": 7, "external_path": "file:/savepoints/7"}}},
        ("POST", f"{job}/savepoints"): {"request-id": "r"},
        ("GET", f"{job}/savepoints/r"): {**done, "operation": {"location": "file:/savepoints/7"}},
        ("GET", f"{job}/checkpoints/details/7/subtasks/{chain}"): {"subtasks": [{"index": 1, "state_size": 10}]},
        ("POST", "/savepoint-disposal"): {"request-id": "d"},
    }

    def right(method: str, path: str, query: Mapping[str, list[str]]) -> tuple[int, Any]:
        if (method, path) in more:
            return 200, more[method, path]
        if path.endswith("/metrics"):
            names = query["get"][0].split(",") if "get" in query else METERS
            return 200, [{"id": name, "value": "12.5"} for name in names]
        return fake.answer("GET", path, [], None)

    return right


def _prometheus(method: str, path: str, query: Mapping[str, list[str]]) -> tuple[int, Any]:
    """Of a rate, of its own clock, and of the counters of the word count's tasks."""
    asked, now = query.get("query", [""])[0], 1_760_000_000.0
    task = {"job_id": JOB_ID, "task_id": VERTEX.id, "subtask_index": "1", "task_attempt_num": "0", "tm_id": "tm1"}
    if asked == "time()":
        kind, result = "scalar", [now, str(now)]
    elif asked.startswith("{__name__"):
        labels = {"__name__": "flink_taskmanager_job_task_numRecordsIn", "job": "flink", **task}
        kind, result = "matrix", [{"metric": labels, "values": [[now - 5, "10"], [now, "20"]]}]
    elif asked.startswith("flink_taskmanager_Status"):
        kind, result = "matrix", [{"metric": {"tm_id": "tm1"}, "values": [[now - 5, "1e9"], [now, "2e9"]]}]
    else:
        kind, result = "vector", [{"metric": {}, "value": [now, "1500"]}]
    return 200, {"status": "success", "data": {"resultType": kind, "result": result}}


def _followed(origin: RateOrigin, read: Callable[[], float]) -> str:
    """A reading, and what is made of it."""
    band = RateBand(Replanning(rates=origin), 1500.0)
    return band.see(0.0, read()).kind


def _flink_rate(server: SpoiltServer, at: Path) -> Any:
    from pipelines.rates.flink import read_from_flink

    origin = FlinkRates(url=server.url)
    return _followed(RateOrigin(flink=origin), lambda: read_from_flink(origin, JOB, 2.0))


def _prometheus_rate(server: SpoiltServer, at: Path) -> Any:
    from pipelines.rates.prometheus import read_from_prometheus

    origin = PrometheusRates(url=server.url, query="sum(rate)")
    return _followed(RateOrigin(prometheus=origin), lambda: read_from_prometheus(origin, 2.0))


def _prometheus_counters(server: SpoiltServer, at: Path) -> Any:
    from flink_client.metrics.prometheus import PrometheusReadings

    readings = PrometheusReadings(server.url, JOB_ID, ["tm1"])
    return readings.refresh_s, readings.of_vertex(VERTEX, by_operator=False), readings.cpu_s("tm1")


def _rehearsal(server: SpoiltServer, at: Path) -> Any:
    from pipelines.apply.rehearsal import rehearse

    folder = at / "operated"
    made_before = folder.exists()
    folder.mkdir(exist_ok=True)
    workspace = Workspace(folder / "workspace")
    job = OperatedJob(folder, workspace)
    job.apply(mode="approved", flink=server.url)
    if not made_before:
        job.publish(3)
    return rehearse(workspace, JOB, 1)[1].steps


def _cluster(server: SpoiltServer, at: Path) -> Any:
    from testbeds.flink.named import NamedCluster

    named = NamedCluster(FlinkAddress(rest_url=server.url))
    try:
        return named.found.cluster.workers, named.found.memory_mb, named.found.refresh_s
    finally:
        named.close()


def _requests(rng: random.Random, server: SpoiltServer, at: Path) -> Any:
    """One of the questions that a measurement asks again and again."""
    from flink_client.metrics.readings import RestReadings
    from flink_client.rest.client import FlinkRest
    from flink_client.rest.jars import JarProgram
    from testbeds.flink.measuring.state import StateMeter

    with FlinkRest(server.url, timeout_s=2.0, patience_s=0.1) as rest:
        readings, state = RestReadings(rest, JOB_ID), StateMeter(rest, JOB_ID, {"count": VERTEX})
        program = JarProgram("Main", ("--x",), {})
        questions: list[Callable[[], Any]] = [
            lambda: rest.job(JOB_ID),
            lambda: rest.wait_until_running(JOB_ID, 0.2),
            lambda: rest.subtasks(JOB_ID, VERTEX.id),
            lambda: rest.failure(JOB_ID),
            lambda: rest.edges(JOB_ID),
            lambda: rest.requirements(JOB_ID),
            lambda: rest.require(JOB_ID, {VERTEX.id: 3}),
            lambda: rest.cancel(JOB_ID),
            lambda: rest.savepoint(JOB_ID, None, cancel=False, seconds=0.2),
            lambda: rest.task_managers(),
            lambda: rest.plan("known.jar", program),
            lambda: rest.run("known.jar", program),
            lambda: readings.of_vertex(VERTEX, by_operator=True),
            lambda: readings.cpu_s("tm1"),
            lambda: rest.checkpoint(JOB_ID, 0.2),
            lambda: (state.ask(at_once=True), state.read(patience_s=0.2)),
        ]
        return rng.choice(questions)()


@contextmanager
def server_entry_points() -> Iterator[list[EntryPoint]]:
    """Those that ask servers, as long as these run."""
    flink, prometheus = SpoiltServer(_flink(), repeated=True), SpoiltServer(_prometheus, repeated=True)
    counters = SpoiltServer(_prometheus, repeated=False)  # its client sleeps for seconds before it asks again

    def asking(
        server: SpoiltServer, ask: Callable[[SpoiltServer, Path], Any]
    ) -> Callable[[random.Random, Path], Ending]:
        def call(rng: random.Random, at: Path) -> Ending:
            server.rng = rng
            return task(lambda: ask(server, at))

        return call

    def questions(rng: random.Random, at: Path) -> Ending:
        return asking(flink, partial(_requests, rng))(rng, at)

    try:
        yield [
            EntryPoint("rate from Flink", 2, asking(flink, _flink_rate)),
            EntryPoint("rate from Prometheus", 2, asking(prometheus, _prometheus_rate)),
            EntryPoint("counters from Prometheus", 2, asking(counters, _prometheus_counters)),
            EntryPoint("rehearsal on Flink", 2, asking(flink, _rehearsal)),
            EntryPoint("named Flink cluster", 2, asking(flink, _cluster)),
            EntryPoint("requests to Flink", 4, questions),
        ]
    finally:
        for server in (flink, prometheus, counters):
            server.close()
