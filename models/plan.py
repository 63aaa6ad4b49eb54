"""The plan: what to deploy, why, and what it was made from."""

from collections import Counter
from collections.abc import Mapping
from typing import Literal

from pydantic import Field, model_validator

from models.capacity.diagnosis.bound_by import BoundBy
from models.objectives.outcome import PlanObjectives
from models.resources import PlanResources
from models.schema import SCHEMA_VERSION, Format, Name, NonNegative, Positive, PositiveInt, Ratio
from models.slots import SlotBundle, slots_in, tasks_in
from models.vertices import JobVertex, slots_by_group

Placement = dict[str, dict[str, PositiveInt]]
"""Worker -> operator -> number of its tasks there; workers without tasks are left out."""


class Interval(Format):
    """A prediction, and the range in which the true value lies with the stated probability."""

    value: NonNegative = Field(description="The prediction itself.")
    low: NonNegative = Field(description="Lower end of the range.")
    high: NonNegative = Field(description="Upper end of the range.")
    probability: Ratio = Field(0.95, description="Probability that the true value lies in the range.")

    @model_validator(mode="after")
    def _check(self) -> "Interval":
        if not self.low <= self.value <= self.high:
            raise ValueError(f"low <= value <= high must hold, but got ({self.low}, {self.value}, {self.high})")
        return self


class SlotsNeeded(Format):
    """The range that the task slots needed for the target rate lie in with the stated probability."""

    low: PositiveInt = Field(description="Fewest that may do.")
    high: PositiveInt | None = Field(description="Fewest that do almost surely; null where no number does.")
    probability: Ratio = Field(0.95, description="Of what is needed lying in the range.")


class CostVector(Format):
    """C = [C_cpu, C_io, C_net] of a placement (CAPSys Eq. 4), or thresholds alpha on it (Eq. 9)."""

    cpu: NonNegative = Field(description="CPU; 0 is the best balance that any placement has, 1 the worst.")
    io: NonNegative = Field(description="State access, on the same scale.")
    net: NonNegative = Field(description="Network, on the same scale.")


class OperatorPlan(Format):
    """The deployment of one operator."""

    name: Name = Field(description="Operator of the job's dataflow.")
    parallelism: PositiveInt = Field(description="Number of its tasks.")
    managed_memory_mb: NonNegative = Field(description="Managed memory of one task, MiB; 0 where it keeps no state.")
    records_in_per_s: NonNegative = Field(description="Expected input of all its tasks at the target rate.")
    predicted_busyness: Ratio = Field(description="Expected mean busyness of its tasks at the target rate.")
    reason: str = Field(min_length=1, description="Why this many tasks, in words.")


class VertexPlan(JobVertex):
    """The deployment of one vertex."""

    parallelism: PositiveInt = Field(description="Number of its tasks, that of each of its operators.")
    managed_memory_mb: NonNegative = Field(
        description="Managed memory of one task, that of its operators together, MiB."
    )
    predicted_busyness: Ratio = Field(
        description="Expected mean busyness of its tasks at the target rate, that of its operators together."
    )


class Lineage(Format):
    """What the plan was made from; digests are SHA-256 of the canonical JSON, in hex."""

    run: str = Field(description="Pipeline run that made the plan.")
    trigger: str = Field(description="'plan', 'replan' or 'rollback'.")
    testbed: str = Field(description="Where the measurements come from: 'simulator' or 'recorded'.")
    model: str = Field(description="Capacity model: 'stacked' over all growth laws, or the law that was asked for.")
    model_uri: str | None = Field(None, description="Registered model and version, for example 'models:/nexmark-q5/3'.")
    policy: str = Field(description="What decided the parallelism: 'bids2', or a scaling policy.")
    policy_choice: str | None = Field(
        None, description="Workspace key of the evaluation's choice of that policy; null without one."
    )
    code_version: str = Field(description="Version of Sluice that made the plan.")
    seed: int = Field(description="Seed of all random choices in the run.")
    digests: dict[str, str] = Field(
        default_factory=dict, description="Of job, cluster, profile, observations, features, ..."
    )


