"""Several jobs as one problem: counts by hand, and costs against sums over the jobs."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.cluster import Cluster
from models.dataflow import Dataflow
from models.errors import InvalidInput
from models.placement import count_plans, place, tune
from models.placement.cost import costs, worker_loads
from models.placement.graph.union import Dataflows, by_job, union
from models.placement.problem import Problem


def job(name: str, *operators: tuple[int, float, float, float], partitioning: str = "hash") -> Dataflow:
    """Operators a, b, ... as (parallelism, cpu, io, net), in a row."""
    names = "abcd"[: len(operators)]
    return Dataflow.model_validate(
        {
            "name": name,
            "operators": [
                {"name": n, "parallelism": p, "cpu": cpu, "io": io, "net": net}
                for n, (p, cpu, io, net) in zip(names, operators, strict=True)
            ],
            "edges": [{"from": a, "to": b, "partitioning": partitioning} for a, b in pairwise(names)],
        }
    )


def workers(count: int, slots: int) -> Cluster:
    return Cluster.model_validate({"count": count, "slots": slots})


def test_operators_and_edges_are_those_of_all_jobs():
    both = union([job("x", (2, 1, 0, 4), (1, 3, 1, 0)), job("y", (2, 5, 0, 0))])
    assert [(o.name, o.parallelism, o.cpu) for o in both.operators] == [("x.a", 2, 1), ("x.b", 1, 3), ("y.a", 2, 5)]
    assert [(e.upstream, e.downstream) for e in both.edges] == [("x.a", "x.b")]


@pytest.mark.parametrize(
    ("first", "second", "count", "slots", "plans"),
    [
        # Two tasks of each of two jobs on two workers of two slots: {ab, ab} or {aa, bb}.
        ((2,), (2,), 2, 2, 2),
        # With three slots also 3 + 1: {aab, b}, {abb, a}.
        ((2,), (2,), 2, 3, 4),
        # One task each of three operators, two in one job: which of them stands alone, or all three together.
        ((1, 1), (1,), 2, 3, 4),
        # The same numbers as one job of Nexmark q1 that the counts are known for: 2, 2, 4, 1 on 3 x 3 have 16.
        ((2, 2), (4, 1), 3, 3, 16),
        ((2, 5), (8, 1), 4, 4, 80),
    ],
)
def test_plans_of_the_union(first: tuple[int, ...], second: tuple[int, ...], count: int, slots: int, plans: int):
    jobs = [job("x", *((p, 1, 0, 0) for p in first)), job("y", *((p, 1, 0, 0) for p in second))]
    assert count_plans(union(jobs), workers(count, slots)) == plans


def test_jobs_are_placed_globally_and_split_again():
    """Each job alone has two heavy tasks; together the four go one to each of the four workers."""
    jobs = [job("x", (2, 5, 0, 0), (2, 0, 0, 0)), job("y", (2, 5, 0, 0), (2, 0, 0, 0))]
    result = place(union(jobs), workers(4, 2))
    assert (result.status, result.cost.cpu) == ("optimal", 0)
    placed = by_job(result.placement, jobs)
    assert list(placed) == ["x", "y"]
    heavy = [worker for own in placed.values() for worker, tasks in own.items() for _ in range(tasks.get("a", 0))]
    assert sorted(heavy) == ["tm-1", "tm-2", "tm-3", "tm-4"]
    for name in ("x", "y"):
        assert sum(tasks.get("b", 0) for tasks in placed[name].values()) == 2


def test_subtasks_are_split_by_job_too():
    jobs = [job("x", (2, 1, 0, 1), (2, 1, 0, 0), partitioning="forward"), job("y", (1, 1, 0, 0))]
    tuning = tune(union(jobs), workers(2, 3))
    assert tuning.subtasks is not None
    placed = by_job(tuning.subtasks, jobs)
    assert sorted(i for tasks in placed["x"].values() for i in tasks.get("a", ())) == [0, 1]
    assert all(tasks.get("a") == tasks.get("b") for tasks in placed["x"].values())
    assert list(placed["y"].values()) == [{"a": (0,)}]


@pytest.mark.parametrize(
    ("jobs", "message"),
    [
        ([], "needs at least one dataflow"),
        ([job("x", (1, 1, 0, 0)), job("x", (1, 1, 0, 0))], "'x' occurs 2 times"),
        ([job("x" * 119, (1, 1, 0, 0))], "has 121; shorten one"),
    ],
)
def test_what_makes_no_union(jobs: list[Dataflow], message: str):
    with pytest.raises(InvalidInput, match=message):
        union(jobs)


def test_names_that_become_one_are_refused():
    """`b.c` of the job `a`, and `c` of the job `a.b`."""
    first, second = job("a", (1, 1, 0, 0)), job("a.b", (1, 1, 0, 0))
    renamed = [
        d.model_copy(update={"operators": (d.operators[0].model_copy(update={"name": name}),)})
        for d, name in ((first, "b.c"), (second, "c"))
    ]
    with pytest.raises(InvalidInput, match=r"'a.b.c' occurs 2 times"):
        union(renamed)


def test_a_file_of_jobs_with_one_name_twice_is_refused():
    with pytest.raises(ValueError, match="'x' occurs 2 times; give each job its own name"):
        Dataflows(dataflows=(job("x", (1, 1, 0, 0)), job("x", (1, 1, 0, 0))))


@st.composite
def placed_jobs(draw: st.DrawFn) -> tuple[list[Dataflow], Cluster, list[np.ndarray]]:
    """Jobs, a cluster with room, and a random plan (W, n) of each job."""
    numbers = st.integers(0, 20).map(float)
    operator = st.tuples(st.integers(1, 4), numbers, numbers, numbers)
    jobs = [
        job(name, *draw(st.lists(operator, min_size=1, max_size=3)))
        for name in draw(st.sampled_from([["x"], ["x", "y"], ["x", "y", "z"]]))
    ]
    count = draw(st.integers(1, 4))
    cluster = workers(count, sum(d.tasks for d in jobs))
    plans = []
    for d in jobs:
        plan = np.zeros((count, len(d.operators)), dtype=np.int64)
        for i, o in enumerate(d.operators):
            for _ in range(o.parallelism):
                plan[draw(st.integers(0, count - 1)), i] += 1
        plans.append(plan)
    return jobs, cluster, plans


def directly(jobs: list[Dataflow], plans: list[np.ndarray], count: int) -> list[float]:
    """C of Eq. 4-8, task by task, without a problem or a union. Every worker could hold all tasks."""
    cost = []
    for key in ("cpu", "io", "net"):
        every = [o.parallelism * getattr(o, key) for d in jobs for o in d.operators]
        most, least = sum(every), 0.0 if key == "net" else sum(every) / count
        worst = max(sum(_load(d, plan[w], key) for d, plan in zip(jobs, plans, strict=True)) for w in range(count))
        cost.append((worst - least) / (most - least) if most - least > 1e-12 * most else 0.0)
    return cost


def _load(d: Dataflow, here: Any, key: str) -> float:
    if key != "net":
        return float(sum(x * getattr(o, key) for x, o in zip(here, d.operators, strict=True)))
    pairs = pairwise(range(len(d.operators)))
    return float(sum(here[u] * d.operators[u].net * (1 - here[v] / d.operators[v].parallelism) for u, v in pairs))


@given(placed_jobs())
def test_the_cost_of_the_union_is_that_of_all_tasks_together(case: Any):
    jobs, cluster, plans = case
    problem = Problem.of(union(jobs), cluster)
    together = np.concatenate(plans, axis=1)
    assert costs(problem, together) == pytest.approx(directly(jobs, plans, len(cluster.workers)), abs=1e-9)
    alone = [worker_loads(Problem.of(d, cluster), plan) for d, plan in zip(jobs, plans, strict=True)]
    assert worker_loads(problem, together) == pytest.approx(sum(alone))
    assert by_job(problem.placement(together), jobs) == {
        d.name: Problem.of(d, cluster).placement(plan) for d, plan in zip(jobs, plans, strict=True)
    }
