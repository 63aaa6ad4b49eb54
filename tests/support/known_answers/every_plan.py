"""All plans of a small problem, for tests that compare with them."""

import itertools
from collections.abc import Iterator

import numpy as np
from hypothesis import strategies as st

from models.cluster import Cluster
from models.dataflow import Dataflow
from models.placement.cost import load_limits
from models.placement.kernels.problem import Floats, Ints
from models.placement.kernels.tree import EXHAUSTED, advance, start
from models.placement.problem import Problem
from models.placement.search.tree import exploration_order, tree_of


def enumerate_plans(problem: Problem, thresholds: Floats | None = None) -> Iterator[Ints]:
    """Every distinct plan within the thresholds by the search tree, in arrays (B, W, n)."""
    limits = load_limits(problem, np.ones(3) if thresholds is None else thresholds)
    operators, workers = exploration_order(problem, limits), np.argsort(problem.worker_type, kind="stable")
    tree = tree_of(problem, limits, operators, workers)
    walk, buffer = start(tree), np.zeros((4096, len(workers), len(operators)), dtype=np.int64)
    reason = -1
    while reason != EXHAUSTED:
        reason, kept = advance(tree, walk, buffer, 1_000_000)
        if kept:
            plans = np.zeros_like(buffer[:kept])
            plans[:, workers[:, None], operators] = buffer[:kept]
            yield plans


@st.composite
def problems(draw: st.DrawFn, *, equal_workers: bool = False) -> Problem:
    """Small dataflows with several edges of all kinds, on workers that differ, some of them with memory."""
    load = st.sampled_from([0.0, 0.5, 1.0, 3.0, 7.0])
    n = draw(st.integers(1, 3))
    operators = [
        {
            "name": f"o{i}",
            "parallelism": draw(st.integers(1, 3)),
            "cpu": draw(load),
            "io": draw(load),
            "net": draw(load),
        }
        | ({} if equal_workers else {"memory_mb": draw(st.sampled_from([0.0, 1.0, 2.0]))})
        for i in range(n)
    ]
    edges = []
    for a, b in itertools.combinations(range(n), 2):
        kinds = ["none", "hash", "rebalance", "broadcast"]
        kinds += ["forward"] if operators[a]["parallelism"] == operators[b]["parallelism"] else []
        kind = draw(st.sampled_from(kinds))
        if kind != "none":
            edges.append(
                {"from": f"o{a}", "to": f"o{b}", "partitioning": kind, "share": draw(st.sampled_from([1, 0.5]))}
            )
    tasks = sum(o["parallelism"] for o in operators)
    if equal_workers:
        count = draw(st.integers(1, 3))
        slots = draw(st.integers(-(-tasks // count), -(-tasks // count) + 1))
        workers = [{"name": f"w{i}", "slots": slots} for i in range(count)]
    else:
        types = st.fixed_dictionaries(
            {
                "slots": st.integers(2, 4),
                "cores": st.sampled_from([None, 1, 2]),
                "memory_mb": st.sampled_from([None, 4.0, 8.0]),
            }
        )
        pool = draw(st.lists(types, min_size=1, max_size=2))
        workers = [{"name": f"w{i}", **draw(st.sampled_from(pool))} for i in range(draw(st.integers(1, 3)))]
        missing = tasks - sum(w["slots"] for w in workers)
        workers.append({"name": "rest", "slots": max(1, missing), "memory_mb": None})
    return Problem.of(
        Dataflow.model_validate({"operators": operators, "edges": edges}), Cluster.model_validate({"workers": workers})
    )


def every_plan(p: Problem) -> set[tuple]:
    """All distinct plans by trying all counts: per worker type, the sorted rows of its workers."""
    plans = set()

    def rows(w: int, left: tuple[int, ...], chosen: list[tuple[int, ...]]) -> None:
        if w == len(p.workers):
            if not any(left):
                plans.add(canonical(p, chosen))
            return
        for row in itertools.product(*(range(number + 1) for number in left)):
            if sum(row) <= p.slots[w] and np.dot(row, p.memory_mb) <= p.memory_limit_mb[w]:
                rows(w + 1, tuple(a - b for a, b in zip(left, row, strict=True)), [*chosen, row])

    rows(0, tuple(int(x) for x in p.parallelism), [])
    return plans


def canonical(p: Problem, rows: list) -> tuple:
    return tuple(sorted((int(kind), tuple(int(x) for x in row)) for kind, row in zip(p.worker_type, rows, strict=True)))


def as_counts(p: Problem, plan: tuple) -> np.ndarray:
    """Rows back on workers of their type."""
    rows = {kind: [row for k, row in plan if k == kind] for kind in set(p.worker_type.tolist())}
    return np.array([rows[kind].pop() for kind in p.worker_type.tolist()])
