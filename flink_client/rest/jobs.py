"""Jobs of a cluster: their state, vertices, metrics and failures, and the number of tasks that they are to have."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

from flink_client.rest.answers import (
    ENDED,
    FINISHED,
    MOST_TASKS,
    RUNNING,
    Failure,
    JobStatus,
    Subtask,
    Vertex,
    VertexEdge,
    graph,
    numbers,
    shortened,
)
from flink_client.rest.transport import Refused, RestTransport, typed
from flink_client.rest.waiting import TimedOut, wait_for
from models.errors import SluiceError

_REFRESHED_S: Final = 5.0
_MOST_CHARACTERS: Final = 2500
"""Most characters of names in one request, as they are sent: Flink refuses request lines of more than 4096."""


def resource_requirements(parallelism: Mapping[str, int], least: int | None = None) -> dict[str, Any]:
    """Body of `PUT /jobs/:jobid/resource-requirements` (FLIP-291).

    Args:
        least: tasks with which a vertex may run while slots are missing; None: exactly this parallelism, or not at all.
    """
    return {
        vertex: {"parallelism": {"lowerBound": n if least is None else min(least, n), "upperBound": n}}
        for vertex, n in parallelism.items()
    }


class JobApi(RestTransport):
    """Reads jobs, changes their numbers of tasks, cancels them and waits for them."""

    @typed
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

    @typed
    def edges(self, job: str) -> tuple[VertexEdge, ...]:
        return graph(self._get(f"/jobs/{job}/plan")["plan"])[1]

    @typed
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

    @typed
    def failure(self, job: str) -> str | None:
        """The cause of a job's last failure, shortened; None if it did not fail."""
        answer = self._get(f"/jobs/{job}/exceptions")
        entries = answer["exceptionHistory"]["entries"]
        trace = entries[0]["stacktrace"] if entries else answer.get("root-exception")
        return shortened(trace) if trace else None

    @typed
    def failures(self, job: str) -> tuple[Failure, ...]:
        """The failures that Flink remembers, 16 by default, the newest first."""
        entries = self._get(f"/jobs/{job}/exceptions")["exceptionHistory"]["entries"]
        return tuple(Failure(int(one["timestamp"]), shortened(one["stacktrace"])) for one in entries)

    @typed
    def vertex_metrics(self, job: str, vertex: str, names: Iterable[str], tasks: int) -> list[dict[str, float]]:
        """Metrics of each task of a vertex, such as `numRecordsOut`; metrics not (yet) reported are left out.

        Flink fetches them from the TaskManagers at intervals (`metrics.fetcher.update-interval`): use differences of
        counters, not values.
        """
        if tasks > MOST_TASKS:
            raise ValueError(f"a vertex has at most {MOST_TASKS} tasks, but got {tasks!r:.40}")
        names = tuple(names)
        values: dict[str, float] = {}
        at_once = max(1, _MOST_CHARACTERS // max(1, sum(len(quote(f"999.{name},", safe="")) for name in names)))
        for first in range(0, tasks, at_once):
            some = range(first, min(first + at_once, tasks))
            values |= self._metrics(job, vertex, [f"{task}.{name}" for task in some for name in names])
        return [{n: values[f"{t}.{n}"] for n in names if f"{t}.{n}" in values} for t in range(tasks)]

    @typed
    def task_metrics(self, job: str, vertex: str, names: Iterable[str]) -> dict[str, float]:
        """Metrics of single tasks, each with the number of its task before it, such as `0.numRecordsOut`; those not (yet)
        reported are left out."""
        values: dict[str, float] = {}
        names = tuple(names)
        at_once = max(1, _MOST_CHARACTERS // max((len(quote(f"{name},", safe="")) for name in names), default=1))
        for first in range(0, len(names), at_once):
            values |= self._metrics(job, vertex, names[first : first + at_once])
        return values

    def _metrics(self, job: str, vertex: str, names: Iterable[str]) -> dict[str, float]:
        return numbers(self._get(f"/jobs/{job}/vertices/{vertex}/metrics", {"get": ",".join(names)}))

    @typed
    def metric_names(self, job: str, vertex: str) -> frozenset[str]:
        """Names of all metrics of a vertex, each with the number of its task before it: `0.numRecordsIn`."""
        return frozenset(str(one["id"]) for one in self._get(f"/jobs/{job}/vertices/{vertex}/metrics"))

    @typed
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
            except Refused as refused:
                # It has ended, though the reported state may be seconds old (web.refresh-interval).
                if refused.status != HTTPStatus.CONFLICT:
                    raise

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