class ParallelismChange(Format):
    """An operator that gets more or fewer tasks."""

    operator: Name = Field(description="Whose tasks.")
    before: int = Field(ge=0, description="0 where the operator is new.")
    after: int = Field(ge=0, description="0 where the operator is gone.")


class MemoryChange(Format):
    """An operator whose tasks get more or less managed memory."""

    operator: Name = Field(description="Whose memory.")
    before_mb: NonNegative = Field(description="Managed memory of one task before, MiB; 0 where the operator is new.")
    after_mb: NonNegative = Field(description="The same after, MiB; 0 where the operator is gone.")


class Difference(Format):
    """The difference between two plans: what changes, and how many tasks start or stop."""

    from_version: PositiveInt = Field(description="Version that the difference starts from.")
    parallelism: tuple[ParallelismChange, ...] = Field((), description="Operators whose number of tasks changes.")
    managed_memory: tuple[MemoryChange, ...] = Field((), description="Operators whose managed memory changes.")
    task_slots_before: int = Field(ge=0, description="`task_slots` of that version.")
    task_slots_after: int = Field(ge=0, description="`task_slots` of this version.")
    tasks_moved: int = Field(ge=0, description="Tasks that start on a worker that did not run them.")
    tasks_stopped: int = Field(ge=0, description="Tasks that end on a worker which ran them.")


