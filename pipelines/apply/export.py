"""A plan in Flink's formats: configuration, REST body, Kubernetes operator, and lines for a placement hook.

Flink addresses job vertices by id, a plan by operator name. A `Vertices` mapping translates; without one operator names
stand in the place of ids. Operators that Flink chained share a vertex, and so must share parallelism and placement.
"""

import json
import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

import yaml

from flink_client.jobs.deployment import workers_of
from flink_client.kubernetes.patches import overrides_patch, resources_patch
from flink_client.kubernetes.scaling import TaskManagerSize
from flink_client.overrides import OVERRIDES_OPTION, overrides
from flink_client.rest.jobs import resource_requirements
from models.errors import InvalidInput
from models.plan.content import Plan
from models.plan.slots import PlacedTask, subtasks_in
from models.wording import natural_order
from pipelines.inputs.parsing.files import read_document
from testbeds.flink.placement_hook import placement_lines

Vertices = Mapping[str, str]
"""Operator name -> Flink job vertex id (32 hexadecimal digits)."""

ANNOTATION = "sluice/plan"
"""Annotation of a resource that names the plan."""
_VERTEX_ID = re.compile(r"[0-9a-f]{32}")


class ExportFormat(StrEnum):
    """The export formats."""

    OVERRIDES = "overrides"
    REQUIREMENTS = "requirements"
    FLINKDEPLOYMENT = "flinkdeployment"
    """Only overrides, with which the operator scales a job in place."""
    FLINKDEPLOYMENT_RESOURCES = "flinkdeployment-resources"
    """TaskManagers; a change of them redeploys the job."""
    PLACEMENT = "placement"


def export(plan: Plan, form: ExportFormat, vertices: Vertices | None = None) -> str:
    """The text of a plan in one of the formats, with one line feed at the end.

    Args:
        vertices: as returned by `read_vertices`; None: operator names in place of ids.

    Raises:
        InvalidInput: the vertices do not fit the plan.
    """
    named = _named(plan) if vertices is None else vertices
    if form is ExportFormat.OVERRIDES:
        return f"{OVERRIDES_OPTION}: {overrides(parallelism_of(plan, named))}\n"
    if form is ExportFormat.REQUIREMENTS:
        return json.dumps(resource_requirements(parallelism_of(plan, named)), indent=2) + "\n"
    if form is ExportFormat.FLINKDEPLOYMENT:
        return _yaml(_overrides_document(plan, named))
    if form is ExportFormat.FLINKDEPLOYMENT_RESOURCES:
        return _yaml(_resources_document(plan))
    return placement_lines(subtasks(plan, named))


def _named(plan: Plan) -> dict[str, str]:
    """Names in place of ids: of a vertex, its first operator."""
    heads = {name: v.operators[0] for v in plan.vertices for name in v.operators}
    return {name: heads.get(name, name) for name in plan.parallelism}


def _yaml(document: dict[str, Any]) -> str:
    return yaml.safe_dump(document, sort_keys=False, width=10**6)


def remarks(plan: Plan, form: ExportFormat, vertices: Vertices | None = None) -> list[str]:
    """Notes on an export for its reader."""
    said = []
    if vertices is None and form is not ExportFormat.FLINKDEPLOYMENT_RESOURCES:
        said.append(
            "operator names stand in place of Flink's job vertex ids; replace them, or give --vertices FILE with "
            "{operator: vertexId} (GET /jobs/:jobid lists the ids)"
        )
    if form is not ExportFormat.PLACEMENT:
        said.append("the placement is not in this format; export it with --format placement")
    if form is ExportFormat.PLACEMENT and any(task.slot is not None for task in subtasks(plan, _named(plan))):
        said.append(
            "the plan's slots are not those of Flink's default, where slot i holds subtask i of each vertex of its group; so "
            "each line ends with the number of the task's slot on its TaskManager"
        )
    if form is ExportFormat.FLINKDEPLOYMENT:
        said.append("TaskManagers are not included; if they change, apply --format flinkdeployment-resources first")
    if form is ExportFormat.FLINKDEPLOYMENT_RESOURCES and plan.cores_per_worker is None:
        said.append(
            "the plan's cluster states no cores, or its workers differ in them: the deployment's CPU stays unchanged"
        )
    if form is ExportFormat.FLINKDEPLOYMENT_RESOURCES and plan.slots_per_worker is None:
        said.append(
            f"the plan's workers differ in slots; each TaskManager gets {_slots(plan)}, the most that one needs"
        )
    return said


