"""A running job compared with a plan: the vertex of each operator, the changes, and the slots they need.

Flink knows job vertices. A vertex runs one operator, or several that Flink chained; these have the same number of tasks.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flink_client.jobs.operators import chained_operators
from models.errors import Infeasible, InvalidInput
from models.plan.content import PlanContent
from models.plan.parts import Placement


@dataclass(frozen=True)
class RunningVertex:
    """A vertex of a running job."""

    id: str
    name: str
    """Flink's name, such as `Source: clicks -> parse`."""
    parallelism: int
    max_parallelism: int
    """Flink refuses more tasks than this."""
    slot_group: str
    """Tasks of the same group may share a slot."""
    task_managers: tuple[str, ...]
    """TaskManager of each task, by its number."""
    finished: frozenset[int] = frozenset()
    """Tasks that have read all of their input, which was bounded."""

    @property
    def is_done(self) -> bool:
        """Whether all of its tasks have finished."""
        return len(self.finished) == self.parallelism

    @property
    def operators(self) -> tuple[str, ...]:
        """Names of the operators chained in it, as `chained_operators` reads them."""
        return chained_operators(self.name)


@dataclass(frozen=True)
class RunningJob:
    """A job whose tasks all run, but for those that have finished."""

    id: str
    name: str
    vertices: tuple[RunningVertex, ...]
    """In topological order."""

    def vertex(self, id_: str) -> RunningVertex:
        return next(v for v in self.vertices if v.id == id_)

    @property
    def parallelism(self) -> dict[str, int]:
        """Tasks by vertex id."""
        return {v.id: v.parallelism for v in self.vertices}


@dataclass(frozen=True)
class AvailableTaskManager:
    """Slots and memory of a TaskManager that a job can use."""

    task_manager: str
    slots: int
    """Free slots, and slots that the job holds."""
    memory_mb: float | None
    """Of its process, MiB; None where Flink does not know it."""
    managed_per_slot_mb: float
    """Managed memory of one slot, MiB."""


def check_vertices(vertices: Mapping[str, str], job: RunningJob) -> Mapping[str, str]:
    """The mapping of operators itself, if the job has all of its vertices.

    Raises:
        InvalidInput: it lists the vertices of the job.
    """
    for operator, id_ in vertices.items():
        if id_ not in job.parallelism:
            running = ", ".join(f"{v.name!r} ({v.id})" for v in job.vertices)
            raise InvalidInput(f"operator {operator!r} is mapped to vertex {id_}, but the job runs {running}")
    return vertices


def wanted_parallelism(plan: PlanContent, vertices: Mapping[str, str]) -> dict[str, int]:
    """Planned tasks by vertex id, given the vertex of each operator.

    Raises:
        InvalidInput: the plan gives operators chained in one vertex different numbers of tasks.
    """
    wanted: dict[str, int] = {}
    for name, tasks in plan.parallelism.items():
        if wanted.setdefault(vertices[name], tasks) != tasks:
            chain = {n: t for n, t in plan.parallelism.items() if vertices[n] == vertices[name]}
            raise InvalidInput(
                f"operators that Flink chained must have equal parallelism, but the plan has {chain}; switch their "
                f"chaining off in the job, or plan with it"
            )
    return wanted


def slots_needed(job: RunningJob, wanted: Mapping[str, int]) -> int:
    """Slots for these tasks by vertex id; other vertices keep theirs. A slot holds one task of each vertex of its group.

    A vertex that is done holds none. Flink starts its tasks again with the job, where they finish at once: the adaptive
    scheduler starts as many as it has slots for, but at least one.
    """
    groups: dict[str, int] = {}
    for vertex in job.vertices:
        tasks = wanted.get(vertex.id, 1 if vertex.is_done else vertex.parallelism)
        groups[vertex.slot_group] = max(groups.get(vertex.slot_group, 0), tasks)
    return sum(groups.values())


def check_fits(job: RunningJob, wanted: Mapping[str, int], room: Sequence[AvailableTaskManager]) -> None:
    """Raise if Flink could not run these tasks: it would accept the request, and then do nothing.

    Raises:
        Infeasible: there are too few slots, or a vertex would have more tasks than its maximum.
    """
    check_most_tasks(job, wanted)
    needed, there = slots_needed(job, wanted), sum(one.slots for one in room)
    if needed > there:
        raise Infeasible(
            f"the plan needs {needed} slots, but the cluster has {there} for job {job.name!r}: those it holds and those "
            f"that are free; add TaskManagers, or plan with at most {there} slots"
        )


def check_most_tasks(job: RunningJob, wanted: Mapping[str, int]) -> None:
    """Raise if a vertex would have more tasks than Flink takes.

    Raises:
        Infeasible: a vertex would have more tasks than its maximum.
    """
    for vertex in job.vertices:
        if wanted.get(vertex.id, 0) > vertex.max_parallelism:
            raise Infeasible(
                f"{vertex.name!r} is to have {wanted[vertex.id]} tasks, but its maximum parallelism is "
                f"{vertex.max_parallelism}; restart the job with a higher one (pipeline.max-parallelism)"
            )