class PlanContent(Format):
    """The content of a plan, without its version."""

    schema_version: Literal[1] = Field(SCHEMA_VERSION, description="Version of this format.")
    job: Name = Field(description="Job that the plan is for.")
    target_rate: Positive = Field(description="Records/s at the sources together.")
    source_rates: dict[str, NonNegative] = Field(description="Target rate of each source.")
    headroom: float = Field(
        ge=1.0,
        description="Factor on the target rate that sources and scaling policies were planned for, and the task slots where no "
        "risk is given.",
    )
    # Left out where they are absent, so that digests of earlier plans are what they were.
    risk: Ratio | None = Field(
        None,
        exclude_if=lambda risk: risk is None,
        description="Probability, by the capacity model, that the task slots do not sustain the target rate; absent where a "
        "headroom was planned for.",
    )
    slots_needed: SlotsNeeded | None = Field(
        None,
        exclude_if=lambda needed: needed is None,
        description="Task slots that the target rate needs, as a range; absent in plans of earlier versions.",
    )
    task_slots: PositiveInt = Field(
        description="Tasks of all operators but the sources; with `vertices` what the capacity model counts, the tasks that "
        "these operators need alone, with a slot each."
    )
    total_slots: PositiveInt = Field(
        description="Slots that the plan takes: one for each task, sources included; with `vertices` those of the widest "
        "vertex of each slot sharing group."
    )
    memory_mb: Positive = Field(description="Memory of one TaskManager, MiB.")
    slots_per_worker: PositiveInt | None = Field(None, description="Slots of every worker; null where workers differ.")
    # Omitted if absent, so that digests of older plans stay the same.
    cores_per_worker: Positive | None = Field(
        None,
        exclude_if=lambda cores: cores is None,
        description="CPU cores of every worker; absent where workers differ, or the cluster states none.",
    )
    resources: PlanResources | None = Field(
        None,
        exclude_if=lambda resources: resources is None,
        description="Cores, memory and price of the TaskManagers, of each and in all; absent in plans of earlier versions.",
    )
    operators: tuple[OperatorPlan, ...] = Field(min_length=1, description="The deployment of each operator.")
    vertices: tuple[VertexPlan, ...] = Field(
        (),
        exclude_if=lambda vertices: not vertices,
        description="The deployment of each vertex, where the job's file states vertices; else each operator is one, and "
        "each task has a slot of its own.",
    )
    slots: dict[str, tuple[SlotBundle, ...]] = Field(
        {},
        exclude_if=lambda slots: not slots,
        description="With `vertices`: worker -> its slots, with the vertices that have a task in each.",
    )
    placement: Placement = Field(
        description="Worker -> operator -> number of its tasks there; workers without tasks are left out."
    )
    cost: CostVector = Field(description="What the placement costs (CAPSys Eq. 4).")
    thresholds: CostVector = Field(description="Bounds on that cost (CAPSys Eq. 9).")
    placement_policy: str = Field(description="Placement policy: 'caps', 'default' or 'evenly'.")
    placement_status: str = Field(description="Status of the search: optimal, feasible, or unknown.")
    predicted_mst: Interval = Field(description="Expected maximal sustainable throughput, records/s.")
    bound_by: BoundBy | None = Field(
        None,
        exclude_if=lambda bound: bound is None,
        description="What bounds the job at the planned size, and what would lift it; absent in plans of earlier versions.",
    )
    objectives: PlanObjectives | None = Field(
        None,
        exclude_if=lambda objectives: objectives is None,
        description="How the plan meets the objectives of its request, and which one binds; absent without any.",
    )
    reasons: tuple[str, ...] = Field(description="How the numbers came about, in the order of the stages.")
    lineage: Lineage = Field(description="What the plan was made from.")

    @model_validator(mode="after")
    def _check_placement(self) -> "PlanContent":
        wanted = {o.name: o.parallelism for o in self.operators}
        if len(wanted) != len(self.operators):
            twice, count = Counter(o.name for o in self.operators).most_common(1)[0]
            raise ValueError(f"operator names must be unique, but {twice!r} appears {count} times")
        placed: Counter[str] = Counter()
        for tasks in self.placement.values():
            placed.update(tasks)
        if placed != wanted:
            raise ValueError(f"the placement must hold every task once: wanted {wanted}, placed {dict(placed)}")
        return self

    @model_validator(mode="after")
    def _check_slots(self) -> "PlanContent":
        wanted = self.parallelism
        unknown = sorted(set(self.source_rates) - set(wanted))
        if unknown:
            raise ValueError(f"source_rates must name operators of the plan, but {unknown[0]!r} is none of them")
        if self.vertices:
            return self
        if self.total_slots != sum(wanted.values()):
            raise ValueError(
                f"total_slots must be the number of tasks, {sum(wanted.values())}, but got {self.total_slots}"
            )
        sources = sum(wanted[name] for name in self.source_rates)
        if self.task_slots != self.total_slots - sources:
            raise ValueError(
                f"task_slots must leave out the tasks of the sources: {self.total_slots} - {sources} = "
                f"{self.total_slots - sources}, but got {self.task_slots}"
            )
        fullest = max(sum(tasks.values()) for tasks in self.placement.values())
        if self.slots_per_worker is not None and fullest > self.slots_per_worker:
            raise ValueError(
                f"a worker has {self.slots_per_worker} slots, but the placement puts {fullest} tasks on one"
            )
        return self

    @model_validator(mode="after")
    def _check_vertices(self) -> "PlanContent":
        if bool(self.vertices) != bool(self.slots):
            raise ValueError("'vertices' and 'slots' must be given together, since slots are shared by vertices")
        if not self.vertices:
            return self
        of_vertices = [(name, v.parallelism) for v in self.vertices for name in v.operators]
        if sorted(of_vertices) != sorted(self.parallelism.items()):
            raise ValueError(
                f"the vertices must have each operator once, with its parallelism, {self.parallelism}, but got {of_vertices}"
            )
        needed = sum(slots_by_group(self.vertices, self.parallelism).values())
        if not self.total_slots == needed == slots_in(self.slots):
            raise ValueError(
                f"total_slots must be the slots of the widest vertex of each group, {needed}, and the number of slots of all "
                f"workers, {slots_in(self.slots)}, but got {self.total_slots}"
            )
        heads = {v.operators[0]: v for v in self.vertices}
        for worker in {*self.slots, *self.placement}:
            bundles, placed = self.slots.get(worker, ()), self.placement.get(worker, {})
            in_slots = {name: n for v, n in tasks_in(bundles).items() if v in heads for name in heads[v].operators}
            if in_slots != placed or any(v not in heads for b in bundles for v in b.vertices):
                raise ValueError(f"the slots of {worker!r} must hold its tasks, {placed}, but hold {in_slots}")
            if any(len({heads[v].slot_sharing_group for v in b.vertices}) > 1 for b in bundles):
                raise ValueError(f"a slot holds tasks of one slot sharing group, but one of {worker!r} holds more")
            if self.slots_per_worker is not None and sum(b.slots for b in bundles) > self.slots_per_worker:
                raise ValueError(
                    f"a worker has {self.slots_per_worker} slots, but the plan takes {sum(b.slots for b in bundles)} of one"
                )
        return self

    @model_validator(mode="after")
    def _check_resources(self) -> "PlanContent":
        if self.resources is None:
            return self
        of_plan = (
            sum(map(bool, self.placement.values())),
            self.memory_mb,
            self.slots_per_worker,
            self.cores_per_worker,
        )
        found = self.resources
        stated = (found.task_managers, found.memory_mb, found.slots, found.cores)
        if stated != of_plan:
            raise ValueError(
                "resources must state the plan's TaskManagers, and memory, slots and cores of each: "
                f"{of_plan}, but got {stated}"
            )
        return self

    @property
    def parallelism(self) -> dict[str, int]:
        return {o.name: o.parallelism for o in self.operators}


