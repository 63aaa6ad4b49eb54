"""Determines the steps of applying a plan, from the running job; nothing is changed."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from flink_client.jobs.deployment import (
    AvailableTaskManager,
    RunningJob,
    check_fits,
    check_vertices,
    obstacle_to_placement,
    placed_as_planned,
    slots_needed,
    wanted_parallelism,
)
from flink_client.jobs.operators import map_operators
from flink_client.jobs.restart import Restart, RestartProgram, prepare_restart
from flink_client.jobs.running import Scheduler, find_job, room_for, running_job, sql_vertices
from flink_client.jobs.running import scheduler as scheduler_of
from flink_client.jobs.running import settings as settings_of
from flink_client.overrides import overrides
from flink_client.rest.client import FlinkRest
from models.errors import InvalidInput
from models.job import Job
from models.plan.content import Plan
from pipelines.apply.applied import Method, VertexChange
from pipelines.apply.export import parallelism_of, subtasks
from testbeds.flink.placement_hook import obstacle_to_writing, placement_file, placement_text

_MEMORY_TOLERANCE: Final = 0.02
"""Relative tolerance of memory sizes, which Flink rounds."""


@dataclass(frozen=True)
class Move:
    """The input of the placement hook."""

    file: Path
    """The file that the hook in the JobManager reads."""
    lines: str
    """Its new content."""
    detour: Mapping[str, int] | None
    """Intermediate tasks by vertex id, since Flink places tasks only when their number changes; None if it changes
    anyway."""


@dataclass(frozen=True)
class Preparation:
    """The steps that make Flink run a plan."""

    plan: Plan
    job: RunningJob
    """The job as it runs now."""
    vertices: Mapping[str, str]
    """Vertex id by operator of the plan."""
    wanted: Mapping[str, int]
    """Tasks by vertex id."""
    changes: tuple[VertexChange, ...]
    scheduler: Scheduler
    method: Method
    restart: Restart | None
    move: Move | None
    as_planned: bool
    """Whether the tasks run, or will run, where the plan places them."""
    advice: tuple[str, ...]

    @property
    def numbers_slots(self) -> bool:
        """Whether the plan says which tasks share a slot, as Flink's default would not."""
        return any(task.slot is not None for task in subtasks(self.plan, self.vertices))


def prepare(
    rest: FlinkRest,
    plan: Plan,
    *,
    job_id: str | None,
    vertices: Mapping[str, str] | None,
    job_file: Job | None,
    program: RestartProgram | None,
) -> Preparation:
    """Determine the steps of applying a plan; nothing is changed.

    Args:
        job_id: Flink's id of the job; without one, the job that is named as the plan's.
        vertices: vertex id by operator; without it, operators are found by their names.
        job_file: the job's present file, which may say what Flink calls its operators.
        program: the jar that runs the job, for clusters where a change of parallelism takes a restart.

    Raises:
        InvalidInput: the plan does not fit the job, or the cluster needs `program` and there is none.
        Infeasible: Flink could not run the plan.
        SluiceError: the job does not run, or Flink does not answer.
    """
    job = running_job(rest, find_job(rest, plan.job, job_id))
    found, wanted = wanted_of(rest, plan, job, vertices, job_file)
    room, settings = room_for(rest, job.id), settings_of(rest)
    scheduler, changes = scheduler_of(settings), changes_of(plan, found, wanted, job)
    check_fits(job, wanted if scheduler is Scheduler.ADAPTIVE else {**job.parallelism, **wanted}, room)
    rescale = any(c.before != c.after for c in changes)
    restart = None
    if rescale and scheduler is not Scheduler.ADAPTIVE:
        restart = prepare_restart(rest, _refuse_without(plan, found, scheduler, program), settings)
    move, obstacle = None, None
    if rescale or not placed_as_planned(plan, found, job):
        move, obstacle = _move(rest, plan, found, wanted, job, room, rescale, scheduler)
    kept = tuple(
        f"{v.name!r} {'is done' if v.is_done else 'is in no operator of the plan'} and keeps its tasks"
        for v in job.vertices
        if v.id not in wanted
    )
    placing = (
        () if obstacle is None else (f"placement: {obstacle}; `sluice plans export --format placement` prints it",)
    )
    return Preparation(
        plan=plan,
        job=job,
        vertices=found,
        wanted=wanted,
        changes=changes,
        scheduler=scheduler,
        method="restart" if restart else "rescale" if rescale or move else "none",
        restart=restart,
        move=move,
        as_planned=obstacle is None,
        advice=(*placing, *_memory_advice(plan, room), *kept),
    )


def wanted_of(
    rest: FlinkRest, plan: Plan, job: RunningJob, vertices: Mapping[str, str] | None, job_file: Job | None
) -> tuple[Mapping[str, str], dict[str, int]]:
    """Vertex id by operator of the plan, and tasks by vertex id, without the vertices that are done and keep theirs.

    Args:
        vertices: as `prepare` takes them, and `job_file`.

    Raises:
        InvalidInput: the plan does not fit the job.
    """
    found = found_vertices(rest, plan, job, job_file) if vertices is None else check_vertices(vertices, job)
    done = {v.id for v in job.vertices if v.is_done}
    return found, {id_: tasks for id_, tasks in wanted_parallelism(plan, found).items() if id_ not in done}


