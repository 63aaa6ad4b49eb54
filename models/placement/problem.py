"""A placement problem as arrays, on which the cost model and the searches compute.

Notation (CAPSys Table 1), one row of an array per symbol:

| symbol | meaning | field | shape | unit |
|---|---|---|---|---|
| i, n | operator, number of operators | `operators` | n | |
| w, W | worker, number of workers | `workers` | W | |
| p_i | tasks of operator i | `parallelism` | (n,) | |
| U_d(i) | load of one task of i in d = cpu, io, net, and the memory it must have | `loads` | (4, n) | as given, MiB |
| s_w | slots of worker w | `slots` | (W,) | |
| K_d(w) | capacity of worker w, 1 where no worker states it; its memory | `capacity` | (4, W) | as the loads |
| L_d^min | load of a perfectly balanced plan (Eq. 6; 0 for net) | `least` | (3,) | load / capacity |
| L_d^max | load of the worst worker there can be (Eq. 7) | `most` | (3,) | load / capacity |
| c_e | load that one upstream task puts on edge e | `edges.load` | (E,) | as U_net |
| x_wi | tasks of operator i on worker w: a plan | `counts` | (W, n) | |

A load is always that of a worker divided by its capacity, so that workers of different sizes can be compared. A worker
that states no capacity while another one does is not constrained by that dimension: its capacity is infinite.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from models.cluster import Cluster, Worker
from models.dataflow import Dataflow, Edge, Partitioning
from models.errors import Infeasible, InvalidInput
from models.placement.kernels.problem import MEMORY, NET, Bools, CompiledProblem, Floats, Ints
from models.plan.parts import Placement

MEMORY_TOLERANCE: Final = 1e-9
"""Share by which a sum of memory may exceed a limit, since a float rounds it."""

DIMENSIONS: Final = ("cpu", "io", "net")
"""The cost dimensions, in the order of every array's first axis; memory, if present, comes last."""
IDLE_SHARE: Final = 0.5
"""Share of a worker's capacity; a dimension that no placement loads that far cannot become a bottleneck."""


@dataclass(frozen=True, eq=False)
class Edges:
    """Edges that can carry traffic between workers; arrays of length E."""

    upstream: Ints
    downstream: Ints
    load: Floats
    """c_e: what one upstream task sends along this edge."""
    forward: Bools
    """Task i sends to task i only; otherwise every task sends to all."""