def read_vertices(path: Path, plan: Plan) -> dict[str, str]:
    """The vertex id of each operator of the plan, from a YAML or JSON file `{operator: vertexId}`.

    Raises:
        InvalidInput: an operator is missing or unknown, an id is not 32 hexadecimal digits, or operators that share a
            vertex differ in parallelism or placement.
    """
    given = read_document(path)
    if not isinstance(given, dict):
        raise InvalidInput(f"{path} must map operators to vertex ids, but holds {type(given).__name__}")
    operators = list(plan.parallelism)
    for name in operators:
        if name not in given:
            raise InvalidInput(f"{path}: the operator {name!r} of the plan is missing; add its vertex id")
    for name, vertex in given.items():
        if name not in operators:
            raise InvalidInput(f"{path}: {name!r} is no operator of the plan; it has {', '.join(operators)}")
        if not isinstance(vertex, str) or not _VERTEX_ID.fullmatch(vertex):
            raise InvalidInput(f"{path}: a vertex id has 32 hexadecimal digits, but {name!r} has {vertex!r:.60}")
    _check_chains(plan, given, path)
    return {name: given[name] for name in operators}


def _check_chains(plan: Plan, vertices: Vertices, path: Path) -> None:
    for name, other in _chained(plan, vertices):
        for what, one, two in (
            ("parallelism", plan.parallelism[name], plan.parallelism[other]),
            ("placement", workers_of(plan, name), workers_of(plan, other)),
        ):
            if one != two:
                raise InvalidInput(
                    f"{path}: {name!r} and {other!r} share a vertex, so their {what} must be equal, but got {one} and "
                    f"{two}; give them vertices of their own (disable chaining between them)"
                )


def _chained(plan: Plan, vertices: Vertices) -> list[tuple[str, str]]:
    """Operators with the first operator of the same vertex."""
    first: dict[str, str] = {}
    pairs = [(first.setdefault(vertices[name], name), name) for name in plan.parallelism]
    return [(head, name) for head, name in pairs if head != name]


def parallelism_of(plan: Plan, vertices: Vertices) -> dict[str, int]:
    """Tasks by vertex id."""
    return {vertices[name]: tasks for name, tasks in plan.parallelism.items()}


def _overrides_document(plan: Plan, vertices: Vertices) -> dict[str, Any]:
    return overrides_patch(plan.job, parallelism_of(plan, vertices), annotations(plan))


def _resources_document(plan: Plan) -> dict[str, Any]:
    return resources_patch(
        plan.job,
        task_managers=len(_workers(plan)),
        slots=_slots(plan),
        memory_mb=plan.memory_mb,
        cores=plan.cores_per_worker,
        parallelism=max(plan.parallelism.values()),
        annotations=annotations(plan),
    )


def task_manager_size(plan: Plan) -> TaskManagerSize:
    """The TaskManagers of a plan."""
    return TaskManagerSize(len(_workers(plan)), _slots(plan), plan.memory_mb, plan.cores_per_worker)


def annotations(plan: Plan) -> dict[str, str]:
    return {ANNOTATION: f"{plan.job}@{plan.version}"}


def subtasks(plan: Plan, vertices: Vertices) -> list[PlacedTask]:
    """Every task of each vertex id, by operator.

    Tasks of an operator are interchangeable, so its subtasks are numbered over the workers in the natural order of
    their names (tm-2 before tm-10). Where slots are shared, tasks in the slots with the most tasks have the lowest numbers.
    """
    if plan.slots:
        by_name = {worker: plan.slots[worker] for worker in sorted(plan.slots, key=natural_order)}
        placed = subtasks_in(by_name, {v.operators[0]: v.slot_sharing_group for v in plan.vertices})
        return [task._replace(vertex=vertices[task.vertex]) for task in placed]
    chained = {name for _, name in _chained(plan, vertices)}
    return [
        PlacedTask(vertices[name], subtask, worker)
        for name in plan.parallelism
        if name not in chained
        for subtask, worker in enumerate(_worker_of_each_task(plan, name))
    ]


def _worker_of_each_task(plan: Plan, operator: str) -> list[str]:
    return [worker for worker in _workers(plan) for _ in range(plan.placement[worker].get(operator, 0))]


def _workers(plan: Plan) -> list[str]:
    """Workers that run tasks, in the natural order of their names."""
    return sorted((worker for worker, tasks in plan.placement.items() if tasks), key=natural_order)


def _slots(plan: Plan) -> int:
    """Slots of each TaskManager: those of the plan's workers or, if they differ, those of the fullest."""
    taken = (
        [sum(b.slots for b in bundles) for bundles in plan.slots.values()]
        if plan.slots
        else [sum(tasks.values()) for tasks in plan.placement.values()]
    )
    return plan.slots_per_worker or max(taken)
