"""Slot sharing (CAPSys section 6.1): tasks in one slot compete for their worker as tasks in two slots do.

Slots isolate nothing, since every task has a thread of its own. So placing with slot sharing is placing without it on
workers with more slots. Flink puts at most one task of each operator of a slot sharing group into a slot, so what a
worker holds takes, for each group g, as many slots as the operator of g with most tasks there:

    slots of w = sum_g max_{i in g} x_wi
"""

from collections import Counter
from collections.abc import Mapping

from models.cluster import Cluster
from models.dataflow import Dataflow
from models.errors import InvalidInput
from models.plan.parts import Placement
from models.vertices import DEFAULT_GROUP


def with_shared_slots(cluster: Cluster, dataflow: Dataflow, groups: Mapping[str, str] | None = None) -> Cluster:
    """The cluster as the placement search sees it when slots are shared: each slot counts once for every operator of
    the largest group.

    `slots_taken` gives the slots that a placement really needs. With one group it fits as long as no
    worker has more tasks of one operator than slots; with several groups, slots of the smaller ones stay partly empty.

    Args:
        groups: operator -> slot sharing group; `default` where an operator is left out.

    Raises:
        InvalidInput: `groups` names an unknown operator.
    """
    most = max(Counter(_group_of(dataflow, groups).values()).values())
    workers = tuple(w.model_copy(update={"slots": w.slots * most}) for w in cluster.workers)
    return cluster.model_copy(update={"workers": workers})


def slots_taken(placement: Placement, dataflow: Dataflow, groups: Mapping[str, str] | None = None) -> dict[str, int]:
    """Slots that each worker of a placement needs when slots are shared; raises as `with_shared_slots` does."""
    group_of = _group_of(dataflow, groups)
    taken = {}
    for worker, tasks in placement.items():
        most: dict[str, int] = {}
        for operator, number in tasks.items():
            most[group_of[operator]] = max(most.get(group_of[operator], 0), number)
        taken[worker] = sum(most.values())
    return taken


def _group_of(dataflow: Dataflow, groups: Mapping[str, str] | None) -> dict[str, str]:
    named = dict(groups or {})
    names = [o.name for o in dataflow.operators]
    unknown = sorted(set(named) - set(names))
    if unknown:
        raise InvalidInput(
            f"slot sharing groups must name operators of the dataflow, but {unknown[0]!r} is none of them; "
            f"known operators: {', '.join(names)}"
        )
    return {name: named.get(name, DEFAULT_GROUP) for name in names}
