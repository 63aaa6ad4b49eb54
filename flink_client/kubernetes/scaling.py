"""The change of a `FlinkDeployment` that makes it run a plan, the change back, and whether the operator redeploys the job.

The operator scales a running job in place if nothing but the parallelism overrides change, in native mode, with the adaptive
scheduler, from Flink 1.18 on, and if no override is removed; everything else is an upgrade (its `ReflectiveDiffBuilder` and
`NativeFlinkService`). So only fields that differ are written, overrides of other vertices stay, and the change back keeps all
overrides.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from flink_client.kubernetes.resource import FlinkDeployment
from flink_client.overrides import OVERRIDES_OPTION, overrides, parsed_overrides
from models.errors import InvalidInput

SLOTS_OPTION: Final = "taskmanager.numberOfTaskSlots"
_IN_PLACE_OPTION: Final = "kubernetes.operator.job.upgrade.inplace-scaling.enabled"
_TOLERANCE: Final = 0.001
"""Relative difference up to which sizes are equal, since they are rounded to whole MiB and a tenth of a percent of a core."""
_SIZE: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")
_OF_FLINK: Final = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
"""Bytes of the units of Flink's memory sizes, all powers of two."""
_OF_KUBERNETES: Final = {"": 1.0, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12} | {
    "Ki": 2.0**10,
    "Mi": 2.0**20,
    "Gi": 2.0**30,
    "Ti": 2.0**40,
}
"""Of the units of Kubernetes' quantities."""


@dataclass(frozen=True)
class TaskManagerSize:
    """TaskManagers as a plan wants them."""

    count: int
    slots: int
    memory_mb: float
    """Of a TaskManager's process, MiB."""
    cores: float | None
    """Of a TaskManager; None: as they are."""


@dataclass(frozen=True)
class SpecChange:
    """A merge patch of the spec."""

    spec: Mapping[str, Any]
    """Empty where nothing differs."""
    undo: Mapping[str, Any]
    """The merge patch back."""
    fields: tuple[str, ...]
    """What is written, `path: before -> after`."""
    redeploys: str | None
    """Why the operator redeploys the job; None if it scales it in place."""


def spec_change(
    resource: FlinkDeployment,
    wanted: Mapping[str, int],
    *,
    running: Mapping[str, int],
    size: TaskManagerSize | None,
    adaptive: bool | None,
) -> SpecChange:
    """What to write so that the operator runs these tasks.

    Args:
        wanted: tasks by vertex id; overrides of other vertices stay.
        running: tasks by vertex id as Flink runs them now, as far as they are known.
        size: of TaskManagers; None: they stay as they are.
        adaptive: whether the job runs with the adaptive scheduler; None: as far as the resource says.

    Raises:
        InvalidInput: the resource has a form that cannot be changed safely.
    """
    check_changeable(resource)
    spec, undo, fields = _Patch(), _Patch(), []
    for path, before, after, back in (*_tasks(resource, wanted, running), *_sizes(resource, size)):
        spec.put(path, after)
        undo.put(path, back)
        fields.append(f"{_shown(path)}: {'unset' if before is None else before} -> {after}")
    sized = tuple(field for field in fields if not field.startswith(f"flinkConfiguration.{OVERRIDES_OPTION}"))
    return SpecChange(
        spec.document, undo.document, tuple(fields), redeploys_for(resource, adaptive, sized) if fields else None
    )


Field = tuple[tuple[str, ...], object, object, object]
"""Path in the spec, value now, value wanted, and value that restores the present state."""


def _tasks(resource: FlinkDeployment, wanted: Mapping[str, int], running: Mapping[str, int]) -> Iterator[Field]:
    now = resource.overrides
    after = now | dict(wanted)
    if after == now:
        return
    before = {vertex: now.get(vertex, running.get(vertex)) for vertex in after}
    known = {vertex: tasks for vertex, tasks in before.items() if tasks is not None}
    text = overrides(now) if now else None
    # Removing an override would redeploy the job, so the change back states the tasks of all vertices that are known.
    back = overrides(known) if len(known) == len(after) else text
    yield ("flinkConfiguration", OVERRIDES_OPTION), text, overrides(after), back


def _sizes(resource: FlinkDeployment, size: TaskManagerSize | None) -> Iterator[Field]:
    if size is None:
        return
    slots = resource.configuration.get(SLOTS_OPTION)
    if (slots or "1") != str(size.slots):
        yield ("flinkConfiguration", SLOTS_OPTION), slots, str(size.slots), slots
    task_manager = resource.spec.get("taskManager") or {}
    if not resource.is_native and (replicas := task_manager.get("replicas")) != size.count:
        yield ("taskManager", "replicas"), replicas, size.count, replicas
    mebibytes = math.ceil(size.memory_mb)
    if "resources" in task_manager:
        for kind in ("requests", "limits"):
            now = (task_manager["resources"] or {}).get(kind) or {}
            yield from _sized(
                ("taskManager", "resources", kind),
                now,
                mebibytes,
                f"{mebibytes}Mi",
                size.cores,
                f"{size.cores:g}" if size.cores else None,
                _OF_KUBERNETES,
            )
    else:
        now = task_manager.get("resource") or {}
        yield from _sized(
            ("taskManager", "resource"), now, mebibytes, f"{mebibytes}m", size.cores, size.cores, _OF_FLINK
        )


