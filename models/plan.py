"""The plan: what to deploy, why, and what it was made from."""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field, model_validator

from models.schema import SCHEMA_VERSION, Format, Name, NonNegative, Positive, PositiveInt, Ratio

Placement = dict[str, dict[str, PositiveInt]]
"""Worker -> operator -> number of its tasks there; workers without tasks are left out."""


class Interval(Format):
    """A prediction with the range it will lie in with the stated probability."""

    value: NonNegative
    low: NonNegative
    high: NonNegative
    probability: Ratio = 0.95

    @model_validator(mode="after")
    def _check(self) -> "Interval":
        if not self.low <= self.value <= self.high:
            raise ValueError(f"low <= value <= high must hold, but got ({self.low}, {self.value}, {self.high})")
        return self


class CostVector(Format):
    """C = [C_cpu, C_io, C_net] of a placement (CAPSys Eq. 4), or thresholds alpha on it (Eq. 9)."""

    cpu: NonNegative
    io: NonNegative
    net: NonNegative


class OperatorPlan(Format):
    """What one operator gets."""

    name: Name
    parallelism: PositiveInt
    managed_memory_mb: NonNegative = Field(description="Managed memory of one task, MiB; 0 where it keeps no state.")
    records_in_per_s: NonNegative = Field(description="Expected input of all its tasks at the target rate.")
    predicted_busyness: Ratio = Field(description="Expected mean busyness of its tasks at the target rate.")
    reason: str = Field(min_length=1, description="Why this many tasks, in words.")


class Lineage(Format):
    """What the plan was made from; digests are SHA-256 of the canonical JSON, in hex."""

    run: str = Field(description="Pipeline run that made the plan.")
    trigger: str = Field(description="'plan', 'replan' or 'rollback'.")
    testbed: str
    model: str = Field(description="Surrogate, for example 'log'.")
    model_uri: str | None = Field(None, description="Registered model and version, for example 'models:/nexmark-q5/3'.")
    policy: str = Field(description="What decided the parallelism: 'bids2' or 'ds2'.")
    code_version: str
    seed: int
    digests: dict[str, str] = Field(
        default_factory=dict, description="Of job, cluster, profile, observations, features, ..."
    )


class ParallelismChange(Format):
    operator: Name
    before: int = Field(ge=0, description="0 where the operator is new.")
    after: int = Field(ge=0, description="0 where the operator is gone.")


class MemoryChange(Format):
    operator: Name
    before_mb: NonNegative
    after_mb: NonNegative


class Difference(Format):
    """From one plan to another: what to change, and how many tasks must start on a worker where they were not."""

    from_version: PositiveInt
    parallelism: tuple[ParallelismChange, ...] = ()
    managed_memory: tuple[MemoryChange, ...] = ()
    task_slots_before: int = Field(ge=0)
    task_slots_after: int = Field(ge=0)
    tasks_moved: int = Field(ge=0, description="Tasks that start on a worker which did not run them.")
    tasks_stopped: int = Field(ge=0, description="Tasks that end on a worker which ran them.")


class PlanContent(Format):
    """All that a plan says but its place in the history of plans."""

    schema_version: Literal[1] = SCHEMA_VERSION
    job: Name
    target_rate: Positive = Field(description="Records/s at the sources together.")
    source_rates: dict[str, NonNegative] = Field(description="Target rate of each source.")
    headroom: float = Field(ge=1.0, description="Factor on the target rate that was planned for.")
    task_slots: PositiveInt = Field(description="Tasks of all operators but the sources.")
    total_slots: PositiveInt = Field(description="Tasks of all operators, sources included.")
    memory_mb: Positive = Field(description="Memory of one TaskManager, MiB.")
    operators: tuple[OperatorPlan, ...] = Field(min_length=1)
    placement: Placement
    cost: CostVector
    thresholds: CostVector
    placement_policy: str
    placement_status: str = Field(description="optimal, feasible, or why not.")
    predicted_mst: Interval
    reasons: tuple[str, ...] = Field(description="How the numbers came about, in words, in the order of the stages.")
    lineage: Lineage

    @model_validator(mode="after")
    def _check(self) -> "PlanContent":
        placed: dict[str, int] = {}
        for tasks in self.placement.values():
            for operator, count in tasks.items():
                placed[operator] = placed.get(operator, 0) + count
        wanted = {o.name: o.parallelism for o in self.operators}
        if placed != wanted:
            raise ValueError(f"the placement must hold every task once: wanted {wanted}, placed {placed}")
        return self

    @property
    def parallelism(self) -> dict[str, int]:
        return {o.name: o.parallelism for o in self.operators}


class Plan(PlanContent):
    """One version of the plan of a job."""

    version: PositiveInt
    created_at: str = Field(description="ISO 8601, UTC.")
    difference: Difference | None = Field(None, description="From the previous version; None for the first.")


def difference(before: Plan, after: Plan) -> Difference:
    """What turns `before` into `after`. Tasks of one operator are interchangeable, so only counts matter."""
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
