"""The least network load of a worker that is not full yet, for the searches that fill one operator after the other."""

from models.compiled import compiled
from models.placement.problem import Bools, Floats, Ints


@compiled
def net_floor(
    k: int, row: Ints, free: int, tasks: Ints, upstream: Ints, downstream: Ints, edge_load: Floats, forward: Bools
) -> float:
    """The least that can leave a worker that holds `row` (n,) of operators 0..k and has free slots."""
    total = 0.0
    for e in range(len(upstream)):
        u, v = upstream[e], downstream[e]
        here = row[u]
        if u > k or here == 0:
            continue
        there = row[v] if v <= k else min(tasks[v], free)
        if forward[e]:
            total += edge_load[e] * max(0, here - there)
        else:
            total += edge_load[e] * here * (1.0 - there / tasks[v])
    return total