def _sized(
    path: tuple[str, ...],
    now: Mapping[str, Any],
    mebibytes: int,
    memory: str,
    cores: float | None,
    cpu: object,
    units: Mapping[str, float],
) -> Iterator[Field]:
    if not _equal(_bytes(now.get("memory"), units), mebibytes * 2.0**20):
        yield (*path, "memory"), now.get("memory"), memory, now.get("memory")
    if cores is not None and not _equal(_bytes(now.get("cpu"), _OF_KUBERNETES), cores):
        yield (*path, "cpu"), now.get("cpu"), cpu, now.get("cpu")


def _bytes(size: object, units: Mapping[str, float]) -> float | None:
    """A size as a number; None where it is not stated, or in a unit that is not known here."""
    found = None if size is None else _SIZE.fullmatch(str(size))
    if found is None:
        return None
    unit = found[2]
    if units is _OF_FLINK:
        unit = unit.lower().removesuffix("ytes").removesuffix("b").removesuffix("i")
    return float(found[1]) * units[unit] if unit in units else None


def _equal(one: float | None, other: float) -> bool:
    return one is not None and math.isclose(one, other, rel_tol=_TOLERANCE)


def check_changeable(resource: FlinkDeployment) -> None:
    """Raise InvalidInput if the resource has a form that cannot be changed safely."""
    configuration = resource.configuration
    job = resource.spec.get("job")
    if not isinstance(job, Mapping):
        raise InvalidInput(
            f"{resource.reference} is a session cluster without a job of its own; what is changed is an application's "
            "FlinkDeployment (one with spec.job)"
        )
    if job.get("state", "running") != "running":
        raise InvalidInput(f"{resource.reference} is {job['state']}; set spec.job.state to running, then try again")
    if configuration.get("job.autoscaler.enabled") == "true":
        raise InvalidInput(
            f"the operator's autoscaler scales {resource.reference} itself and would undo the change; set "
            "job.autoscaler.enabled: false in its flinkConfiguration"
        )
    parsed_overrides(configuration.get(OVERRIDES_OPTION, ""), resource.reference)
    written = resource.spec.get("flinkConfiguration") or {}
    for option in (OVERRIDES_OPTION, SLOTS_OPTION):
        if option in configuration and option not in written:
            raise InvalidInput(
                f"{resource.reference} states {option} as nested maps, beside which a whole key would be ambiguous; write "
                f"it as one key, '{option}'"
            )


def redeploys_for(resource: FlinkDeployment, adaptive: bool | None, sized: tuple[str, ...] = ()) -> str | None:
    """Why the operator redeploys the job if its overrides change; None if it scales it in place.

    Args:
        adaptive: whether the job runs with the adaptive scheduler; None: as far as the resource says.
        sized: the fields that change beside the overrides.
    """
    configuration = resource.configuration
    if sized:
        return f"a change of {', '.join(field.partition(':')[0] for field in sized)} is an upgrade"
    if not resource.is_native:
        return "the resource is in standalone mode, where a change of overrides is an upgrade"
    if _flink_version(resource) < (1, 18):
        return f"Flink {resource.spec.get('flinkVersion')} cannot be scaled in place; that takes v1_18 or later"
    if configuration.get(_IN_PLACE_OPTION, "true").lower() != "true":
        return f"the resource sets {_IN_PLACE_OPTION}: false"
    if adaptive is None:
        adaptive = configuration.get("jobmanager.scheduler", "").lower() == "adaptive"
    return None if adaptive else "scaling in place takes jobmanager.scheduler: adaptive in its flinkConfiguration"


def _flink_version(resource: FlinkDeployment) -> tuple[int, ...]:
    numbers = re.findall(r"\d+", str(resource.spec.get("flinkVersion", "")))
    return tuple(int(number) for number in numbers)


def _shown(path: tuple[str, ...]) -> str:
    return ".".join(path)


class _Patch:
    """A merge patch that grows by its leaves."""

    def __init__(self) -> None:
        self.document: dict[str, Any] = {}

    def put(self, path: tuple[str, ...], value: object) -> None:
        place = self.document
        for part in path[:-1]:
            place = place.setdefault(part, {})
        place[path[-1]] = value
