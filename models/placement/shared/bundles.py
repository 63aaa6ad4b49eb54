"""A mix as a placement problem: bundles in place of operators."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from models.cluster import Cluster
from models.errors import Infeasible
from models.placement.graph.slot_sharing import with_shared_slots
from models.placement.kernels.problem import MEMORY, NET, Floats, Ints
from models.placement.problem import (
    DIMENSIONS,
    Edges,
    Problem,
    capacities,
    loaded_edges,
    task_loads,
    worker_types,
    worst_loads,
)
from models.placement.shared.mixes import Mix, nested
from models.placement.shared.sharing import SharedDataflow
from models.plan.parts import Placement


def bundled(shared: SharedDataflow, mix: Mix, cluster: Cluster) -> Problem:
    """The problem of placing the slots of a mix.

    L^max is that of Flink's default mix: no other puts more load on a worker, so costs of all mixes are on one scale. A
    forward edge between vertices that are not always in the same slots counts as if every task sent to all, which is at
    least what it sends.

    Raises:
        Infeasible: the mix needs more slots, or more memory, than the cluster has.
    """
    slots = np.array([w.slots for w in cluster.workers], dtype=np.int64)
    if shared.slots > slots.sum():
        raise Infeasible(
            f"the job needs {shared.slots} slots, those of the widest vertex of each slot sharing group, but cluster "
            f"{cluster.name!r} has {slots.sum()}; add workers or slots, or lower the parallelism"
        )
    holds = _membership(shared, mix)
    counts = np.array([b.slots for b in mix], dtype=np.int64)
    capacity = capacities(cluster)[1]
    loads = _loads(shared, holds)
    least = (loads @ counts / capacity.sum(axis=1))[: len(DIMENSIONS)]
    least[NET] = 0.0
    return Problem(
        operators=tuple(bundle_names(mix)),
        workers=tuple(w.name for w in cluster.workers),
        parallelism=counts,
        loads=loads,
        slots=slots,
        capacity=capacity,
        worker_type=worker_types(cluster.workers),
        edges=_edges(shared, holds, counts),
        least=least,
        most=worst_shared_loads(shared, slots, capacity),
    )


def task_problem(shared: SharedDataflow, cluster: Cluster) -> Problem:
    """The problem of placing tasks without regard to slots and memory, with costs on the scale of `bundled`: a relaxation of
    the problems of all mixes.

    Raises:
        Infeasible: not even the widest vertices have slots.
    """
    larger = with_shared_slots(cluster, shared.dataflow, shared.group_of)
    operators = tuple(o.model_copy(update={"memory_mb": 0.0}) for o in shared.dataflow.operators)
    scale = bundled(shared, nested(shared), cluster)
    return replace(
        Problem.of(shared.dataflow.model_copy(update={"operators": operators}), larger),
        least=scale.least,
        most=scale.most,
    )


def worst_shared_loads(shared: SharedDataflow, slots: Ints, capacity: Floats) -> Floats:
    """(3,): L^max over all mixes, that of the heaviest slots of the default mix on one worker.

    On a worker with a_g slots of group g, a vertex v of g has at most min(a_g, p_v) tasks, and in the default mix it has as
    many on the a_g heaviest slots.
    """
    mix = nested(shared)
    counts = np.array([b.slots for b in mix], dtype=np.int64)
    return worst_loads(_loads(shared, _membership(shared, mix)), counts, slots, capacity)


def bundle_names(mix: Mix) -> list[str]:
    """Names of the bundles in the problem."""
    return [f"bundle-{number}" for number in range(1, len(mix) + 1)]


def by_vertex(mix: Mix, placement: Placement) -> Placement:
    """A placement of bundles as one of vertices."""
    bundles = dict(zip(bundle_names(mix), mix, strict=True))
    placed: Placement = {}
    for worker, slots in placement.items():
        tasks: Counter[str] = Counter()
        for name, number in slots.items():
            tasks.update(dict.fromkeys(bundles[name].vertices, number))
        placed[worker] = dict(tasks)
    return placed


def _membership(shared: SharedDataflow, mix: Mix) -> Ints:
    """(B, V): 1 where bundle b holds a task of vertex v."""
    return np.array([[int(o.name in b.vertices) for o in shared.dataflow.operators] for b in mix], dtype=np.int64)


def _loads(shared: SharedDataflow, holds: Ints) -> Floats:
    """(4, B): loads of one slot of each bundle. Slots are alike in memory, so that of a slot is that of any of its tasks."""
    tasks = task_loads(shared.dataflow)
    loads = tasks @ holds.T
    loads[MEMORY] = (tasks[MEMORY] * holds).max(axis=1)
    return np.asarray(loads)


def _edges(shared: SharedDataflow, holds: Ints, counts: Ints) -> Edges:
    """The edges between bundles; see the table of the package."""
    edges = loaded_edges(shared.dataflow)
    parallelism = holds.T @ counts
    to_all: dict[tuple[int, int], float] = defaultdict(float)
    pairs: dict[tuple[int, int], float] = defaultdict(float)
    for u, v, load, forward in zip(edges.upstream, edges.downstream, edges.load, edges.forward, strict=True):
        senders, receivers = np.flatnonzero(holds[:, u]), np.flatnonzero(holds[:, v])
        if forward and (senders.tolist() == receivers.tolist()):
            continue  # both ends of a pair are in the same slot
        if forward and len(senders) == len(receivers) == 1:
            pairs[int(senders[0]), int(receivers[0])] += float(load)
            continue
        for b in senders:
            for other in receivers:
                to_all[int(b), int(other)] += float(load) * float(counts[other] / parallelism[v])
    return _as_arrays(to_all, pairs)


def _as_arrays(to_all: Mapping[tuple[int, int], float], pairs: Mapping[tuple[int, int], float]) -> Edges:
    ends = [*to_all, *pairs]
    return Edges(
        upstream=np.array([b for b, _ in ends], dtype=np.int64),
        downstream=np.array([b for _, b in ends], dtype=np.int64),
        load=np.array([*to_all.values(), *pairs.values()], dtype=np.float64),
        forward=np.array([False] * len(to_all) + [True] * len(pairs), dtype=np.bool_),
    )
