"""A budget on a cluster: memory of TaskManagers and tasks, and whether the slots suffice."""

import math
from collections import Counter
from collections.abc import Sequence

from models.cluster import Cluster, WorkerOffer
from models.errors import Infeasible, InvalidInput
from models.job import Job
from models.plan.content import PlanContent
from models.resources.memory import jvm_memory_mb, managed_memory_per_slot_mb, measured_memory_mb
from models.wording import amount


def stateful_per_slot(job: Job) -> int:
    """How many operators with state share a slot at most, and so divide its managed memory; at least 1.

    A slot needs as many times the memory of one that was measured with a single task in it.
    """
    stateful: Counter[str] = Counter()
    for vertex in job.deployed_vertices:
        group = vertex.slot_sharing_group or vertex.operators[0]
        stateful[group] += sum(job.operator(name).state is not None for name in vertex.operators)
    return max(1, *stateful.values()) if job.vertices else 1


def budget_memory_mb(plan: PlanContent, job: Job, measured_slots: int) -> float:
    """Memory of a TaskManager as the capacity model counts it (`Budget`) that a plan comes to, MiB.

    The plan's own is that of a worker with the slots of the picked kind, and for all operators with state that share a slot.

    Args:
        measured_slots: of one TaskManager while the job was measured.
    """
    memory_mb, resources = plan.memory_mb, plan.resources
    if resources is not None and resources.kind is not None and resources.slots is not None:
        memory_mb = measured_memory_mb(memory_mb, resources.slots, measured_slots)
    # A running job was seen in the slots that its tasks share.
    return memory_mb if plan.lineage.testbed == "running" else memory_mb / stateful_per_slot(job)


def check_memory(memory_mb: float, cluster: Cluster | WorkerOffer) -> None:
    """Check the memory of a TaskManager that a user asks for; kinds on offer get their share of it by their slots.

    Raises:
        InvalidInput: a worker of the cluster has less, or the JVM alone needs as much.
    """
    if memory_mb <= (jvm_mb := jvm_memory_mb(memory_mb)):
        raise InvalidInput(
            f"TaskManagers of {memory_mb:,.0f} MiB were asked for, of which the JVM alone takes {jvm_mb:,.0f} MiB; ask for more"
        )
    workers = cluster.workers if isinstance(cluster, Cluster) else ()
    most, name = min(((w.memory_mb, w.name) for w in workers if w.memory_mb is not None), default=(math.inf, ""))
    if memory_mb > most:
        raise InvalidInput(
            f"TaskManagers of {memory_mb:,.0f} MiB were asked for, but worker {name!r} of cluster {cluster.name!r} has "
            f"{most:,.0f} MiB; ask for no more, or correct 'memory_mb' in the cluster's file"
        )


def fitting_memory(
    levels_mb: Sequence[float], slots_per_worker: int, cluster: Cluster | WorkerOffer, times: int = 1
) -> list[float]:
    """The memory sizes whose share per slot the cluster's workers, or those of one kind that it offers, can provide.

    Args:
        times: how many times this share a slot needs, see `stateful_per_slot`.

    Raises:
        Infeasible: none fits.
    """
    if isinstance(cluster, WorkerOffer):
        most = max(math.inf if k.memory_mb is None else k.memory_mb / k.slots for k in cluster.kinds)
    else:
        per_slot = [w.memory_mb / w.slots for w in cluster.workers if w.memory_mb is not None]
        most = min(per_slot, default=math.inf)
    fitting = [level for level in levels_mb if times * level / slots_per_worker <= most]
    if not fitting:
        raise Infeasible(
            f"a slot needs at least {times * min(levels_mb) / slots_per_worker:,.0f} MiB ({min(levels_mb):,.0f} for "
            f"{slots_per_worker} slots{f', for each of {times} operators with state' if times > 1 else ''}), but the workers "
            f"of cluster {cluster.name!r} have {most:,.0f} MiB per slot; use a cluster with more memory per slot"
        )
    return fitting


def managed_memory(job: Job, memory_mb: float, slots_per_worker: int, tasks_with_state: int = 1) -> dict[str, float]:
    """Managed memory of one task of each operator, MiB; 0 where it keeps no state.

    Args:
        memory_mb: of a TaskManager with so many slots.
        tasks_with_state: that share such a slot.
    """
    share = managed_memory_per_slot_mb(memory_mb, slots_per_worker) / tasks_with_state
    return {o.name: round(share, 1) if o.state is not None else 0.0 for o in job.operators}


def check_slots(slots: int, rate: float, cluster: Cluster) -> None:
    """Raises Infeasible where the cluster has fewer slots than the plan takes, sources included."""
    if slots > cluster.slots:
        raise Infeasible(
            f"{amount(rate)} records/s need {slots} slots, sources included, but cluster {cluster.name!r} has "
            f"{cluster.slots}; use a larger cluster, or a lower rate"
        )


def memory_reason(measured_slots: int, cluster: Cluster) -> tuple[str, ...]:
    """A note on the plan's memory if the cluster's workers have another number of slots than the measured ones."""
    slots = {w.slots for w in cluster.workers}
    if slots == {measured_slots}:
        return ()
    most = max(slots)
    return (
        f"memory is that of a TaskManager of {measured_slots} slots, as measured; one of {most} slots needs "
        f"{most / measured_slots:.3g} times as much for the same share of each",
    )