def found_vertices(rest: FlinkRest, plan: Plan, job: RunningJob, job_file: Job | None) -> Mapping[str, str]:
    """Vertex id by operator: by the names in the job's file, by its own name, or by the dataflow of a SQL job.

    Raises:
        InvalidInput: the plan does not fit the job.
    """
    flink_names = {} if job_file is None else job_file.flink_names
    try:
        return map_operators(plan.parallelism, job.vertices, flink_names)
    except InvalidInput:
        if flink_names:
            raise
        found = sql_vertices(rest, job.id, plan.parallelism, job_file)
        if found is None:
            raise
        return found


def changes_of(
    plan: Plan, vertices: Mapping[str, str], wanted: Mapping[str, int], job: RunningJob
) -> tuple[VertexChange, ...]:
    """The tasks of each vertex, now and in the plan."""
    return tuple(
        VertexChange(
            vertex=v.id,
            name=v.name,
            operators=tuple(name for name in plan.parallelism if vertices[name] == v.id),
            before=v.parallelism,
            after=wanted[v.id],
        )
        for v in job.vertices
        if v.id in wanted
    )


def _refuse_without(
    plan: Plan, vertices: Mapping[str, str], scheduler: Scheduler, program: RestartProgram | None
) -> RestartProgram:
    """The program to restart with.

    Raises:
        InvalidInput: it is missing, or the cluster chooses the parallelism itself; the message says what to set instead.
    """
    if scheduler is Scheduler.REACTIVE:
        raise InvalidInput(
            "the cluster is in reactive mode, where a job takes all slots and its parallelism cannot be set; run it with "
            "'jobmanager.scheduler: adaptive' and without 'scheduler-mode'"
        )
    if program is None:
        raise InvalidInput(
            f"the cluster's scheduler cannot change a running job, and the jar to restart is unknown; give --program "
            f"FILE, or restart the job yourself from a savepoint with pipeline.jobvertex-parallelism-overrides: "
            f"{overrides(parallelism_of(plan, vertices))} (`sluice plans export {plan.job}@{plan.version} --format "
            f"overrides`), or run the cluster with 'jobmanager.scheduler: adaptive'"
        )
    return program


def _move(
    rest: FlinkRest,
    plan: Plan,
    vertices: Mapping[str, str],
    wanted: Mapping[str, int],
    job: RunningJob,
    room: tuple[AvailableTaskManager, ...],
    rescale: bool,
    scheduler: Scheduler,
) -> tuple[Move | None, str | None]:
    """How tasks are placed as planned, or why they cannot be."""
    file = placement_file(rest)
    if file is None or scheduler is not Scheduler.ADAPTIVE:
        return None, "the cluster has no placement hook (Sluice's kit in lib/, -Dsluice.placement, adaptive scheduler)"
    if obstacle := obstacle_to_writing(rest, file, job.id) or obstacle_to_placement(plan, vertices, job, room):
        return None, obstacle
    slots = sum(one.slots for one in room)
    detour = None if rescale else _detour(job, wanted, slots)
    if not rescale and detour is None:
        return None, "no task can be added or removed for a moment to make Flink place tasks again; restart the job"
    return Move(file, placement_text(slots, subtasks(plan, vertices)), detour), None


def _detour(job: RunningJob, wanted: Mapping[str, int], slots: int) -> dict[str, int] | None:
    """One task less of the vertex with the most, or one more where none can be spared."""
    most = max(wanted, key=lambda id_: wanted[id_])
    if wanted[most] > 1:
        return {**wanted, most: wanted[most] - 1}
    more = [v.id for v in job.vertices if v.id in wanted and wanted[v.id] < v.max_parallelism]
    return {**wanted, more[-1]: wanted[more[-1]] + 1} if more and slots_needed(job, wanted) < slots else None


def _memory_advice(plan: Plan, room: tuple[AvailableTaskManager, ...]) -> tuple[str, ...]:
    """Advice on memory, which a TaskManager's process gets at its start."""
    advice = []
    other = [one for one in room if one.memory_mb and abs(one.memory_mb / plan.memory_mb - 1) > _MEMORY_TOLERANCE]
    if other:
        advice.append(
            f"memory: the plan is for TaskManagers of {plan.memory_mb:,.0f} MiB, but {len(other)} of {len(room)} have "
            f"another size ({other[0].task_manager}: {other[0].memory_mb:,.0f}); set taskmanager.memory.process.size: "
            f"{plan.memory_mb:.0f}m and restart them"
        )
    least = min((one.managed_per_slot_mb for one in room), default=0.0)
    for operator in plan.operators:
        if operator.managed_memory_mb > least * (1 + _MEMORY_TOLERANCE):
            advice.append(
                f"memory: a task of {operator.name!r} should have {operator.managed_memory_mb:,.0f} MiB of managed memory, "
                f"but a slot has {least:,.0f}; raise taskmanager.memory.managed.fraction, or take fewer slots"
            )
    return tuple(advice)
