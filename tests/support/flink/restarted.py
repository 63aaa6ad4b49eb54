"""A server that answers as a Flink with the default scheduler does: one job, which a savepoint ends, and its program's jar.

A savepoint completes `savepoint_s` after it was asked for, and cancels the job then, whether anyone waits or not; a program
runs `main_s` after it was submitted.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from answering.server import AnsweringServer

JOB, VERTEX, SAVEPOINT = "1" * 32, "b" * 32, "file:///savepoints/s-1"


@dataclass
class StartedProgram:
    """A job of the program."""

    tasks: int
    runs_from_s: float
    state: str = "RUNNING"


@dataclass
class RestartedFlink:
    """The cluster; its answers are those of the present time."""

    clock: Callable[[], float]
    savepoint_s: float = 1.0
    savepoint_fails: bool = False
    main_s: float = 0.0
    loses_answer_to: str = ""
    """The answer to the next request whose path contains this is lost."""
    refuses_tasks: int | None = None
    """A program with so many tasks is refused."""
    jobs: dict[str, StartedProgram] = field(default_factory=dict)
    asked: dict[str, float] = field(default_factory=dict)
    """Trigger -> when the savepoint was asked for."""
    runs: list[tuple[str, int]] = field(default_factory=list)
    """Submitted programs: job and tasks."""
    jars: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.jobs[JOB] = StartedProgram(2, self.clock())
        self.server = AnsweringServer(self._respond)

    def advance(self) -> None:
        """To the present time."""
        for asked_s in self.asked.values():
            if not self.savepoint_fails and self.clock() >= asked_s + self.savepoint_s:
                self.jobs[JOB].state = "CANCELED"

    @property
    def running(self) -> list[tuple[str, int]]:
        """Jobs that have not ended, and their tasks."""
        self.advance()
        return [(id_, job.tasks) for id_, job in self.jobs.items() if self._is_known(job) and job.state == "RUNNING"]

    def _is_known(self, job: StartedProgram) -> bool:
        return self.clock() >= job.runs_from_s

    def _respond(self, request: BaseHTTPRequestHandler, body: bytes) -> tuple[int, object] | None:
        path = request.path.partition("?")[0]
        self.advance()
        sent: Any = json.loads(body) if body[:1] == b"{" else {}
        answered = self._answer(request.command, path.strip("/").split("/"), sent)
        if self.loses_answer_to and self.loses_answer_to in path and request.command == "POST":
            self.loses_answer_to = ""
            return None
        return answered

    def _answer(self, method: str, parts: list[str], sent: dict[str, Any]) -> tuple[int, object]:
        match (method, *parts):
            case ("GET", "overview"):
                return 200, {"flink-version": "1.20.5"}
            case ("GET", "jobmanager", "config"):
                return 200, []
            case ("POST", "jars", "upload"):
                self.jars.append(f"{len(self.runs)}_program.jar")
                return 200, {"filename": f"/tmp/{self.jars[-1]}", "status": "success"}
            case ("DELETE", "jars", jar):
                self.jars.remove(jar)
                return 200, {}
            case ("POST", "jars", _, "run"):
                return self._submitted(sent)
            case ("POST", "jobs", job, "savepoints"):
                self.asked.setdefault(sent["triggerId"], self.clock())
                return 200, {"request-id": sent["triggerId"]}
            case ("GET", "jobs", job, "savepoints", trigger) if trigger in self.asked:
                return 200, self._outcome(self.asked[trigger])
            case (_, "jobs", job, *rest) if job in self.jobs and self._is_known(self.jobs[job]):
                return self._of_job(method, self.jobs[job], rest)
        return 404, {"errors": [f"Not found: {'/'.join(parts)}"]}

    def _submitted(self, sent: dict[str, Any]) -> tuple[int, object]:
        tasks = int(sent["flinkConfiguration"]["pipeline.jobvertex-parallelism-overrides"].rpartition(":")[2])
        assert sent["savepointPath"] == SAVEPOINT
        if tasks == self.refuses_tasks or sent["jobId"] in self.jobs:
            return 400, {"errors": ["the program is refused"]}
        self.runs.append((sent["jobId"], tasks))
        self.jobs[sent["jobId"]] = StartedProgram(tasks, self.clock() + self.main_s)
        return 200, {"jobid": sent["jobId"]}

    def _outcome(self, asked_s: float) -> object:
        if self.clock() < asked_s + self.savepoint_s:
            return {"status": {"id": "IN_PROGRESS"}}
        failed = {"failure-cause": {"stack-trace": "java.io.IOException: no space"}}
        return {
            "status": {"id": "COMPLETED"},
            "operation": failed if self.savepoint_fails else {"location": SAVEPOINT},
        }

    def _of_job(self, method: str, job: StartedProgram, parts: list[str]) -> tuple[int, object]:
        if method == "PATCH":
            job.state = "CANCELED"
            return 202, {}
        counts = {"RUNNING": job.tasks if job.state == "RUNNING" else 0}
        vertex = {"id": VERTEX, "name": "count", "parallelism": job.tasks, "maxParallelism": 128, "tasks": counts}
        plan = {"nodes": [{"id": VERTEX, "description": "count", "parallelism": job.tasks, "inputs": []}]}
        answers: dict[str, object] = {
            "": {
                "name": "p",
                "state": job.state,
                "vertices": [vertex | {"slotSharingGroupId": "9" * 32}],
                "plan": plan,
            },
            "exceptions": {"exceptionHistory": {"entries": []}},
            f"vertices/{VERTEX}": {
                "subtasks": [
                    {"subtask": n, "status": job.state, "attempt": 0, "taskmanager-id": "tm1"} for n in range(job.tasks)
                ]
            },
            "checkpoints": {"latest": {}},
        }
        found = answers.get("/".join(parts))
        return (404, {"errors": ["Not found"]}) if found is None else (200, found)
