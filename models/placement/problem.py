"""A placement problem as arrays: what the cost model and the searches compute on.

Notation (CAPSys Table 1), one row of an array per symbol:

| symbol | meaning | field | shape | unit |
|---|---|---|---|---|
| i, n | operator, number of operators | `operators` | n | |
| w, W | worker, number of workers | `workers` | W | |
| p_i | tasks of operator i | `parallelism` | (n,) | |
| U_d(i) | load of one task of i in dimension d = cpu, io, net | `loads` | (3, n) | as given |
| m_i | memory that one task of i must have | `memory_mb` | (n,) | MiB |
| s_w | slots of worker w | `slots` | (W,) | |
| K_d(w) | capacity of worker w; 1 where no worker states it | `capacity` | (3, W) | as the loads |
| M_w | memory of worker w; infinite where it is not stated | `memory_limit_mb` | (W,) | MiB |
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
import numpy.typing as npt

from models.cluster import Cluster, Worker
from models.dataflow import Dataflow, Edge, Partitioning
from models.errors import Infeasible, InvalidInput
from models.plan import Placement

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

DIMENSIONS: Final = ("cpu", "io", "net")
"""The cost dimensions, in the order of every array's first axis."""


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
    memory_mb: Floats
    slots: Ints
    capacity: Floats
    memory_limit_mb: Floats
    worker_type: Ints
    """(W,): equal numbers for workers that are interchangeable, which is when all that they state is equal."""
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
        loads = dimension_loads(dataflow)
        memory_mb = np.array([o.memory_mb for o in dataflow.operators], dtype=np.float64)
        slots = np.array([w.slots for w in cluster.workers], dtype=np.int64)
        memory_limit = np.array([np.inf if w.memory_mb is None else w.memory_mb for w in cluster.workers])
        _refuse_hopeless(dataflow, slots, memory_limit)
        capacity = capacities(cluster)[1]
        least = loads @ parallelism / capacity.sum(axis=1)
        least[2] = 0.0
        return cls(
            operators=tuple(o.name for o in dataflow.operators),
            workers=tuple(w.name for w in cluster.workers),
            parallelism=parallelism,
            loads=loads,
            memory_mb=memory_mb,
            slots=slots,
            capacity=capacity,
            memory_limit_mb=memory_limit,
            worker_type=_types(cluster.workers),
            edges=_edges(dataflow),
            least=least,
            most=worst_loads(loads, parallelism, slots, capacity),
        )

    @property
    def tasks(self) -> int:
        """Tasks of all operators."""
        return int(self.parallelism.sum())

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
                        "does not; mend the name"
                    )
                counts[self.workers.index(worker), self.operators.index(operator)] = number
        if (counts.sum(axis=0) != self.parallelism).any() or (counts.sum(axis=1) > self.slots).any():
            raise InvalidInput("a placement must hold every task once and no more tasks on a worker than it has slots")
        return counts


def _refuse_hopeless(dataflow: Dataflow, slots: Ints, memory_limit_mb: Floats) -> None:
    """Raise `Infeasible` where a count is enough to see that there is no plan."""
    if slots.sum() < dataflow.tasks:
        raise Infeasible(
            f"{dataflow.tasks} tasks need as many slots, but the cluster has {slots.sum()}; "
            "add workers or slots, or lower the parallelism"
        )
    largest = max(dataflow.operators, key=lambda o: o.memory_mb)
    if largest.memory_mb > memory_limit_mb.max():
        raise Infeasible(
            f"a task of {largest.name!r} needs {largest.memory_mb:g} MiB, but the largest worker has "
            f"{memory_limit_mb.max():g} MiB; use larger workers"
        )
    total = sum(o.memory_mb * o.parallelism for o in dataflow.operators)
    if total > memory_limit_mb.sum():
        raise Infeasible(
            f"the tasks need {total:g} MiB together, but the workers have {memory_limit_mb.sum():g} MiB; add workers"
        )


def dimension_loads(dataflow: Dataflow) -> Floats:
    """(3, n): load of one task of each operator in cpu, io and net."""
    return np.array([[o.cpu, o.io, o.net] for o in dataflow.operators], dtype=np.float64).T.copy()


def capacities(cluster: Cluster) -> tuple[Bools, Floats]:
    """(3,): whether any worker states a capacity; (3, W): 1 for all if none does, else what is stated, and infinity
    where it is not."""
    keys = ("cores", "io", "net")
    given = np.array([[getattr(w, key) or np.inf for w in cluster.workers] for key in keys], dtype=np.float64)
    stated = np.asarray(np.isfinite(given).any(axis=1))
    return stated, np.where(stated[:, None], given, 1.0).astype(np.float64)


def _types(workers: Sequence[Worker]) -> Ints:
    keys = [(w.slots, w.cores, w.memory_mb, w.io, w.net) for w in workers]
    number = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    return np.array([number[key] for key in keys], dtype=np.int64)


def _edges(dataflow: Dataflow) -> Edges:
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

    By the edges' shares where any is below 1; otherwise nothing is said, and Eq. 8 divides it equally over the
    physical links: one per task on a forward edge, as many as there are downstream tasks on the others.
    """
    if any(e.share < 1 for e in outgoing):
        parts = [e.share for e in outgoing]
    else:
        parts = [1.0 if e.partitioning is Partitioning.FORWARD else float(parallelism[e.downstream]) for e in outgoing]
    return [part / sum(parts) for part in parts]


def worst_loads(loads: Floats, parallelism: Ints, slots: Ints, capacity: Floats) -> Floats:
    """(3,): L^max, the largest over all workers of the heaviest tasks that fill its slots (Eq. 7)."""
    most = np.zeros(3)
    for d in range(3):
        heaviest = np.concatenate([[0.0], np.cumsum(np.sort(np.repeat(loads[d], parallelism))[::-1])])
        most[d] = (heaviest[np.minimum(slots, parallelism.sum())] / capacity[d]).max()
    return most
