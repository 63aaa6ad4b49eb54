"""One version of a plan, and what must hold of it."""

from collections import Counter
from typing import Literal

from pydantic import Field, model_validator

from models.capacity.diagnosis.bound_by import BoundBy
from models.objectives.outcome import PlanObjectives
from models.plan.changes import Difference
from models.plan.parts import CostVector, Interval, Lineage, OperatorPlan, Placement, SlotsNeeded, VertexPlan
from models.plan.slots import SlotBundle, slots_in, tasks_in
from models.resources.planned import PlanResources
from models.schema import SCHEMA_VERSION, Format, Name, NonNegative, Positive, PositiveInt, Ratio
from models.vertices import slots_by_group


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
