"""Subtask indices, so that forward pairs meet as the cost model counts them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from models.cluster import Cluster
from models.dataflow import Dataflow
from models.placement import place
from models.placement.graph.subtasks import assign_subtasks
from models.placement.problem import Problem


def forward_problem(n: int, parallelism: int, workers: int) -> Problem:
    """A row of operators joined by forward edges, with a branch back to the first where there are four."""
    operators = [{"name": f"o{i}", "parallelism": parallelism, "cpu": 1, "io": 0, "net": 1} for i in range(n)]
    edges = [{"from": f"o{i}", "to": f"o{i + 1}", "partitioning": "forward"} for i in range(min(n, 3) - 1)]
    edges += [{"from": "o0", "to": "o3", "partitioning": "forward"}] if n == 4 else []
    return Problem.of(
        Dataflow.model_validate({"operators": operators, "edges": edges}),
        Cluster.model_validate({"count": workers, "slots": n * parallelism}),
    )


@given(st.integers(2, 4), st.integers(1, 6), st.integers(1, 4), st.randoms(use_true_random=False))
def test_forward_pairs_meet_wherever_counts_allow(n: int, parallelism: int, workers: int, random):
    p = forward_problem(n, parallelism, workers)
    counts = np.zeros((workers, n), dtype=np.int64)
    for i in range(n):
        for _ in range(parallelism):
            counts[random.randrange(workers), i] += 1
    subtasks = assign_subtasks(p, counts)
    for i, name in enumerate(p.operators):
        held = [subtasks.get(worker, {}).get(name, ()) for worker in p.workers]
        assert [len(indices) for indices in held] == counts[:, i].tolist()
        assert sorted(index for indices in held for index in indices) == list(range(parallelism))
    for u, v in zip(p.edges.upstream, p.edges.downstream, strict=True):
        for w, tasks in subtasks.items():
            pairs = set(tasks.get(p.operators[u], ())) & set(tasks.get(p.operators[v], ()))
            assert len(pairs) == min(counts[p.workers.index(w), [u, v]])


def test_indices_do_not_matter_without_forward_edges(chain, equal_workers):
    assert place(chain(2, 2), equal_workers(2, 2)).subtasks is None
