"""Picking a worker kind: the one that holds a plan's tasks at the least price.

    S      tasks, one in each slot
    C      cores that they keep busy at the planned rate
    s, c   slots and cores of a worker of the kind
    p      its price, USD/h
    N      the fewest workers:  max(ceil(S / s), ceil(C / c)),  without the second where the kind states no cores
    n      the most workers that can be had

A kind can hold the plan if N <= n and a slot has the memory that was measured. Of these, the least N p is picked; of equal
ones the fewest workers, then the first in the file. One kind serves a plan, since Flink's TaskManagers are configured
alike. Where a kind's number is not bounded, a mix could save less than one worker of the kind with the least p / s: the
mix costs at least S p / s, and that kind alone less than (S + s) p / s, provided that slots decide.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from models.cluster import Cluster, WorkerKind, WorkerOffer
from models.errors import Infeasible
from models.resources.memory import memory_for_slots_mb
from models.resources.planned import Alternative
from models.resources.price import in_words


@dataclass(frozen=True)
class Need:
    """What a plan's tasks need of the workers."""

    tasks: int
    memory_mb: float
    """Memory of a TaskManager with `slots_per_worker` slots, MiB."""
    slots_per_worker: int | None
    """As measured; None: the memory is that of a TaskManager however many slots it has."""
    busy_cores: float = 0.0
    """Of all tasks together; 0 where it is not known."""
    what: str = "tasks, sources included"

    def share_of(self, kind: WorkerKind) -> float:
        """Memory that a worker of the kind must have: for each slot as much as was measured, MiB."""
        return self.memory_mb * kind.slots / (self.slots_per_worker or kind.slots)

    def memory_of(self, kind: WorkerKind) -> float:
        """Memory of a TaskManager of the kind, MiB: with the JVM's own share on top, as far as the worker has it."""
        wanted = memory_for_slots_mb(self.memory_mb, self.slots_per_worker or kind.slots, kind.slots)
        return wanted if kind.memory_mb is None else min(wanted, kind.memory_mb)


@dataclass(frozen=True)
class PickedKind:
    """The kind that was picked."""

    kind: WorkerKind
    count: int
    memory_mb: float
    """Memory of each TaskManager, MiB."""
    alternatives: tuple[Alternative, ...]
    reason: str

    def cluster(self, offer: WorkerOffer) -> Cluster:
        """Workers of the kind."""
        return Cluster(name=offer.name, description=offer.description, workers=self.kind.workers(self.count))


def pick_kind(offer: WorkerOffer, need: Need) -> PickedKind:
    """The kind that holds the tasks at the least price.

    Raises:
        Infeasible: none can; the message says for each why.
    """
    alternatives = [_alternative(kind, need) for kind in offer.kinds]
    ranked = sorted(alternatives, key=_rank)
    best, kinds = ranked[0], {kind.name: kind for kind in offer.kinds}
    if best.task_managers is None:
        raise Infeasible(
            f"no worker kind of cluster {offer.name!r} holds {need.tasks} {need.what}: "
            + "; ".join(f"{a.kind}: {a.why_not}" for a in alternatives[:5])
            + "; offer another kind or more workers, or plan for a lower rate"
        )
    kind = kinds[best.kind]
    return PickedKind(
        kind=kind,
        count=best.task_managers,
        memory_mb=need.memory_of(kind),
        alternatives=tuple(ranked),
        reason=_reason(best, ranked[1:], need),
    )


def fewest_workers(kind: WorkerKind, tasks: int, busy_cores: float) -> int | None:
    """Fewest workers of a kind that hold the tasks; None where there are not as many."""
    for_cores = 0 if kind.cores is None else math.ceil(busy_cores / kind.cores * (1 - 1e-12))
    count = max(math.ceil(tasks / kind.slots), for_cores)
    return count if count <= kind.most else None


def _alternative(kind: WorkerKind, need: Need) -> Alternative:
    why_not = _why_not(kind, need)
    count = None if why_not else fewest_workers(kind, need.tasks, need.busy_cores)
    return Alternative(
        kind=kind.name,
        slots=kind.slots,
        cores=kind.cores,
        memory_mb=kind.memory_mb,
        task_managers=count,
        price_per_hour=None if count is None or kind.price_per_hour is None else count * kind.price_per_hour,
        why_not=why_not,
    )


def _why_not(kind: WorkerKind, need: Need) -> str | None:
    """Why the kind cannot hold the plan; None where it can."""
    wanted = need.share_of(kind)
    if kind.memory_mb is not None and kind.memory_mb < wanted:
        needs = "a TaskManager needs" if need.slots_per_worker is None else f"{kind.slots} slots need"
        return f"a worker has {kind.memory_mb:,.0f} MiB, but {needs} {wanted:,.0f}"
    if fewest_workers(kind, need.tasks, need.busy_cores) is not None:
        return None
    if kind.most * kind.slots < need.tasks:
        return f"its {_workers(kind)} {kind.most * kind.slots} slots"
    cores = kind.most * (kind.cores or 0)
    return f"its {_workers(kind)} {cores:g} cores, but the tasks keep {need.busy_cores:.3g} busy"


def _workers(kind: WorkerKind) -> str:
    return "only worker has" if kind.most == 1 else f"{kind.most} workers have"


def _rank(alternative: Alternative) -> tuple[Decimal, int]:
    """The cheapest first, those that cannot hold the plan last. A kind without a price is offered alone."""
    if alternative.task_managers is None:
        return Decimal("Infinity"), 0
    return alternative.price_per_hour or Decimal(0), alternative.task_managers


def _reason(best: Alternative, others: Sequence[Alternative], need: Need) -> str:
    count = best.task_managers
    hold = "TaskManager of kind {} holds" if count == 1 else "TaskManagers of kind {} hold"
    workers = f"{count} {hold.format(best.kind)} {need.tasks} {need.what}"
    if best.price_per_hour is None:
        return workers
    rest = [
        f"{a.kind} cannot: {a.why_not}"
        if a.price_per_hour is None
        else f"{a.task_managers} of {a.kind} cost {in_words(a.price_per_hour)}"
        for a in others
    ]
    least = f", the least of what was offered ({'; '.join(rest)})" if rest else ""
    return f"{workers}, for {in_words(best.price_per_hour)} USD per hour{least}"
