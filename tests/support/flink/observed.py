"""A server that answers as a Flink does whose job is observed: counters that grow with a clock of its own."""

import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs

from answering.server import AnsweringServer

JOB_ID = "2" * 32
SOURCE, COUNT, SINK = "a" * 32, "b" * 32, "c" * 32
NAMES = {SOURCE: "Source: card transactions -> parse", COUNT: "count", SINK: "store -> Sink: nowhere"}
"""Flink's names of the job's vertices."""
PARTITIONS = 8
"""All read by the source's only task."""
_READER = "Source__card_transactions.KafkaSourceReader"


@dataclass
class ObservedFlink(AnsweringServer):
    """One job: a source that parses, counts by key in two tasks, and stores. A second passes with each look at the job."""

    second_s: float = 10.0
    """Seconds of the tasks' clocks for each look."""
    rate: float = 600.0
    """Records/s that the source emits."""
    pending: float | None = 0.0
    pending_grows: float = 0.0
    """Records/s."""
    fetched_ahead: float | None = None
    """Records that Kafka's consumer has fetched and the source not read; None for a source that does not report it."""
    age_grows: float = 0.0
    """Seconds a second by which the records that the source emits get older."""
    backpressure: float = 0.0
    busy: dict[str, tuple[float, ...]] = field(
        default_factory=lambda: {SOURCE: (0.3,), COUNT: (0.6, 0.2), SINK: (0.1, 0.1)}
    )
    """Of each task."""
    share: tuple[float, ...] = (0.75, 0.25)
    """Of the records, of each task that counts."""
    state: str = "RUNNING"
    backend: str = "HashMapStateBackend"
    counts_state: bool = False
    """Whether RocksDB counts; then 10 bytes are read for each record, and 3 of 4 blocks are in memory."""
    silent: frozenset[int] = frozenset()
    """Partitions of which nothing is read."""
    moved: frozenset[int] = frozenset()
    """Partitions that a second source task has read before, which Flink still reports of it."""
    failures: list[str] = field(default_factory=list)
    """Stack traces, the newest first; the job fails once it is looked at the second time."""
    takes_checkpoints: bool = True
    to_sink: str = "FORWARD"
    """How records get from counting to the last vertex, by Flink's name."""
    refresh: str = "100 ms"
    reports: bool = True
    fails_at: range = range(0)
    """Looks at the job that fail, the first one being 1."""
    token: str | None = None
    """That requests must bear."""
    requests: list[str] = field(default_factory=list)
    """Method and path of each."""

    def __post_init__(self) -> None:
        self._looks = 0
        super().__init__(self._respond)

    @property
    def ran_s(self) -> float:
        return self.second_s * self._looks

    def _respond(self, request: BaseHTTPRequestHandler, body: bytes) -> tuple[int, object]:
        if self.token is not None and request.headers.get("Authorization") != f"Bearer {self.token}":
            return 401, {"errors": ["a valid token is needed"]}
        path, _, query = request.path.partition("?")
        self.requests.append(f"{request.command} {path}")
        if path == f"/jobs/{JOB_ID}":
            self._looks += 1
            if self._looks in self.fails_at:
                return 503, {"errors": ["the JobManager is failing over"]}
        wanted = parse_qs(query).get("get", [""])[0].split(",") if query else []
        answers = self._answers() | self._of_vertices(wanted)
        if not self.takes_checkpoints:
            answers = {key: answer for key, answer in answers.items() if "/checkpoints" not in key}
        return (200, answers[path]) if path in answers else (404, {"errors": [f"Not found: {path}"]})

    def _answers(self) -> dict[str, object]:
        managed = {"managedMemory": 400 * 2**20, "totalProcessMemory": 1024 * 2**20}
        worker = {"id": "tm1", "slotsNumber": 4, "freeSlots": 2, "path": "pekko.tcp://flink@10.0.0.7:6122/user/rpc/tm"}
        metrics = {"Status.JVM.CPU.Time": 1e9 * time.monotonic(), "Status.JVM.GarbageCollector.All.Time": 0}
        checkpoint = {"id": 7, "state_size": 4096, "end_to_end_duration": 250, "trigger_timestamp": 0}
        return {
            "/jobs/overview": {
                "jobs": [{"jid": JOB_ID, "name": "Fraud detection", "state": self.state, "duration": 900}]
            },
            f"/jobs/{JOB_ID}": self._job(),
            f"/jobs/{JOB_ID}/plan": {"plan": self._plan()},
            f"/jobs/{JOB_ID}/metrics": [{"id": "numRestarts"}],
            f"/jobs/{JOB_ID}/exceptions": {"exceptionHistory": {"entries": self._failures()}},
            f"/jobs/{JOB_ID}/checkpoints/config": {"interval": 60_000, "state_backend": self.backend},
            f"/jobs/{JOB_ID}/checkpoints": {"latest": {"completed": checkpoint}},
            f"/jobs/{JOB_ID}/checkpoints/details/7": {"tasks": {COUNT: {"state_size": 4096}}},
            "/jobmanager/config": [{"key": "metrics.fetcher.update-interval", "value": self.refresh}],
            "/taskmanagers": {"taskmanagers": [worker | {"hardware": {"cpuCores": 64}}]},
            "/taskmanagers/tm1": worker | {"allocatedSlots": [{"jobId": JOB_ID}] * 2, "memoryConfiguration": managed},
            "/taskmanagers/tm1/metrics": [{"id": name, "value": str(value)} for name, value in metrics.items()],
        }

    def _failures(self) -> list[object]:
        seen = self.failures if self._looks > 1 else []
        return [{"timestamp": 1000 - number, "stacktrace": trace} for number, trace in enumerate(seen)]

    def _job(self) -> object:
        vertices = [
            {
                "id": id_,
                "name": name,
                "parallelism": len(self.busy[id_]),
                "maxParallelism": 128,
                "slotSharingGroupId": "9" * 32,
                "tasks": {"RUNNING": len(self.busy[id_])},
            }
            for id_, name in NAMES.items()
        ]
        return {"state": self.state, "timestamps": {"RUNNING": 1}, "vertices": vertices, "plan": self._plan()}

    def _plan(self) -> object:
        inputs = {
            SOURCE: [],
            COUNT: [{"id": SOURCE, "ship_strategy": "HASH"}],
            SINK: [{"id": COUNT, "ship_strategy": self.to_sink}],
        }
        nodes = [
            {"id": id_, "description": name, "parallelism": len(self.busy[id_]), "inputs": inputs[id_]}
            for id_, name in NAMES.items()
        ]
        return {"name": "Fraud detection", "nodes": nodes}

    def _of_vertices(self, wanted: list[str]) -> dict[str, object]:
        found: dict[str, object] = {}
        for id_, busy in self.busy.items():
            tasks = [self._task(id_, task, share) for task, share in enumerate(busy)]
            path = f"/jobs/{JOB_ID}/vertices/{id_}"
            found |= {path: {"subtasks": tasks}, f"{path}/watermarks": []}
        of_source = {
            "0.Source__card_transactions.numRecordsOut": self.rate * self.ran_s,
            "0.Source__card_transactions.pendingRecords": (self.pending or 0.0) + self.pending_grows * self.ran_s,
            "0.Source__card_transactions.currentEmitEventTimeLag": 1000 * self.age_grows * self.ran_s,
        }
        if self.fetched_ahead is not None:
            of_source["0.Source__card_transactions.numRecordsIn"] = self.rate * self.ran_s
            consumer = f"0.{_READER}.KafkaConsumer"
            of_source[f"{consumer}.records-consumed-total"] = self.rate * self.ran_s + self.fetched_ahead
            of_source[f"{consumer}.last-poll-seconds-ago"] = 0.0
        for partition in range(PARTITIONS):
            offset = -1.0 if partition in self.silent else 1.0
            of_source[f"0.{_READER}.topic.cards.partition.{partition}.currentOffset"] = offset
            if partition in self.moved:
                of_source[f"1.{_READER}.topic.cards.partition.{partition}.currentOffset"] = offset - 1
        if self.pending is None:
            del of_source["0.Source__card_transactions.pendingRecords"]
        for vertex, known in ((SOURCE, of_source), (COUNT, self._state()), (SINK, {})):
            listed = [{"id": name, "value": str(known[name])} for name in wanted if name in known]
            found[f"/jobs/{JOB_ID}/vertices/{vertex}/metrics"] = listed if wanted else [{"id": name} for name in known]
        return found

    def _state(self) -> dict[str, float]:
        """What RocksDB counts, by task."""
        counted = {"bytes_read": 10.0, "bytes_written": 5.0, "block_cache_hit": 3.0, "block_cache_miss": 1.0}
        return {
            f"{task}.count.rocksdb_{name}": each * self.rate * share * self.ran_s
            for task, share in enumerate(self.share if self.counts_state else ())
            for name, each in counted.items()
        }

    def _task(self, vertex: str, task: int, busy: float) -> object:
        share = self.share[task] if vertex == COUNT else 1 / len(self.busy[vertex])
        records, ran_s = self.rate * share * self.ran_s, self.ran_s
        held = self.backpressure if vertex == SOURCE else 0.0
        counted = {
            "read-records": 0 if vertex == SOURCE else records,
            "write-records": 0 if vertex == SINK else records,
            "write-bytes": 0 if vertex == SINK else 50 * records,
            "write-records-complete": self.reports,
            "accumulated-busy-time": 1000 * busy * ran_s,
            "accumulated-backpressured-time": 1000 * held * ran_s,
            "accumulated-idle-time": 1000 * (1 - busy - held) * ran_s,
        }
        return {"subtask": task, "status": "RUNNING", "attempt": 0, "taskmanager-id": "tm1", "metrics": counted}
