"""A server that answers as a Flink with the adaptive scheduler does, whose job follows the requests; its time is simulated.

One job: a source, a counting vertex that bounds it, and a sink. The source reads what arrives and what waits, as far as the
counting tasks take it. Requested tasks run `restart_s` later if there are slots for them; what can't be met changes nothing.
"""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs

from answering.server import AnsweringServer

SOURCE, COUNT, SINK = "a" * 32, "b" * 32, "c" * 32
NAMES = {SOURCE: "Source: clicks", COUNT: "count", SINK: "Sink: out"}
STEP_S = 0.5


class SimulatedClock:
    """Seconds; passes by sleeping alone."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


@dataclass
class SteeredJob:
    """The simulated job."""

    clock: Callable[[], float]
    id: str = "1" * 32
    name: str = "clicks"
    rate: Callable[[float], float] = lambda t: 1000.0
    """Records/s that arrive at a time since the start."""
    per_task: float = 400.0
    """Records/s that one counting task takes."""
    per_reading: float = 5000.0
    slots: int = 16
    restart_s: float = 1.0
    adaptive: bool = True
    tasks: dict[str, int] = field(default_factory=lambda: {SOURCE: 1, COUNT: 4, SINK: 1})
    state: str = "RUNNING"
    counting: bool = True
    """Whether counters are refreshed."""
    reports_lag: bool = True
    finished: dict[str, int] = field(default_factory=dict)
    """Tasks of a vertex whose input was bounded and is read: its first ones."""
    failed_checkpoints: int = 0
    hung_checkpoint: int | None = None
    partitioned: bool = False
    """Whether the source reports the offset that it has read, as Kafka's does: of one partition, which its first task has. The
    others report nothing of what waits."""
    offset_late_s: float = 0.0
    """For so long after a start the offset is reported that was read before."""
    breaks_above: int = 10**6
    """With more counting tasks than this the job takes next to nothing."""
    puts: list[dict[str, int]] = field(default_factory=list)
    savepoints: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.required = dict(self.tasks)
        self.began_s = self.at_s = self.clock()
        self.lag = self.offset = self.offset_before = 0.0
        self.up_s = self.began_s
        self.attempt = 0
        self._zero()

    def _zero(self) -> None:
        self.ran_s = 0.0
        self.read = 0.0
        """Since the tasks were started."""
        self.busy = dict.fromkeys(self.tasks, 0.0)
        self.blocked = 0.0
        self._shown: tuple[float, float, dict[str, float], float] | None = None

    def require(self, tasks: dict[str, int]) -> None:
        self.puts.append(tasks)
        self.required = dict(tasks)
        if max(tasks.values()) <= self.slots and tasks != self.tasks:
            self.restart(tasks)

    def restart(self, tasks: dict[str, int] | None = None) -> None:
        """Start all tasks again."""
        self.advance()
        self.tasks = dict(tasks or self.tasks)
        self.attempt += 1
        self.offset_before = self.offset
        self.up_s = self.at_s + self.restart_s
        self._zero()

    @property
    def runs(self) -> bool:
        return self.state == "RUNNING" and self.at_s >= self.up_s

    def advance(self) -> None:
        """To the present time."""
        until_s = self.clock()
        while self.at_s < until_s - 1e-9:
            step = min(STEP_S, until_s - self.at_s)
            self.lag += self.rate(self.at_s - self.began_s) * step
            if self.at_s + 1e-9 >= self.up_s and self.state == "RUNNING":
                counting = self.tasks.get(COUNT, 1)
                capacity = counting * self.per_task if counting <= self.breaks_above else 1.0
                read = min(self.lag, capacity * step, self.tasks[SOURCE] * self.per_reading * step)
                self.lag -= read
                self.read += read
                self.offset += read
                self.ran_s += step
                self.busy[COUNT] += read / capacity
                self.busy[SOURCE] += read / (self.tasks[SOURCE] * self.per_reading)
                self.busy[SINK] = self.busy.get(SINK, 0.0) + read / (self.tasks.get(SINK, 1) * 10 * self.per_reading)
                full = read >= 0.999 * capacity * step
                self.blocked += step * 0.5 if full else 0.0
            self.at_s += step

    def log_end(self) -> float:
        """Where the log of its partition ends."""
        self.advance()
        return self.offset + self.lag

    def counters(self, vertex: str) -> dict[str, float]:
        """Of one task of a vertex."""
        if self.counting or self._shown is None:
            self._shown = (self.ran_s, self.read, dict(self.busy), self.blocked)
        ran_s, read, busy, blocked = self._shown
        each = read / self.tasks[vertex]
        busy_s = min(busy[vertex], ran_s)
        blocked_s = min(blocked, ran_s - busy_s) if vertex == SOURCE else 0.0
        return {
            "read-records": 0 if vertex == SOURCE else each,
            "write-records": 0 if vertex == SINK else each,
            "write-bytes": 0 if vertex == SINK else 50 * each,
            "accumulated-busy-time": 1000 * busy_s,
            "accumulated-backpressured-time": 1000 * blocked_s,
            "accumulated-idle-time": 1000 * (ran_s - busy_s - blocked_s),
        }


class SteeredFlink(AnsweringServer):
    """A cluster of such jobs."""

    def __init__(self, *jobs: SteeredJob) -> None:
        self.jobs = {job.id: job for job in jobs}
        self.requests: list[tuple[str, str]] = []
        self.settings: dict[str, str] = {}
        """Further settings of the JobManager."""
        self.jvm_options: list[str] = []
        """Of the JobManager."""
        self.answers = True
        self.before: Callable[[str, str], None] = lambda method, path: None
        """Called with each request, which it may fail."""
        self.hang_s = 0.0
        """How long each answer takes."""
        self._lock = threading.Lock()
        super().__init__(self._respond)

    @property
    def changes(self) -> list[tuple[str, str]]:
        """Requests that are not GET."""
        return [one for one in self.requests if one[0] != "GET"]

    def _respond(self, request: BaseHTTPRequestHandler, body: bytes) -> tuple[int, object]:
        path, _, query = request.path.partition("?")
        with self._lock:
            self.requests.append((request.command, path))
            self.before(request.command, path)
            if not self.answers:
                return 503, {"errors": ["the JobManager is away"]}
            wanted = parse_qs(query).get("get", [""])[0].split(",") if query else []
            answered = self.answer(request.command, path, wanted, json.loads(body) if body else None)
        time.sleep(self.hang_s)
        return answered

    def answer(self, method: str, path: str, wanted: list[str], body: object) -> tuple[int, object]:
        parts = path.strip("/").split("/")
        if parts[0] == "jobs" and len(parts) > 1 and parts[1] in self.jobs:
            self.jobs[parts[1]].advance()
            found = self._of_job(self.jobs[parts[1]], method, parts[2:], wanted, body)
        else:
            found = self._of_cluster(path)
        return (404, {"errors": [f"Not found: {path}"]}) if found is None else (200, found)

    def _of_cluster(self, path: str) -> object:
        first = next(iter(self.jobs.values()))
        used = sum(max(job.tasks.values()) for job in self.jobs.values())
        overview = [
            {"jid": job.id, "name": job.name, "state": job.state, "tasks": {"total": 6}} for job in self.jobs.values()
        ]
        answers: dict[str, object] = {
            "/jobs/overview": {"jobs": overview},
            "/jobmanager/config": [
                {"key": "jobmanager.scheduler", "value": "adaptive" if first.adaptive else "default"},
                {"key": "metrics.fetcher.update-interval", "value": "1 s"},
                *({"key": key, "value": value} for key, value in self.settings.items()),
            ],
            "/jobmanager/environment": {"jvm": {"options": self.jvm_options}},
            "/taskmanagers": {"taskmanagers": [{"id": "tm1"}]},
            "/taskmanagers/tm1": {
                "id": "tm1",
                "slotsNumber": first.slots,
                "freeSlots": max(first.slots - used, 0) if len(self.jobs) == 1 else first.slots,
                "allocatedSlots": [{"jobId": j.id} for j in self.jobs.values() for _ in range(max(j.tasks.values()))],
                "memoryConfiguration": {"managedMemory": 400 * 2**20, "totalProcessMemory": 2**30},
            },
        }
        return answers.get(path)

    def _of_job(self, job: SteeredJob, method: str, parts: list[str], wanted: list[str], body: object) -> object:
        if method == "PUT" and parts == ["resource-requirements"]:
            assert isinstance(body, dict)
            if job.state != "RUNNING":
                return None
            job.require({vertex: one["parallelism"]["upperBound"] for vertex, one in body.items()})
            return {}
        if parts[:1] == ["vertices"]:
            return self._of_vertex(job, parts[1], parts[2:], wanted)
        bounds = {v: {"parallelism": {"lowerBound": 1, "upperBound": n}} for v, n in job.required.items()}
        answers: dict[str, object] = {
            "": self._job(job),
            "plan": {"plan": self._plan(job)},
            "metrics": [],
            "resource-requirements": bounds,
            "checkpoints": self._checkpoints(job),
            "exceptions": {"exceptionHistory": {"entries": []}},
        }
        return answers.get("/".join(parts))

    def _checkpoints(self, job: SteeredJob) -> object:
        history = [{"id": 9 + n, "status": "FAILED"} for n in range(job.failed_checkpoints)]
        history += [] if job.hung_checkpoint is None else [{"id": job.hung_checkpoint, "status": "IN_PROGRESS"}]
        return {"history": [*history, {"id": 8, "status": "COMPLETED"}], "latest": {"completed": None}}

    def _job(self, job: SteeredJob) -> object:
        vertices = [
            {
                "id": id_,
                "name": NAMES[id_],
                "parallelism": n,
                "maxParallelism": 128,
                "slotSharingGroupId": "9" * 32,
                "tasks": {
                    "RUNNING": n - job.finished.get(id_, 0) if job.runs else 0,
                    "FINISHED": job.finished.get(id_, 0),
                },
            }
            for id_, n in job.tasks.items()
        ]
        since = {"RUNNING": round(1000 * job.up_s)}
        return {
            "name": job.name,
            "state": job.state,
            "timestamps": since,
            "vertices": vertices,
            "plan": self._plan(job),
        }

    def _plan(self, job: SteeredJob) -> object:
        inputs: dict[str, list[object]] = {
            SOURCE: [],
            COUNT: [{"id": SOURCE, "ship_strategy": "HASH"}],
            SINK: [{"id": COUNT, "ship_strategy": "REBALANCE"}],
        }
        inputs = {v: inputs[v] for v in job.tasks}
        nodes = [
            {"id": v, "description": NAMES[v], "parallelism": n, "inputs": inputs[v]} for v, n in job.tasks.items()
        ]
        return {"name": job.name, "nodes": nodes}

    def _of_vertex(self, job: SteeredJob, vertex: str, parts: list[str], wanted: list[str]) -> object:
        if not parts:
            status = "RUNNING" if job.runs else "DEPLOYING"
            counted = {**job.counters(vertex), "write-records-complete": job.runs}
            return {
                "subtasks": [
                    {
                        "subtask": n,
                        "status": "FINISHED" if n < job.finished.get(vertex, 0) else status,
                        "attempt": job.attempt,
                        "taskmanager-id": "tm1",
                        "metrics": counted,
                    }
                    for n in range(job.tasks[vertex])
                ]
            }
        if vertex != SOURCE or parts != ["metrics"]:
            return []
        known = {}
        for task in range(job.tasks[SOURCE]):
            known[f"{task}.Source__clicks.numRecordsOut"] = job.counters(SOURCE)["write-records"]
            reporting = 1 if job.partitioned else job.tasks[SOURCE]
            if job.reports_lag and task < reporting:
                known[f"{task}.Source__clicks.pendingRecords"] = job.lag / reporting
        if job.partitioned:
            read_to = job.offset_before if job.ran_s < job.offset_late_s else job.offset
            known["0.Source__clicks.KafkaSourceReader.topic.clicks.partition.0.currentOffset"] = read_to - 1
        if not wanted:
            return [{"id": name} for name in known]
        return [{"id": name, "value": str(known[name])} for name in wanted if name in known]
