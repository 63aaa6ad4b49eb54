"""The workers that a plan is placed on, picked where the cluster offers kinds; and what they have and cost together."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import accumulate
from typing import Final, Self

from models.capacity.sizing import SlotsInterval
from models.cluster import Cluster, Worker, WorkerOffer
from models.errors import Infeasible
from models.plan.content import PlanContent
from models.planning.budget import Sizing
from models.planning.parallelism import Scaling
from models.planning.resources import memory_reason
from models.planning.workers.kinds import Need, PickedKind, fewest_workers, pick_kind
from models.planning.workers.spending import affordable, check_within
from models.resources.memory import managed_memory_per_slot_mb
from models.resources.planned import PlanResources, Price

_SHORTFALL: Final = 0.02
"""Share of a slot's managed memory that may be missing without a note."""


@dataclass(frozen=True)
class PlannedWorkers:
    """The workers of a plan."""

    cluster: Cluster
    memory_mb: float
    """Memory of one TaskManager, MiB."""
    reasons: tuple[str, ...]
    picked: PickedKind | None = None
    """Where the cluster offers kinds."""
    busy_cores: float = 0.0
    """What the tasks keep busy at the planned rate."""
    managed_memory_mb: float = math.inf
    """Most managed memory that a task in a slot of the kind has, MiB."""

    @classmethod
    def of(cls, offered: Cluster | WorkerOffer, sizing: Sizing, scaling: Scaling, rate: float) -> Self:
        """The workers of the cluster or, of what it offers, the fewest of the cheapest kind.

        Args:
            rate: target, records/s at the sources together.

        Raises:
            Infeasible: no kind holds the tasks, or none within the price limit of the sizing.
        """
        # A slot that is shared needs the memory of several as they were measured, with one task in each.
        memory_mb = sizing.budget.memory_mb * scaling.stateful_per_slot
        measured_slots = sizing.slots_per_worker
        limit = None if sizing.objectives is None else sizing.objectives.asked.most_usd_per_hour
        loads = sum(o.parallelism * o.cpu for o in scaling.dataflow.operators)
        busy_cores = loads * sizing.planned_rate / rate
        if isinstance(offered, Cluster):
            reasons = memory_reason(measured_slots, offered)
            if limit is None:
                return cls(offered, memory_mb, reasons)
            used, remark = affordable(offered, scaling.slots, busy_cores, limit)
            return cls(used, memory_mb, reasons if remark is None else (*reasons, remark))
        picked = pick_kind(offered, _need(scaling, memory_mb, measured_slots, busy_cores))
        if limit is not None:
            check_within(picked, limit)
        per_slot_mb = managed_memory_per_slot_mb(picked.memory_mb, picked.kind.slots)
        reasons = (picked.reason, *_less_managed_memory(picked.kind.name, per_slot_mb, memory_mb, measured_slots))
        managed_mb = per_slot_mb / scaling.stateful_per_slot
        return cls(picked.cluster(offered), picked.memory_mb, reasons, picked, busy_cores, managed_mb)

    def resources(self, content: PlanContent) -> PlanResources:
        """The TaskManagers that the plan's placement uses."""
        used = [w for w in self.cluster.workers if any(content.placement.get(w.name, {}).values())]
        needed = content.slots_needed
        low = None if needed is None else self._fewest(_slots_for(content, needed.low))
        high = None if needed is None or needed.high is None else self._fewest(_slots_for(content, needed.high))
        return _resources(self.cluster, used, content.memory_mb, low, high, self.picked)

    def _fewest(self, tasks: int) -> int | None:
        if self.picked is not None:
            return fewest_workers(self.picked.kind, tasks, self.busy_cores)
        return _fewest_equal(self.cluster, tasks)


def _need(scaling: Scaling, memory_mb: float, measured_slots: int, busy_cores: float) -> Need:
    if scaling.vertices:
        return Need(scaling.slots, memory_mb, measured_slots, busy_cores, what="shared slots")
    return Need(scaling.slots, memory_mb, measured_slots, busy_cores)


