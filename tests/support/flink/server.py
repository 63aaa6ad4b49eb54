"""A server of this machine that answers as Flink's REST interface does, and plans of the job that it says it runs."""

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs

from answering.server import AnsweringServer
from models.plan.content import PlanContent

JOB_ID = "1" * 32
WORDS = 20
TRUE_RATES = {"source": 1e5, "flatmap": 1e5 / 60, "count": 1e6 / 60}
"""Records/s of a task (DS2 section 5.2); a sentence is 20 words."""
_COUNTED = ("numRecordsOut", "numRecordsOutPerSecond")


def word_count_plan(
    placement: Mapping[str, Mapping[str, int]], rate: float = 1500.0, memory_mb: float = 900.0
) -> PlanContent:
    """A plan from worker -> operator -> tasks, for a rate of sentences."""
    tasks = Counter[str]()
    for of_worker in placement.values():
        tasks.update(of_worker)
    records_in = {"source": rate, "flatmap": rate, "count": rate * WORDS}
    operators = [
        {
            "name": name,
            "parallelism": tasks[name],
            "managed_memory_mb": 30.0 if name == "count" else 0.0,
            "records_in_per_s": records_in[name],
            "predicted_busyness": min(1.0, records_in[name] / (tasks[name] * TRUE_RATES[name])),
            "reason": "as the test says",
        }
        for name in records_in
    ]
    return PlanContent.model_validate(
        {
            "job": "wordcount",
            "target_rate": rate,
            "source_rates": {"source": rate},
            "headroom": 1.0,
            "task_slots": tasks["flatmap"] + tasks["count"],
            "total_slots": tasks.total(),
            "memory_mb": memory_mb,
            "operators": operators,
            "placement": placement,
            "cost": {"cpu": 0.0, "io": 0.0, "net": 0.0},
            "thresholds": {"cpu": 1.0, "io": 1.0, "net": 1.0},
            "placement_policy": "caps",
            "placement_status": "optimal",
            "predicted_mst": {"value": rate, "low": rate, "high": rate},
            "reasons": ["as the test says"],
            "lineage": {
                "run": "test",
                "trigger": "plan",
                "testbed": "flink",
                "model": "log",
                "policy": "ds2",
                "code_version": "0",
                "seed": 1,
            },
        }
    )