@dataclass(frozen=True, eq=False)
class Problem:
    """Tasks with their loads, and workers with their slots; see the module's table for the fields."""

    operators: tuple[str, ...]
    workers: tuple[str, ...]
    parallelism: Ints
    loads: Floats
    slots: Ints
    capacity: Floats
    worker_type: Ints
    """(W,): the type of each worker; workers of one type are interchangeable, since all their fields are equal."""
    edges: Edges
    least: Floats
    most: Floats

    @classmethod
    def of(cls, dataflow: Dataflow, cluster: Cluster) -> Self:
        """The arrays of a dataflow and a cluster.

        Raises:
            Infeasible: there are fewer slots than tasks, or memory is too small however the tasks are placed.
        """
        parallelism = np.array([o.parallelism for o in dataflow.operators], dtype=np.int64)
        loads = task_loads(dataflow)
        slots = np.array([w.slots for w in cluster.workers], dtype=np.int64)
        capacity = capacities(cluster)[1]
        _refuse_hopeless(dataflow, slots, capacity[MEMORY])
        least = (loads @ parallelism / capacity.sum(axis=1))[: len(DIMENSIONS)]
        least[NET] = 0.0
        return cls(
            operators=tuple(o.name for o in dataflow.operators),
            workers=tuple(w.name for w in cluster.workers),
            parallelism=parallelism,
            loads=loads,
            slots=slots,
            capacity=capacity,
            worker_type=worker_types(cluster.workers),
            edges=loaded_edges(dataflow),
            least=least,
            most=worst_loads(loads, parallelism, slots, capacity),
        )

    @property
    def tasks(self) -> int:
        """Tasks of all operators."""
        return int(self.parallelism.sum())

    @property
    def memory_mb(self) -> Floats:
        """(n,): memory that one task of each operator must have."""
        return np.asarray(self.loads[MEMORY])

    @property
    def memory_limit_mb(self) -> Floats:
        """(W,): memory of each worker; infinite where it is not stated."""
        return np.asarray(self.capacity[MEMORY])

    def compiled(self, order: Ints | None = None) -> CompiledProblem:
        """The problem for the kernels, with its operators in the order (n,) given."""
        order = np.arange(len(self.operators)) if order is None else order
        position, edges = np.argsort(order), self.edges
        return CompiledProblem(
            tasks=self.parallelism[order],
            loads=np.ascontiguousarray(self.loads[:, order]),
            upstream=position[edges.upstream],
            downstream=position[edges.downstream],
            edge_load=edges.load,
            forward=edges.forward,
        )

    def placement(self, counts: Ints) -> Placement:
        """The plan `counts` (W, n) by the names of workers and operators."""
        return {
            self.workers[w]: {self.operators[i]: int(counts[w, i]) for i in np.flatnonzero(counts[w])}
            for w in np.flatnonzero(counts.sum(axis=1))
        }

    def counts(self, placement: Placement) -> Ints:
        """The plan as an array (W, n).

        Raises:
            InvalidInput: it names an unknown worker or operator, or does not hold every task once within the slots.
        """
        counts = np.zeros((len(self.workers), len(self.operators)), dtype=np.int64)
        for worker, tasks in placement.items():
            for operator, number in tasks.items():
                if worker not in self.workers or operator not in self.operators:
                    raise InvalidInput(
                        f"a placement must name workers and operators of its problem, but {worker!r} -> {operator!r} "
                        "does not; correct the name"
                    )
                counts[self.workers.index(worker), self.operators.index(operator)] = number
        if (counts.sum(axis=0) != self.parallelism).any() or (counts.sum(axis=1) > self.slots).any():
            raise InvalidInput("a placement must hold every task once and no more tasks on a worker than it has slots")
        return counts


def _refuse_hopeless(dataflow: Dataflow, slots: Ints, memory_limit_mb: Floats) -> None:
    """Raise `Infeasible` if counting slots and memory already excludes every plan."""
    if slots.sum() < dataflow.tasks:
        raise Infeasible(
            f"{dataflow.tasks} tasks need as many slots, but the cluster has {slots.sum()}; "
            "add workers or slots, or lower the parallelism"
        )
    largest = max(dataflow.operators, key=lambda o: o.memory_mb)
    if largest.memory_mb > memory_limit_mb.max() * (1 + MEMORY_TOLERANCE):
        raise Infeasible(
            f"a task of {largest.name!r} needs {largest.memory_mb:g} MiB, but the largest worker has "
            f"{memory_limit_mb.max():g} MiB; use larger workers"
        )
    total = sum(o.memory_mb * o.parallelism for o in dataflow.operators)
    if total > memory_limit_mb.sum() * (1 + MEMORY_TOLERANCE):
        raise Infeasible(
            f"the tasks need {total:g} MiB together, but the workers have {memory_limit_mb.sum():g} MiB; add workers"
        )


def task_loads(dataflow: Dataflow) -> Floats:
    """(4, n): load of one task of each operator in cpu, io and net, and its memory."""
    return np.array([[o.cpu, o.io, o.net, o.memory_mb] for o in dataflow.operators], dtype=np.float64).T.copy()


def capacities(cluster: Cluster) -> tuple[Bools, Floats]:
    """(4,): whether any worker states a capacity; (4, W): the stated capacity, else infinity; for cpu, io and net, 1 for
    all workers if none states it."""
    keys = ("cores", "io", "net", "memory_mb")
    given = np.array([[getattr(w, key) or np.inf for w in cluster.workers] for key in keys], dtype=np.float64)
    stated = np.asarray(np.isfinite(given).any(axis=1))
    unit = np.array([1.0, 1.0, 1.0, np.inf])[:, None]
    return stated, np.where(stated[:, None], given, unit).astype(np.float64)


