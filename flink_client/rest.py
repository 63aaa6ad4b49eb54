"""A typed client of Flink's REST interface.

Paths and fields are those documented for Flink 1.20 and 2.3 (REST API). Idempotent requests are repeated when the
connection fails or the answer is a server error; others are not.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import wraps
from http import HTTPStatus
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec, TypeVar
from urllib.parse import quote

import httpx

from flink_client.access.refusals import refusal, without_secrets
from flink_client.access.server import server_access
from flink_client.access.trust import tls_fault
from flink_client.answers import (
    ENDED,
    FINISHED,
    MOST_TASKS,
    RUNNING,
    Failure,
    JobStatus,
    Subtask,
    TaskManagerStatus,
    Vertex,
    VertexEdge,
    flinks_answers,
    graph,
    numbers,
    shortened,
)
from flink_client.http import http_client
from flink_client.overrides import OVERRIDES_OPTION, overrides
from models.closing import Closing
from models.errors import InvalidInput, SluiceError

P = ParamSpec("P")
T = TypeVar("T")
_PAUSE_S: Final = 0.2
_REFRESHED_S: Final = 5.0
_MOST_CHARACTERS: Final = 2500
"""Most characters of names in one request: Flink refuses request lines of more than 4096; a comma takes three."""


def resource_requirements(parallelism: Mapping[str, int], least: int | None = None) -> dict[str, Any]:
    """Body of `PUT /jobs/:jobid/resource-requirements` (FLIP-291).

    Args:
        least: tasks with which a vertex may run while slots are missing; None: exactly this parallelism, or not at all.
    """
    return {
        vertex: {"parallelism": {"lowerBound": n if least is None else min(least, n), "upperBound": n}}
        for vertex, n in parallelism.items()
    }


def _typed(ask: "Callable[Concatenate[FlinkRest, P], T]") -> "Callable[Concatenate[FlinkRest, P], T]":
    """Turn answers of another form into an error."""

    @wraps(ask)
    def asked(rest: "FlinkRest", /, *given: P.args, **named: P.kwargs) -> T:
        with flinks_answers(rest.url):
            return ask(rest, *given, **named)

    return asked


@dataclass(frozen=True)
class JarProgram:
    """Entry class, arguments and settings of a job that a jar runs."""

    entry_class: str
    arguments: tuple[str, ...]
    settings: Mapping[str, str]
    """Flink settings of this job."""

    def with_parallelism(self, tasks: Mapping[str, int]) -> "JarProgram":
        """The program with the given number of tasks for each vertex, by vertex id.

        Flink heeds them unless `overrides.ignored_at_start` says otherwise, or the program sets them itself (Sluice's kit).
        """
        return replace(self, settings={**self.settings, OVERRIDES_OPTION: overrides(tasks)})

    def body(self) -> dict[str, Any]:
        return {
            "entryClass": self.entry_class,
            "programArgsList": list(self.arguments),
            "flinkConfiguration": dict(self.settings),
        }


class FlinkRest(Closing):
    """The REST interface of one cluster; close it, or use it as a context."""

    def __init__(
        self, address: str, *, timeout_s: float = 30.0, patience_s: float = 10.0, token_variable: str | None = None
    ) -> None:
        """
        Args:
            address: of the JobManager, `http://host:8081` or `connection:NAME`.
            timeout_s: of one answer.
            patience_s: how long a failing request is repeated.
            token_variable: environment variable that holds a bearer token, if a proxy asks for one.

        Raises:
            TokenMissing: that variable is not set.
            InvalidInput: there is no such connection, or it cannot be used.
        """
        self._address, self._token_variable = address, token_variable
        self._access = server_access(address, token_variable)
        self.url = self._access.url
        self.accepted_changes = 0
        """Number of requests other than GET that were accepted."""
        self._timeout_s, self._patience_s = timeout_s, patience_s
        self._client = http_client(self._access, timeout_s=timeout_s)

    def close(self) -> None:
        self._client.close()

    # --- the cluster

    @_typed
    def flink_version(self) -> str:
        return str(self._get("/config")["flink-version"])

    @_typed
    def task_managers(self) -> tuple[TaskManagerStatus, ...]:
        """The registered TaskManagers."""
        return tuple(
            TaskManagerStatus(
                id=one["id"],
                slots=one["slotsNumber"],
                free_slots=one["freeSlots"],
                managed_memory_bytes=one["totalResource"]["managedMemory"] * 2**20,
            )
            for one in self._get("/taskmanagers")["taskmanagers"]
        )

    @_typed
    def task_manager_metrics(self, task_manager: str, names: Iterable[str]) -> dict[str, float]:
        """Metrics of a TaskManager, such as `Status.JVM.CPU.Time` (ns); unknown ones are left out."""
        return numbers(self._get(f"/taskmanagers/{quote(task_manager)}/metrics", {"get": ",".join(names)}))

    # --- jars

    @_typed
    def upload(self, jar: Path, name: str | None = None) -> str:
        """Store a jar on the cluster.

        Args:
            name: its name there, which is the end of its id; that of the file if absent.

        Returns:
            Its id there.
        """
        with jar.open("rb") as file:
            answer = self._request("POST", "/jars/upload", files={"jarfile": (name or jar.name, file)}, repeat=False)
        return str(answer["filename"]).rsplit("/", 1)[-1]

    @_typed
    def jars(self) -> tuple[str, ...]:
        """Ids of the uploaded jars."""
        return tuple(str(one["id"]) for one in self._get("/jars")["files"])

    def delete_jar(self, jar: str) -> None:
        """Remove an uploaded jar; jobs that run keep their own copy."""
        self._request("DELETE", f"/jars/{jar}")

    @_typed
    def plan(self, jar: str, program: JarProgram) -> tuple[tuple[Vertex, ...], tuple[VertexEdge, ...]]:
        """The job graph that a program would run, without running it.

        Raises:
            InvalidInput: Flink refused the program; the message is Flink's.
        """
        return graph(self._submitted(f"/jars/{jar}/plan", program.body())["plan"])

    @_typed
    def run(self, jar: str, program: JarProgram, *, savepoint: str | None = None, job: str | None = None) -> str:
        """Start a job, from a savepoint if one is given. Returns its id.

        Args:
            job: the id that it gets, 32 hexadecimal digits; Flink starts no second job with it.

        Raises:
            InvalidInput: Flink refused the program (for example wrong SQL); the message is Flink's.
        """
        body = program.body() | ({"savepointPath": savepoint} if savepoint else {}) | ({"jobId": job} if job else {})
        return str(self._submitted(f"/jars/{jar}/run", body)["jobid"])

    def _submitted(self, path: str, body: dict[str, Any]) -> Any:
        try:
            return self._request("POST", path, json=body, repeat=False)
        except _Refused as error:
            raise InvalidInput(f"Flink refused the job: {error}") from error

    # --- jobs

    @_typed
    def job(self, job: str) -> JobStatus:
        """State and vertices; a job that waits for slots has no vertices yet."""
        answer = self._get(f"/jobs/{job}")
        order = {v.id: place for place, v in enumerate(graph(answer["plan"])[0])}
        vertices = [
            Vertex(v["id"], v["name"], v["parallelism"], v["tasks"][RUNNING], v["tasks"].get(FINISHED, 0))
            for v in answer["vertices"]
        ]
        since_ms = answer.get("timestamps", {}).get(RUNNING, 0)
        return JobStatus(answer["state"], tuple(sorted(vertices, key=lambda v: order.get(v.id, 0))), since_ms)

    @_typed
    def edges(self, job: str) -> tuple[VertexEdge, ...]:
        return graph(self._get(f"/jobs/{job}/plan")["plan"])[1]

    @_typed
    def subtasks(self, job: str, vertex: str) -> tuple[Subtask, ...]:
        """The tasks of a vertex by their number."""
        listed = [
            Subtask(
                index=one["subtask"],
                state=one["status"],
                attempt=one["attempt"],
                task_manager=one.get("taskmanager-id", "").replace("(unassigned)", ""),
                running_s=max(0, one.get("status-duration", {}).get(RUNNING, 0)) / 1000,
            )
            for one in self._get(f"/jobs/{job}/vertices/{vertex}")["subtasks"]
        ]
        return tuple(sorted(listed, key=lambda one: one.index))

    @_typed
    def failure(self, job: str) -> str | None:
        """The cause of a job's last failure, shortened; None if it did not fail."""
        answer = self._get(f"/jobs/{job}/exceptions")
        entries = answer["exceptionHistory"]["entries"]
        trace = entries[0]["stacktrace"] if entries else answer.get("root-exception")
        return shortened(trace) if trace else None

    @_typed
    def failures(self, job: str) -> tuple[Failure, ...]:
        """The failures that Flink remembers, 16 by default, the newest first."""
        entries = self._get(f"/jobs/{job}/exceptions")["exceptionHistory"]["entries"]
        return tuple(Failure(int(one["timestamp"]), shortened(one["stacktrace"])) for one in entries)

    @_typed
    def vertex_metrics(self, job: str, vertex: str, names: Iterable[str], tasks: int) -> list[dict[str, float]]:
        """Metrics of each task of a vertex, such as `numRecordsOut`; metrics not (yet) reported are left out.

        Flink fetches them from the TaskManagers at intervals (`metrics.fetcher.update-interval`): use differences of
        counters, not values.
        """
        if tasks > MOST_TASKS:
            raise ValueError(f"a vertex has at most {MOST_TASKS} tasks, but got {tasks!r:.40}")
        names = tuple(names)
        values: dict[str, float] = {}
        at_once = max(1, _MOST_CHARACTERS // max(1, sum(len(name) + len("999.,") for name in names)))
        for first in range(0, tasks, at_once):
            some = range(first, min(first + at_once, tasks))
            wanted = ",".join(f"{task}.{name}" for task in some for name in names)
            values |= numbers(self._get(f"/jobs/{job}/vertices/{vertex}/metrics", {"get": wanted}))
        return [{n: values[f"{t}.{n}"] for n in names if f"{t}.{n}" in values} for t in range(tasks)]

    @_typed
    def metric_names(self, job: str, vertex: str) -> frozenset[str]:
        """Names of all metrics of a vertex, each with the number of its task before it: `0.numRecordsIn`."""
        return frozenset(str(one["id"]) for one in self._get(f"/jobs/{job}/vertices/{vertex}/metrics"))

    @_typed
    def requirements(self, job: str) -> dict[str, int]:
        """Requested tasks of each vertex (adaptive scheduler): the upper bounds."""
        answer = self._get(f"/jobs/{job}/resource-requirements")
        return {vertex: bounds["parallelism"]["upperBound"] for vertex, bounds in answer.items()}

    def require(self, job: str, parallelism: Mapping[str, int], least: int | None = None) -> None:
        """Set the number of tasks by vertex id; other vertices keep theirs (adaptive scheduler). `least` as in
        `resource_requirements`.

        Flink accepts requirements that it cannot meet, and then does nothing: wait until `job` shows them.
        """
        asked = self.requirements(job) | dict(parallelism)
        self._request("PUT", f"/jobs/{job}/resource-requirements", json=resource_requirements(asked, least))

    def cancel(self, job: str) -> None:
        """Cancel a job without a savepoint; one that has ended is left alone."""
        if self.job(job).state not in ENDED:
            try:
                self._request("PATCH", f"/jobs/{job}", params={"mode": "cancel"})
            except _Refused as refused:
                # It has ended, though the reported state may be seconds old (web.refresh-interval).
                if refused.status != HTTPStatus.CONFLICT:
                    raise

    @_typed
    def savepoint(
        self, job: str, folder: str | None, *, cancel: bool, seconds: float = 120.0, trigger: str | None = None
    ) -> str:
        """Take a savepoint, and cancel the job if asked.

        Args:
            folder: a URI that all TaskManagers can write; None: where the cluster keeps savepoints.
            trigger: an id of the request, 32 hexadecimal digits, under which Flink takes one savepoint however often it is
                asked, for as long as it remembers the outcome (`rest.async.store-duration`, 5 min).

        Returns:
            Its path.

        Raises:
            SluiceError: it failed, or was not done in `seconds`.
        """
        return self.savepoint_of(self.trigger_savepoint(job, folder, cancel=cancel, trigger=trigger), seconds)

    def savepoint_of(self, path: str, seconds: float) -> str:
        """The path of a savepoint that was asked for; `path` is that of the request's outcome. Raises as `savepoint`."""
        job = path.split("/")[2]
        return str(self._wait_for_snapshot(path, seconds, f"the savepoint of job {job}", "location"))

    def trigger_savepoint(
        self, job: str, folder: str | None = None, *, cancel: bool = False, trigger: str | None = None
    ) -> str:
        """Start a savepoint, once; of the format that its state backend supports. Returns the path for `outcome`."""
        body: dict[str, Any] = {"cancel-job": cancel} | ({} if folder is None else {"target-directory": folder})
        body |= {} if trigger is None else {"triggerId": trigger}
        backend = (self.get_if_there(f"/jobs/{job}/checkpoints/config") or {}).get("state_backend")
        if "forst" in str(backend).lower():
            body["formatType"] = "NATIVE"  # asked for the default, CANONICAL, the job fails
        return self.trigger(f"/jobs/{job}/savepoints", body)

    def checkpoint(self, job: str, seconds: float) -> None:
        """Take a full checkpoint, from which the job resumes when its tasks are started again.

        Raises:
            SluiceError: it failed, or was not done in `seconds`.
        """
        path = self.trigger(f"/jobs/{job}/checkpoints", {"checkpointType": "FULL"})
        self._wait_for_snapshot(path, seconds, f"a checkpoint of job {job}", "checkpointId")

    @_typed
    def trigger(self, path: str, body: Mapping[str, Any]) -> str:
        """Start an asynchronous operation, once. Returns the path for `outcome`."""
        return f"{path}/{self._request('POST', path, json=dict(body), repeat=False)['request-id']}"

    @_typed
    def outcome(self, path: str) -> dict[str, Any] | None:
        """The outcome of an asynchronous operation; None until it is complete."""
        answer = self._get(path)
        return dict(answer["operation"]) if answer["status"]["id"] == "COMPLETED" else None

    def _wait_for_snapshot(self, path: str, seconds: float, what: str, result: str) -> Any:
        return snapshot_result(wait_for(lambda: self.outcome(path), seconds, what, pause_s=0.02), what, result)

    def wait_until_running(self, job: str, seconds: float, parallelism: Mapping[str, int] | None = None) -> JobStatus:
        """Wait until all tasks of a job run, with the given parallelism by vertex id if there is one.

        Raises:
            SluiceError: the job failed (the message says why), or does not run like that within `seconds`.
        """
        wanted = dict(parallelism or {})

        def running() -> JobStatus | None:
            status = self.job(job)
            if status.state in ENDED or status.state == "FAILING":
                raise SluiceError(f"job {job} is {status.state.lower()}: {self._reason(job)}")
            tasks = {v.id: v.parallelism for v in status.vertices}
            as_wanted = all(tasks.get(vertex) == n for vertex, n in wanted.items())
            return status if status.all_running and as_wanted else None

        return wait_for(running, seconds, f"job {job} with all tasks running")

    def _reason(self, job: str) -> str:
        """Why it failed; Flink may answer with what it knew seconds ago (web.refresh-interval)."""
        with suppress(TimedOut):
            return wait_for(lambda: self.failure(job), _REFRESHED_S, f"the reason why job {job} failed")
        return "no reason was given"

    # --- requests

    def get(self, path: str) -> Any:
        """The answer to any other GET request."""
        return self._get(path)

    def get_if_there(self, path: str) -> Any | None:
        """The same; None if Flink has nothing of this path: it is of another version, or does not keep it."""
        try:
            return self._get(path)
        except _Refused as refused:
            if refused.status != HTTPStatus.NOT_FOUND:
                raise
            return None

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """Send a POST request, once."""
        return self._request("POST", path, json=dict(body), repeat=False)

    def put(self, path: str, body: Mapping[str, Any]) -> None:
        """Send an idempotent PUT request."""
        self._request("PUT", path, json=dict(body))

    def _get(self, path: str, params: Mapping[str, str] | None = None) -> Any:
        return self._request("GET", path, params=params)

    def _request(self, method: str, path: str, *, repeat: bool = True, **content: Any) -> Any:
        until = time.monotonic() + self._patience_s
        while True:
            try:
                answer = self._client.request(method, path, **content)
                if answer.status_code == HTTPStatus.UNAUTHORIZED and self._has_new_credentials():
                    continue
                if answer.status_code < 500 or not repeat or time.monotonic() > until:
                    return self._content(answer, method, path)
            except httpx.TransportError as error:
                if (fault := tls_fault(error, self._access)) is not None:
                    raise SluiceError(fault) from error
                if time.monotonic() > until or not (repeat or isinstance(error, httpx.ConnectError)):
                    raise SluiceError(
                        f"Flink at {self.url} does not answer ({type(error).__name__}: {error}); check that the "
                        f"JobManager runs and the address is right"
                    ) from error
            except httpx.RequestError as error:
                raise SluiceError(
                    f"the answer of Flink at {self.url} cannot be read ({type(error).__name__}: {error!s:.200})"
                ) from error
            time.sleep(_PAUSE_S)

    def _has_new_credentials(self) -> bool:
        """Whether the connection has changed since it was read, as when its token was replaced; uses it from now on."""
        access = server_access(self._address, self._token_variable)
        if access == self._access:
            return False
        client = http_client(access, timeout_s=self._timeout_s)
        self._client.close()
        self._access, self.url, self._client = access, access.url, client
        return True

    def _content(self, answer: httpx.Response, method: str, path: str) -> Any:
        if answer.is_success:
            self.accepted_changes += method != "GET"
            with flinks_answers(self.url):
                return answer.json() if answer.content else {}
        try:
            said = shortened("\n".join(answer.json()["errors"]))
        except (ValueError, KeyError, TypeError, RecursionError):
            said = shortened(answer.text)
        if (why := refusal(answer, self._access, said)) is not None:
            raise NoAccess(answer.status_code, why)
        said = without_secrets(answer, self._access, said)
        raise _Refused(answer.status_code, f"{said} (Flink's answer {answer.status_code} to {method} {path})")


def snapshot_result(outcome: Mapping[str, Any], what: str, result: str) -> Any:
    """A field of the outcome of a savepoint or checkpoint.

    Raises:
        SluiceError: it failed; the message says why.
    """
    if outcome.get(result) is None:
        cause = outcome.get("failureCause") or outcome.get("failure-cause")
        trace = cause.get("stack-trace") if isinstance(cause, Mapping) else None
        raise SluiceError(f"{what} failed: {shortened(trace) if isinstance(trace, str) else 'no reason was given'}")
    return outcome[result]


class _Refused(SluiceError):
    """Flink refused the request."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class NoAccess(_Refused):
    """What stands before Flink did not let the request through, so that it changed nothing."""


class TimedOut(SluiceError):
    """The time limit of a wait has passed."""


def wait_for(look: Callable[[], T | None], seconds: float, what: str, pause_s: float = _PAUSE_S) -> T:
    """Poll `look` until it returns something other than None; return that.

    Raises:
        TimedOut: it still returned None after `seconds`.
    """
    until = time.monotonic() + seconds
    while (found := look()) is None:
        if time.monotonic() > until:
            raise TimedOut(f"{what} did not come within {seconds:g} s; see the logs of the cluster")
        time.sleep(pause_s)
    return found
