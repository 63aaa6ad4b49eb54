"""What leaves a worker over the network (CAPSys Eq. 8), exactly and as a lower bound while operators are placed."""

from models.compiled import compiled, inlined
from models.placement.kernels.problem import Bools, Floats, Ints


@inlined
def crossing(load: float, forward: bool, here: int, there: float, tasks: int) -> float:
    """T_e of a worker that holds `here` upstream tasks and `there` of the `tasks` downstream ones."""
    return load * max(0.0, here - there) if forward else load * here * (1.0 - there / tasks)


@compiled
def network_load(
    row: Ints, out: int, into: int, tasks: Ints, upstream: Ints, downstream: Ints, edge_load: Floats, forward: Bools
) -> float:
    """Outbound traffic of a worker that holds `row` (n,), after a task of `out` leaves and one of `into` arrives (-1: none)."""
    total = 0.0
    for e in range(len(upstream)):
        u, v = upstream[e], downstream[e]
        here = row[u] - (u == out) + (u == into)
        there = row[v] - (v == out) + (v == into)
        total += crossing(edge_load[e], forward[e], here, there, tasks[v])
    return total


@compiled
def network_floor(
    k: int, row: Ints, free: int, tasks: Ints, upstream: Ints, downstream: Ints, edge_load: Floats, forward: Bools
) -> float:
    """Least outbound traffic of a worker that holds `row` (n,) of operators 0..k and has `free` slots for later ones."""
    total = 0.0
    for e in range(len(upstream)):
        u, v = upstream[e], downstream[e]
        here = row[u]
        if u > k or here == 0:
            continue
        there = row[v] if v <= k else min(tasks[v], free)
        total += crossing(edge_load[e], forward[e], here, there, tasks[v])
    return total