def worker_types(workers: Sequence[Worker]) -> Ints:
    """(W,): the type of each worker; workers of one type are equal in all that counts."""
    keys = [(w.slots, w.cores, w.memory_mb, w.io, w.net) for w in workers]
    number = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    return np.array([number[key] for key in keys], dtype=np.int64)


def loaded_edges(dataflow: Dataflow) -> Edges:
    """The edges with what one upstream task sends along each."""
    index = {o.name: i for i, o in enumerate(dataflow.operators)}
    parallelism = {o.name: o.parallelism for o in dataflow.operators}
    rows = []
    for o in dataflow.operators:
        outgoing = [e for e in dataflow.edges if e.upstream == o.name]
        weights = edge_weights(outgoing, parallelism)
        rows += [(e, o.net * weight) for e, weight in zip(outgoing, weights, strict=True)]
    return Edges(
        upstream=np.array([index[e.upstream] for e, _ in rows], dtype=np.int64),
        downstream=np.array([index[e.downstream] for e, _ in rows], dtype=np.int64),
        load=np.array([load for _, load in rows], dtype=np.float64),
        forward=np.array([e.partitioning is Partitioning.FORWARD for e, _ in rows], dtype=np.bool_),
    )


def edge_weights(outgoing: Sequence[Edge], parallelism: dict[str, int]) -> list[float]:
    """How an operator's output divides over its edges; sums to 1.

    By the edges' shares where any is below 1; otherwise, as none is stated, Eq. 8 divides it equally over the
    physical links: one per task on a forward edge, as many as there are downstream tasks on the others.
    """
    if any(e.share < 1 for e in outgoing):
        parts = [e.share for e in outgoing]
    else:
        parts = [1.0 if e.partitioning is Partitioning.FORWARD else float(parallelism[e.downstream]) for e in outgoing]
    return [part / sum(parts) for part in parts]


def worst_loads(loads: Floats, parallelism: Ints, slots: Ints, capacity: Floats) -> Floats:
    """(3,): L^max, the largest over all workers of the heaviest tasks that fill its slots (Eq. 7)."""
    most = np.zeros(len(DIMENSIONS))
    for d in range(len(DIMENSIONS)):
        heaviest = np.concatenate([[0.0], np.cumsum(np.sort(np.repeat(loads[d], parallelism))[::-1])])
        most[d] = (heaviest[np.minimum(slots, parallelism.sum())] / capacity[d]).max()
    return most


def idle_dimensions(dataflow: Dataflow, cluster: Cluster, share: float = IDLE_SHARE) -> dict[str, float]:
    """Dimensions that cannot become a bottleneck: cpu, io or net -> load of the worst worker there can be (Eq. 7), as a
    share of its capacity, where some worker states one and that load is below `share`.

    No placement loads a worker more, so balance in that dimension is worth nothing. The tuning of section 5.2 relaxes all
    thresholds by one factor; a dimension whose least cost is near 0, as the network's is where few tasks nearly fit on
    one worker, would make that factor large and so loosen the thresholds of the others. Where no worker states a
    capacity, loads may be in any unit, and the paper's rule applies.
    """
    slots = np.array([w.slots for w in cluster.workers], dtype=np.int64)
    parallelism = np.array([o.parallelism for o in dataflow.operators], dtype=np.int64)
    return idle_loads(cluster, worst_loads(task_loads(dataflow), parallelism, slots, capacities(cluster)[1]), share)


def idle_loads(cluster: Cluster, worst: Floats, share: float = IDLE_SHARE) -> dict[str, float]:
    """`idle_dimensions` by the load (3,) of the worst worker there can be."""
    stated, _ = capacities(cluster)
    return {name: float(worst[d]) for d, name in enumerate(DIMENSIONS) if stated[d] and worst[d] < share}