def _slots_for(content: PlanContent, task_slots: int) -> int:
    """All slots of the plan with another number of task slots; shared ones in proportion."""
    if content.vertices:
        return math.ceil(content.total_slots * task_slots / content.task_slots)
    return task_slots + content.total_slots - content.task_slots


def _less_managed_memory(kind: str, managed_mb: float, memory_mb: float, slots: int) -> tuple[str, ...]:
    measured = managed_memory_per_slot_mb(memory_mb, slots)
    if managed_mb >= (1 - _SHORTFALL) * measured:
        return ()
    return (
        f"a slot of kind {kind} has {managed_mb:,.0f} MiB of managed memory, but {measured:,.0f} when measured: fewer slots "
        "share what the JVM itself takes",
    )


def resources_for(
    offered: Cluster | WorkerOffer, slots: SlotsInterval, memory_mb: float, slots_per_worker: int | None = None
) -> PlanResources:
    """The TaskManagers for a number of task slots, without those of the sources.

    Args:
        memory_mb: of one TaskManager, MiB.
        slots_per_worker: its slots, as measured; None: however many a worker has.

    Raises:
        Infeasible: the slots or the memory are more than the cluster has.
    """
    if isinstance(offered, WorkerOffer):
        picked = pick_kind(offered, Need(slots.value, memory_mb, slots_per_worker, what="task slots"))
        low, high = (None if n is None else fewest_workers(picked.kind, n, 0.0) for n in (slots.low, slots.high))
        cluster = picked.cluster(offered)
        return _resources(cluster, cluster.workers, picked.memory_mb, low, high, picked)
    if slots.value > offered.slots:
        raise Infeasible(f"{slots.value} task slots are needed, but cluster {offered.name!r} has {offered.slots}")
    for worker in offered.workers:
        share = memory_mb * worker.slots / (slots_per_worker or worker.slots)
        if worker.memory_mb is not None and worker.memory_mb < share:
            raise Infeasible(
                f"a TaskManager of {worker.slots} slots needs {share:,.0f} MiB, but worker {worker.name!r} of cluster "
                f"{offered.name!r} has {worker.memory_mb:,.0f}"
            )
    held = accumulate(w.slots for w in offered.workers)
    used = offered.workers[: next(i for i, have in enumerate(held, 1) if have >= slots.value)]
    low, high = (None if n is None else _fewest_equal(offered, n) for n in (slots.low, slots.high))
    return _resources(offered, used, memory_mb, low, high, None)


def _resources(
    cluster: Cluster,
    used: Sequence[Worker],
    memory_mb: float,
    low: int | None,
    high: int | None,
    picked: PickedKind | None,
) -> PlanResources:
    """
    Args:
        low, high: workers for the ends of the range of slots; None where unknown.
    """
    slots, cores = {w.slots for w in cluster.workers}, {w.cores for w in cluster.workers}
    stated = [w.cores for w in used if w.cores is not None]
    return PlanResources(
        task_managers=len(used),
        kind=None if picked is None else picked.kind.name,
        slots=slots.pop() if len(slots) == 1 else None,
        cores=cores.pop() if len(cores) == 1 else None,
        memory_mb=memory_mb,
        total_cores=math.fsum(stated) if len(stated) == len(used) else None,
        total_memory_mb=len(used) * memory_mb,
        price=_price(used, low, high),
        alternatives=() if picked is None else picked.alternatives,
    )


def _price(used: Sequence[Worker], low: int | None, high: int | None) -> Price | None:
    prices = [w.price_per_hour for w in used if w.price_per_hour is not None]
    if len(prices) < len(used):
        return None
    total = sum(prices, Decimal(0))
    return Price(
        per_hour=total,
        low=None if low is None else min(total, low * prices[0]),
        high=None if high is None else max(total, high * prices[0]),
    )


def _fewest_equal(cluster: Cluster, tasks: int) -> int | None:
    """Fewest workers that hold the tasks; None where workers differ, or are too few."""
    if len({(w.slots, w.price_per_hour) for w in cluster.workers}) > 1:
        return None
    count = math.ceil(tasks / cluster.workers[0].slots)
    return count if count <= len(cluster.workers) else None
