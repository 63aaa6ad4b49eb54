"""Which subtask runs where. Tasks of an operator are alike, except that a forward edge joins subtask i to subtask i."""

import numpy as np

from models.placement.kernels.problem import Ints
from models.placement.problem import Problem
from models.placement.results import Subtasks


def assign_subtasks(problem: Problem, counts: Ints) -> Subtasks | None:
    """Subtask indices for a plan (W, n), so that on every worker min(x_u, x_v) pairs of a forward edge meet.

    Operators joined by forward edges are visited along a maximum spanning tree (by traffic), and each takes
    the indices of the one it is joined to, as far as the worker holds both. So the network load is the one of the cost
    model wherever forward edges form no cycle (directions aside); an edge that closes a cycle may carry more.

    Returns:
        None where no edge is forward, since then the indices do not matter.
    """
    edges = problem.edges
    if not edges.forward.any():
        return None
    import networkx as nx

    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(len(problem.operators)))
    for e in np.flatnonzero(edges.forward):
        graph.add_edge(int(edges.upstream[e]), int(edges.downstream[e]), weight=float(edges.load[e]))
    tree = nx.maximum_spanning_tree(graph)
    assigned: dict[int, list[list[int]]] = {}
    for component in nx.connected_components(tree):
        root = min(component)
        assigned[root] = _take(counts[:, root], None)
        for near, far in nx.bfs_edges(tree, root):
            assigned[far] = _take(counts[:, far], assigned[near])
    return {
        problem.workers[w]: {
            problem.operators[i]: tuple(assigned[i][w]) for i in range(len(problem.operators)) if assigned[i][w]
        }
        for w in np.flatnonzero(counts.sum(axis=1))
    }


def _take(numbers: Ints, partner: list[list[int]] | None) -> list[list[int]]:
    """Indices for each worker: first those of the partner's subtasks there, then free ones."""
    taken = [[] if partner is None else partner[w][:number] for w, number in enumerate(numbers.tolist())]
    used = {index for indices in taken for index in indices}
    rest = (index for index in range(int(numbers.sum())) if index not in used)
    return [
        sorted([*indices, *(next(rest) for _ in range(number - len(indices)))])
        for indices, number in zip(taken, numbers.tolist(), strict=True)
    ]
