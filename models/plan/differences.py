"""Plans compared: what changes from one to another, and whether a cluster has to do anything about it."""

from collections.abc import Mapping

from models.plan.changes import Difference, MemoryChange, ParallelismChange, PlacementChange
from models.plan.content import Plan, PlanContent


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
