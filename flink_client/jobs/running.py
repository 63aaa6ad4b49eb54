"""State of a Flink cluster from its REST interface: running jobs and their tasks, free slots, the scheduler."""

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from http import HTTPStatus
from typing import Any, Final

from flink_client.jobs.deployment import AvailableTaskManager, RunningJob, RunningVertex
from flink_client.jobs.job_graph import read_job, vertices_of
from flink_client.rest.answers import ENDED, FINISHED, RUNNING, flinks_answers, graph
from flink_client.rest.client import FlinkRest
from flink_client.rest.transport import Refused
from models.errors import InvalidInput, SluiceError
from models.job import Job

_MIB: Final = 2**20
_OF_SQL: Final = re.compile(r"\[\d+\]:")
"""Flink numbers the vertices of SQL jobs."""


class Scheduler(StrEnum):
    """The scheduler of a cluster for streaming jobs."""

    ADAPTIVE = "adaptive"
    """A job's parallelism can be changed while it runs."""
    REACTIVE = "reactive"
    """A job always takes all slots; its parallelism cannot be set."""
    DEFAULT = "default"
    """A change of parallelism takes a restart."""


class NotRunning(SluiceError):
    """The job has ended, or not all of its tasks run."""

    def __init__(self, what: str, *, ended: bool = True) -> None:
        super().__init__(what)
        self.ended = ended


def find_job(rest: FlinkRest, name: str, id_: str | None = None) -> str:
    """Id of the only job of this name that has not ended, or of the job with the given id.

    Raises:
        InvalidInput: there is no such job, or several.
    """
    listed = rest.get("/jobs/overview")["jobs"]
    jobs = [one for one in listed if one["state"] not in ENDED]
    ids = [one["jid"] for one in jobs if (one["name"] == name if id_ is None else one["jid"] == id_)]
    if len(ids) == 1:
        return str(ids[0])
    if ids:
        raise InvalidInput(f"{len(ids)} jobs named {name!r} run on {rest.url}: {', '.join(ids)}; name one by its id")
    what = f"named {name!r}" if id_ is None else f"with the id {id_}"
    ended = last_ended([one for one in listed if (one["name"] == name if id_ is None else one["jid"] == id_)])
    there = ", ".join(f"{one['name']!r} ({one['jid']})" for one in jobs) or "none"
    raise InvalidInput(
        f"no job {what} runs on {rest.url}{f' ({ended})' if ended else ''}; running jobs: {there}; name one by its id"
    )


def find_named_job(rest: FlinkRest, named: str) -> str:
    """Id of the only job that has not ended and that has this name, or this id.

    Raises:
        InvalidInput: there is no such job, or several.
    """
    is_id = len(named) == 32 and set(named) <= set("0123456789abcdef")
    return find_job(rest, named, named if is_id else None)


def last_ended(jobs: Sequence[Mapping[str, Any]]) -> str | None:
    """The job that ended last, and how, in words; None if none has.

    Args:
        jobs: of Flink's overview.
    """
    ended = [one for one in jobs if one["state"] in ENDED]
    if not ended:
        return None
    last = max(ended, key=lambda one: one.get("end-time", 0))
    after = f" after {last['duration'] / 1000:,.1f} s" if last.get("duration", 0) > 0 else ""
    if last["state"] == FINISHED:
        return f"{last['name']!r} has finished{after}: all of its input was bounded, and is read"
    return f"{last['name']!r} is {last['state'].lower()}{after}"


def running_job(rest: FlinkRest, id_: str) -> RunningJob:
    """A job and where its tasks run; tasks with a bounded input may have finished.

    Raises:
        NotRunning: the others do not all run; the message has the cause, if it failed.
    """
    answer = rest.get(f"/jobs/{id_}")
    counts = [(v["parallelism"], v["tasks"][RUNNING], v["tasks"].get(FINISHED, 0)) for v in answer["vertices"]]
    state, tasks = answer["state"], [running + finished == tasks for tasks, running, finished in counts]
    if state in ENDED or state == "FAILING":
        raise NotRunning(
            f"job {id_} is {state.lower()}: {rest.failure(id_) or 'no reason was given'}", ended=state in ENDED
        )
    if state != RUNNING or not all(tasks) or not any(running for _, running, _ in counts):
        raise NotRunning(f"job {id_} is {state.lower()}, and not all of its tasks run", ended=False)
    order = {v.id: place for place, v in enumerate(graph(answer["plan"])[0])}
    vertices = []
    for v in answer["vertices"]:
        subtasks = rest.subtasks(id_, v["id"])
        vertices.append(
            RunningVertex(
                id=v["id"],
                name=v["name"],
                parallelism=v["parallelism"],
                max_parallelism=v["maxParallelism"],
                slot_group=v["slotSharingGroupId"],
                task_managers=tuple(one.task_manager for one in subtasks),
                finished=frozenset(one.index for one in subtasks if one.state == FINISHED),
            )
        )
    return RunningJob(id_, answer["name"], tuple(sorted(vertices, key=lambda v: order.get(v.id, 0))))