class Plan(PlanContent):
    """One version of the plan of a job."""

    version: PositiveInt = Field(description="1 for the first plan of a job, then one more each time.")
    created_at: str = Field(description="When the plan was made: ISO 8601, UTC.")
    difference: Difference | None = Field(None, description="From the previous version; null for the first.")


class PlacementChange(Format):
    """Tasks of one operator on one worker before and after; the difference starts or stops there."""

    worker: Name
    operator: Name
    before: int = Field(ge=0)
    after: int = Field(ge=0)


def same_deployment(one: PlanContent, other: PlanContent) -> bool:
    """Whether a cluster that runs `one` already runs `other`.

    True if parallelism, memory of the tasks and of the TaskManagers, and placement agree. Predictions, target rate,
    reasons and lineage may differ, since they are not deployed.
    """
    return _deployed(one) == _deployed(other)


def _deployed(plan: PlanContent) -> tuple[object, ...]:
    operators = {o.name: (o.parallelism, o.managed_memory_mb) for o in plan.operators}
    slots = {w: sorted((b.vertices, b.slots) for b in bundles) for w, bundles in plan.slots.items()}
    of_workers = plan.memory_mb, plan.slots_per_worker, plan.cores_per_worker
    return plan.job, operators, *of_workers, plan.placement, slots


def placement_changes(before: PlanContent, after: PlanContent) -> tuple[PlacementChange, ...]:
    """Where tasks start or stop, by operator in the order of the plans, then by worker."""
    names = list(dict.fromkeys([*before.parallelism, *after.parallelism]))
    workers = list(dict.fromkeys([*before.placement, *after.placement]))
    counts = [
        (w, n, before.placement.get(w, {}).get(n, 0), after.placement.get(w, {}).get(n, 0))
        for n in names
        for w in workers
    ]
    return tuple(PlacementChange(worker=w, operator=n, before=b, after=a) for w, n, b, a in counts if b != a)


def difference(before: Plan, after: PlanContent) -> Difference:
    """The difference from `before` to `after`. Tasks of one operator are interchangeable, so only counts matter."""
    old, new = before.parallelism, after.parallelism
    old_memory = {o.name: o.managed_memory_mb for o in before.operators}
    new_memory = {o.name: o.managed_memory_mb for o in after.operators}
    names = list(dict.fromkeys([*old, *new]))
    return Difference(
        from_version=before.version,
        parallelism=tuple(
            ParallelismChange(operator=n, before=old.get(n, 0), after=new.get(n, 0))
            for n in names
            if old.get(n, 0) != new.get(n, 0)
        ),
        managed_memory=tuple(
            MemoryChange(operator=n, before_mb=old_memory.get(n, 0.0), after_mb=new_memory.get(n, 0.0))
            for n in names
            if old_memory.get(n, 0.0) != new_memory.get(n, 0.0)
        ),
        task_slots_before=before.task_slots,
        task_slots_after=after.task_slots,
        tasks_moved=_surplus(after.placement, before.placement),
        tasks_stopped=_surplus(before.placement, after.placement),
    )


def _surplus(placement: Mapping[str, Mapping[str, int]], other: Mapping[str, Mapping[str, int]]) -> int:
    """Tasks in `placement` beyond those that `other` has of the same operator on the same worker."""
    return sum(
        max(0, count - other.get(worker, {}).get(operator, 0))
        for worker, tasks in placement.items()
        for operator, count in tasks.items()
    )