class FakeFlink(AnsweringServer):
    """A small server that answers as a cluster of one job of two vertices does: `Source: source` and a chain.

    It takes requirements and follows them if it has the slots; `faults` are given instead of answers, one a request.
    """

    def __init__(self) -> None:
        self.emitted_per_s, self.backpressure, self.busyness = 1500.0, 0.0, 0.5
        """Rates of the sources' tasks together, and the shares of time of each, by the meters."""
        self.pending: float | None = None
        """Records that wait before each source task; None where the source reports none."""
        self.read_per_emitted: float | None = None
        """Records that a source reads for each that it emits; None where it does not count what it reads."""
        self.running_s = 3600.0
        """For how long all tasks have run."""
        self.reports = True
        """Whether it reports the values of metrics."""
        self._asked = 0
        self.names = {"a" * 32: "Source: source", "b" * 32: "flatmap -> count"}
        self.tasks = {"a" * 32: 1, "b" * 32: 1}
        self._required = dict(self.tasks)
        self.finished: dict[str, int] = {}
        """Number of tasks, the first ones, that have finished, by vertex."""
        self.settings = {"jobmanager.scheduler": "adaptive"}
        self.jobs = [{"jid": JOB_ID, "name": "wordcount", "state": "RUNNING"}]
        self.state = "RUNNING"
        self.plan: dict[str, object] = {}
        self.slots, self.process_memory = 8, 900 * 2**20
        self.version = "1.20.5"
        self.obeys = True
        self.after_put: Callable[[], None] = lambda: None
        self.put_bodies: list[dict[str, dict[str, dict[str, int]]]] = []
        self.refusal: tuple[int, object] | None = None
        self.faults: list[tuple[int, object]] = []
        self.pause_s = 0.0
        super().__init__(self._respond)

    def add_done_source(self, tasks: int) -> None:
        """A bounded side input that was read to its end."""
        self.names["c" * 32] = "Source: rules"
        for counts in (self.tasks, self._required, self.finished):
            counts["c" * 32] = tasks

    def _respond(self, request: BaseHTTPRequestHandler, body: bytes) -> tuple[int, object]:
        time.sleep(self.pause_s)
        return self.answer(request.command, *_parts(request.path), json.loads(body) if body else None)

    def answer(
        self, method: str, path: str, wanted: list[str], body: dict[str, dict[str, dict[str, int]]] | None
    ) -> tuple[int, object]:
        if self.faults:
            return self.faults.pop(0)
        if method == "PUT":
            return self._require(body or {})
        kind = path.removeprefix(f"/jobs/{JOB_ID}")
        bounds = {v: {"parallelism": {"lowerBound": 1, "upperBound": n}} for v, n in self._required.items()}
        history = {"exceptionHistory": {"entries": [{"stacktrace": "RuntimeException: boom\n\tat a.b(C)"}]}}
        answers: dict[str, object] = {
            "/jobs/overview": {"jobs": self.jobs},
            "/taskmanagers": {"taskmanagers": [{"id": "tm1"}]},
            "/taskmanagers/tm1": self._task_manager(),
            "/jobmanager/config": [{"key": k, "value": v} for k, v in self.settings.items()],
            "/jobmanager/environment": {"jvm": {"options": ["-Xmx1g"]}},
            "/config": {"flink-version": self.version},
            "/jars": {"files": [{"id": "known.jar"}]},
            "": self._job(),
            "/plan": {"plan": self.plan},
            "/resource-requirements": bounds,
            "/exceptions": history,
        }
        for vertex, tasks in self.tasks.items():
            subtasks = [
                {
                    "subtask": i,
                    "status": "FINISHED" if i < self.finished.get(vertex, 0) else "RUNNING",
                    "attempt": 0,
                    "taskmanager-id": "tm1",
                    "status-duration": {"RUNNING": 1000 * self.running_s},
                }
                for i in range(tasks)
            ]
            answers[f"/vertices/{vertex}"] = {"subtasks": subtasks}
            answers[f"/vertices/{vertex}/metrics"] = self._metrics(vertex, wanted)
        return (200, answers[kind]) if kind in answers else (404, {"errors": [f"Not found: {path}"]})

    def _metrics(self, vertex: str, wanted: list[str]) -> object:
        """Counters that have grown by a second each time they are asked for, and meters; their names, if none is asked."""
        if not wanted:
            names = _COUNTED if self.pending is None else (*_COUNTED, "pendingRecords")
            return [{"id": f"{task}.Source__source.{name}"} for task in range(self.tasks[vertex]) for name in names]
        if not self.reports:
            return []
        self._asked += 1
        of_a_task = self.emitted_per_s / self.tasks[vertex]
        known = {
            "accumulateBusyTimeMs": 1000 * self._asked * (1 - self.backpressure),
            "accumulateBackPressuredTimeMs": 1000 * self._asked * self.backpressure,
            "accumulateIdleTimeMs": 0,
            "numRecordsIn": of_a_task * self._asked,
            "Source__source.numRecordsOut": of_a_task * self._asked,
            "Source__source.numRecordsIn": of_a_task * self._asked * (self.read_per_emitted or 0.0),
            "Source__source.numRecordsOutPerSecond": of_a_task,
            "Source__source.pendingRecords": self.pending,
            "busyTimeMsPerSecond": 1000 * self.busyness,
            "backPressuredTimeMsPerSecond": 1000 * self.backpressure,
        }
        gone = {str(task) for task in range(self.finished.get(vertex, 0))}
        tasks = ((name, *name.split(".", 1)) for name in wanted)
        return [{"id": name, "value": str(known[metric])} for name, task, metric in tasks if task not in gone]

    def _require(self, body: dict[str, dict[str, dict[str, int]]]) -> tuple[int, object]:
        self.put_bodies.append(body)
        if self.refusal is not None:
            return self.refusal
        self._required = {vertex: one["parallelism"]["upperBound"] for vertex, one in body.items()}
        if self.obeys:
            self.tasks = dict(self._required)
        self.after_put()
        return 200, {}

    def _job(self) -> object:
        vertices = [
            {
                "id": id_,
                "name": self.names[id_],
                "parallelism": tasks,
                "maxParallelism": 128,
                "slotSharingGroupId": id_,
                "tasks": {
                    "RUNNING": tasks - self.finished.get(id_, 0),
                    "FINISHED": self.finished.get(id_, 0),
                },
            }
            for id_, tasks in self.tasks.items()
        ]
        return {"name": "wordcount", "state": self.state, "vertices": vertices, "plan": {}}

    def _task_manager(self) -> object:
        held = sum(self.tasks.values()) - sum(self.finished.values())
        return {
            "id": "tm1",
            "slotsNumber": self.slots,
            "freeSlots": self.slots - held,
            "allocatedSlots": [{"jobId": JOB_ID}] * held,
            "memoryConfiguration": {"totalProcessMemory": self.process_memory, "managedMemory": 8 * 40 * 2**20},
        }


def _parts(target: str) -> tuple[str, list[str]]:
    """Path, and the metrics that are asked for."""
    path, _, query = target.partition("?")
    return path, parse_qs(query).get("get", [""])[0].split(",") if query else []