def awaited(rest: FlinkRest, id_: str, wanted: Mapping[str, int]) -> tuple[RunningJob | None, str | None]:
    """A job whose tasks all run, and what is not yet as wanted; a cluster that does not answer may do so later.

    Args:
        wanted: tasks by vertex id; other vertices may have any.

    Raises:
        NotRunning: the job has ended, so that waiting is pointless.
    """
    try:
        with flinks_answers(rest.url):
            job = running_job(rest, id_)
    except NotRunning as error:
        if error.ended:
            raise
        return None, str(error)
    except SluiceError as error:
        return None, str(error)
    for vertex in job.vertices:
        if vertex.parallelism != wanted.get(vertex.id, vertex.parallelism):
            return job, f"{vertex.name!r} still has {vertex.parallelism} tasks and not {wanted[vertex.id]}"
    return job, None


def has_ended(rest: FlinkRest, id_: str) -> bool:
    return rest.job(id_).state in ENDED


def is_forgotten(rest: FlinkRest, id_: str, error: SluiceError) -> bool:
    """Whether an error came since Flink does not know the job, as a JobManager that was started without its former state."""
    if not isinstance(error, Refused) or error.status != HTTPStatus.NOT_FOUND:
        return False
    with suppress(SluiceError):
        return rest.get_if_there(f"/jobs/{id_}") is None
    return False


def other_jobs(rest: FlinkRest, id_: str) -> list[str]:
    """Names of the other jobs that have not ended."""
    jobs = rest.get("/jobs/overview")["jobs"]
    return [one["name"] for one in jobs if one["jid"] != id_ and one["state"] not in ENDED]


def sql_vertices(rest: FlinkRest, id_: str, operators: Collection[str], job: Job | None) -> dict[str, str] | None:
    """Vertex id of each operator of a SQL job without chaining, whose vertices Flink names by their operation.

    Args:
        operators: names to find.
        job: the file of the job, if there is one; else operators have the names given by `read_job`.

    Returns:
        None if the job is not SQL, or its dataflow differs.
    """
    vertices, edges = graph(rest.get(f"/jobs/{id_}/plan")["plan"])
    if len(vertices) < 2 or any(len(_OF_SQL.findall(v.name)) != 1 for v in vertices):
        return None
    for known in (job, read_job("sql", vertices, edges)):
        if known is not None and set(known.order) == set(operators):
            with suppress(InvalidInput):
                return {name: v.id for name, v in vertices_of(known, vertices, edges).items()}
    return None


def room_for(rest: FlinkRest, id_: str) -> tuple[AvailableTaskManager, ...]:
    """Slots and memory of each TaskManager for a job, by its name."""
    found = []
    for listed in rest.get("/taskmanagers")["taskmanagers"]:
        one = rest.get(f"/taskmanagers/{listed['id']}")
        held = sum(slot["jobId"] == id_ for slot in one["allocatedSlots"])
        memory, process = one["memoryConfiguration"], one["memoryConfiguration"].get("totalProcessMemory")
        found.append(
            AvailableTaskManager(
                task_manager=one["id"],
                slots=one["freeSlots"] + held,
                memory_mb=None if process is None else process / _MIB,
                managed_per_slot_mb=memory["managedMemory"] / _MIB / max(1, one["slotsNumber"]),
            )
        )
    return tuple(sorted(found, key=lambda room: room.task_manager))


def tasks_in_slots(rest: FlinkRest, id_: str) -> dict[str, tuple[int, ...]] | None:
    """Number of a job's tasks in each slot that holds any, by TaskManager, ascending.

    Returns:
        None before Flink 2.3, which does not report it. TaskManagers report it with their heartbeats.
    """
    found = {}
    for listed in rest.get("/taskmanagers")["taskmanagers"]:
        slots = rest.get(f"/taskmanagers/{listed['id']}")["allocatedSlots"]
        own = [slot.get("assignedTasks") for slot in slots if slot["jobId"] == id_]
        if None in own:
            return None
        if any(own):
            found[str(listed["id"])] = tuple(sorted(tasks for tasks in own if tasks))
    return found


def settings(rest: FlinkRest) -> dict[str, str]:
    """Settings of the JobManager."""
    return {str(one["key"]): str(one["value"]) for one in rest.get("/jobmanager/config")}


def scheduler(settings: dict[str, str]) -> Scheduler:
    if settings.get("scheduler-mode", "").lower() == "reactive":
        return Scheduler.REACTIVE
    return Scheduler.ADAPTIVE if settings.get("jobmanager.scheduler", "").lower() == "adaptive" else Scheduler.DEFAULT