def placed_as_planned(plan: PlanContent, vertices: Mapping[str, str], job: RunningJob) -> bool:
    """Whether each worker runs the planned number of tasks of each operator."""
    return runs_as_placed(plan.placement, {name: job.vertex(vertices[name]) for name in plan.parallelism})


def runs_as_placed(placement: Placement, running: Mapping[str, RunningVertex]) -> bool:
    """Whether each TaskManager runs as many tasks of each operator as it is to; tasks of an operator are interchangeable.

    Args:
        running: vertex by operator; those that are done run nowhere.
    """
    return all(Counter(v.task_managers) == _on_workers(placement, n) for n, v in running.items() if not v.is_done)


def shared_as_planned(plan: PlanContent, job: RunningJob, tasks: Mapping[str, Sequence[int]]) -> bool:
    """Whether the slots of each TaskManager hold as many tasks as those of the plan; also where the job has vertices that
    are not in the plan, whose tasks may be in any slot.

    Args:
        tasks: in each slot that holds any, by TaskManager.
    """
    planned = {
        worker: sorted(len(bundle.vertices) for bundle in bundles for _ in range(bundle.slots))
        for worker, bundles in plan.slots.items()
    }
    running = {worker: sorted(own) for worker, own in tasks.items()}
    return len(job.vertices) != len(plan.vertices) or running == planned


def obstacle_to_placement(
    plan: PlanContent, vertices: Mapping[str, str], job: RunningJob, room: Sequence[AvailableTaskManager]
) -> str | None:
    """Why the tasks cannot be placed as planned; None if they can."""
    slots = {one.task_manager: one.slots for one in room}
    for worker, tasks in plan.placement.items():
        if worker not in slots:
            return f"the plan's worker {worker!r} is no TaskManager; there are {', '.join(slots)} (taskmanager.resource-id)"
        count = sum(tasks[n] for n in _first_of_chains(vertices) if n in tasks)
        if plan.slots:
            count = sum(bundle.slots for bundle in plan.slots[worker])
        if count > slots[worker]:
            what = "slots" if plan.slots else "tasks"
            return f"the plan puts {count} {what} on {worker!r}, which has {slots[worker]} slots for the job"
    heads = {vertices[name]: name for name in _first_of_chains(vertices)}
    for name, id_ in vertices.items():
        head = heads[id_]
        if workers_of(plan, name) != workers_of(plan, head):
            return f"{head!r} and {name!r} are chained, but the plan places them differently"
    return _obstacle_to_sharing(plan, vertices, job)


def _obstacle_to_sharing(plan: PlanContent, vertices: Mapping[str, str], job: RunningJob) -> str | None:
    """Why the job does not share slots as the plan has them; None if it does."""
    running: dict[str, set[str]] = {}
    for v in job.vertices:
        running.setdefault(v.slot_group, set()).add(v.id)
    if not plan.vertices:
        shared = next((v.name for v in job.vertices if len(running[v.slot_group]) > 1), None)
        return shared and (
            f"tasks of {shared!r} share slots with others, but the plan gives each task a slot of its own; state the job's "
            "vertices and their slot sharing groups in its file and plan again, or give each vertex a group of its own"
        )
    for planned in plan.vertices:
        apart = {name for name in planned.operators if vertices[name] != vertices[planned.operators[0]]}
        if apart:
            return (
                f"the plan chains {' -> '.join(planned.operators)}, but the job runs {min(apart)!r} in another vertex; state "
                "the job's vertices in its file as it runs them"
            )
    wanted: dict[str, set[str]] = {}
    for planned in plan.vertices:
        group = planned.slot_sharing_group or f"{planned.operators[0]} alone"
        wanted.setdefault(group, set()).add(vertices[planned.operators[0]])
    of_plan = set(vertices.values())
    names = {v.id: v.name for v in job.vertices}
    for ids in wanted.values():
        first = job.vertex(min(ids))
        found = running[first.slot_group] & of_plan
        if found != ids:
            listed = ["; ".join(sorted(names[id_] for id_ in one)) for one in (ids, found)]
            return (
                f"the plan lets these vertices share slots: {listed[0]}; but in the job they are: {listed[1]}; state the "
                "groups in the job's file as it runs them"
            )
    return None


def workers_of(plan: PlanContent, operator: str) -> dict[str, int]:
    """Tasks of an operator by worker."""
    return _on_workers(plan.placement, operator)


def _on_workers(placement: Placement, operator: str) -> dict[str, int]:
    return {worker: tasks[operator] for worker, tasks in placement.items() if operator in tasks}


def _first_of_chains(vertices: Mapping[str, str]) -> list[str]:
    """One operator of each vertex."""
    first: dict[str, str] = {}
    for name, id_ in vertices.items():
        first.setdefault(id_, name)
    return list(first.values())
