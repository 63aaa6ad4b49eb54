"""Placement groups of skewed operators: loads by hand, equal groups that change nothing, and the way back."""

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
from models.placement.graph.groups import GroupedDataflow, split_into, split_skewed
from models.placement.problem import Problem


def dataflow(*operators: tuple[int, float, float, float], partitioning: str = "hash") -> Dataflow:
    """Operators a, b, ... as (parallelism, cpu, io, net), in a row."""
    names = "abcd"[: len(operators)]
    return Dataflow.model_validate(
        {
            "operators": [
                {"name": n, "parallelism": p, "cpu": cpu, "io": io, "net": net, "memory_mb": 7}
                for n, (p, cpu, io, net) in zip(names, operators, strict=True)
            ],
            "edges": [{"from": a, "to": b, "partitioning": partitioning} for a, b in pairwise(names)],
        }
    )


def workers(count: int, slots: int) -> Cluster:
    return Cluster.model_validate({"count": count, "slots": slots})


def loads(grouped: GroupedDataflow) -> dict[str, tuple[int, float, float]]:
    return {o.name: (o.parallelism, o.cpu, o.net) for o in grouped.dataflow.operators}


def test_a_hot_task_gets_a_group_of_its_own():
    """b's four tasks take 10 in the mean, 40 together: half of it goes to task 2, a sixth to each other one."""
    grouped = split_skewed(dataflow((2, 1, 0, 8), (4, 10, 3, 6), (1, 0, 0, 0)), {"b": [1, 1, 3, 1]})
    assert loads(grouped) == {
        "a": (2, 1, 8),
        "b.g1": (1, 20, 12),
        "b.g2": (3, pytest.approx(20 / 3), pytest.approx(4)),
        "c": (1, 0, 0),
    }
    assert grouped.members["b.g1"] == ("b", (2,))
    assert grouped.members["b.g2"] == ("b", (0, 1, 3))
    assert {o.memory_mb for o in grouped.dataflow.operators} == {7}
    shares = {(e.upstream, e.downstream): e.share for e in grouped.dataflow.edges}
    assert shares == {("a", "b.g1"): 0.5, ("a", "b.g2"): 0.5, ("b.g1", "c"): 1.0, ("b.g2", "c"): 1.0}


@pytest.mark.parametrize("partitioning", ["rebalance", "broadcast"])
def test_records_are_even_where_the_partitioning_makes_them_even(partitioning: str):
    grouped = split_skewed(dataflow((2, 1, 0, 8), (4, 10, 3, 6), partitioning=partitioning), {"b": [1, 1, 3, 1]})
    assert [e.share for e in grouped.dataflow.edges] == [0.25, 0.75]


def test_traffic_to_a_hot_task_is_saved_by_being_beside_it():
    """a's only task sends 8: 4 to the hot task of b, 4 / 3 to each other one. Beside the hot one 4 leave, else 8 - 4 / 3."""
    grouped = split_skewed(dataflow((1, 0, 0, 8), (4, 1, 0, 0)), {"b": [3, 1, 1, 1]})
    problem = Problem.of(grouped.dataflow, workers(2, 4))
    assert worker_loads(problem, np.array([[1, 1, 0], [0, 0, 3]]))[2].tolist() == [4, 0]
    assert worker_loads(problem, np.array([[1, 0, 1], [0, 1, 2]]))[2].tolist() == pytest.approx([8 - 4 / 3, 0])


def test_without_skew_nothing_is_split():
    flow = dataflow((2, 1, 0, 8), (4, 10, 3, 6))
    assert split_skewed(flow, {}).dataflow == flow
    assert split_skewed(flow, {"a": [2, 2], "b": [1, 1.01, 0.99, 1]}).dataflow == flow
    assert loads(split_skewed(flow, {"b": [1, 1.01, 0.99, 1]}, tolerance=0.0))["b.g1"][0] == 1


def test_a_task_without_load_has_a_group_without_edge():
    grouped = split_skewed(dataflow((1, 1, 0, 8), (2, 10, 0, 0)), {"b": [1, 0]})
    assert loads(grouped) == {"a": (1, 1, 8), "b.g1": (1, 20, 0), "b.g2": (1, 0, 0)}
    assert [(e.downstream, e.share) for e in grouped.dataflow.edges] == [("b.g1", 1.0)]


def test_operators_joined_by_forward_edges_are_split_alike():
    """Only b is skewed, but task 0 of a sends to task 0 of b, and that one to task 0 of c."""
    flow = dataflow((3, 1, 0, 4), (3, 10, 0, 5), (3, 2, 0, 0), partitioning="forward")
    grouped = split_skewed(flow, {"b": [2, 1, 1]})
    assert [(e.upstream, e.downstream) for e in grouped.dataflow.edges] == [
        ("a.g1", "b.g1"),
        ("a.g2", "b.g2"),
        ("b.g1", "c.g1"),
        ("b.g2", "c.g2"),
    ]
    assert loads(grouped)["a.g1"] == (1, 1, 4)
    assert loads(grouped)["b.g1"] == (1, 15, 7.5)
    tuning = tune(grouped.dataflow, workers(3, 3))
    subtasks = grouped.merge_subtasks(tuning.placement, tuning.subtasks)
    for name in "abc":
        assert sorted(i for tasks in subtasks.values() for i in tasks.get(name, ())) == [0, 1, 2]
    assert tuning.cost.net == 0
    assert all(tasks.get("a") == tasks.get("b") == tasks.get("c") for tasks in subtasks.values())


def test_the_search_keeps_hot_tasks_of_two_operators_apart():
    """Two hot tasks of 9 and six of 1, on two workers of four slots: 9 + 3 on each is even."""
    flow = dataflow((4, 3, 0, 0), (4, 3, 0, 0))
    shares = {"a": [9, 1, 1, 1], "b": [1, 1, 1, 9]}
    grouped = split_skewed(flow, shares)
    result = place(grouped.dataflow, workers(2, 4))
    assert (result.cost.cpu, result.status) == (0, "optimal")
    placement = grouped.merge(result.placement)
    assert [sum(tasks.values()) for tasks in placement.values()] == [4, 4]
    assert sum(tasks.get("a", 0) for tasks in placement.values()) == 4
    subtasks = grouped.merge_subtasks(result.placement, result.subtasks)
    hot = [(0 in tasks.get("a", ()), 3 in tasks.get("b", ())) for tasks in subtasks.values()]
    assert sorted(hot) == [(False, True), (True, False)]


def test_groups_are_layers_of_their_own():
    """Four tasks on two workers of two slots: 1 plan while they are alike, 2 with two of them apart: {gg, hh}, {gh, gh}."""
    flow = dataflow((4, 3, 0, 0))
    assert count_plans(flow, workers(2, 2)) == 1
    assert count_plans(split_skewed(flow, {"a": [2, 2, 1, 1]}).dataflow, workers(2, 2)) == 2


@st.composite
def cases(draw: st.DrawFn) -> tuple[Dataflow, dict[str, list[list[int]]], Cluster, list[list[int]]]:
    """A dataflow with two downstream edges, groups of some operators, a cluster, and a worker for each task."""
    number, partitioning = st.integers(0, 9).map(float), st.sampled_from(["hash", "rebalance", "broadcast"])
    tasks = [draw(st.integers(1, 5)) for _ in "abc"]
    operators = [
        {"name": name, "parallelism": p, "cpu": draw(number), "io": draw(number), "net": draw(number)}
        for name, p in zip("abc", tasks, strict=True)
    ]
    share = draw(st.sampled_from([None, 0.25, 0.5]))
    pairs = (("a", "b", share), ("a", "c", None if share is None else 1 - share), ("b", "c", None))
    edges = [
        {"from": u, "to": v, "partitioning": draw(partitioning), **({} if s is None else {"share": s})}
        for u, v, s in pairs
    ]
    parts = {}
    for name, p in zip("abc", tasks, strict=True):
        if draw(st.booleans()):
            of = [draw(st.integers(0, 2)) for _ in range(p)]
            parts[name] = [[t for t in range(p) if of[t] == g] for g in sorted(set(of))]
    count = draw(st.integers(1, 4))
    placed = [[draw(st.integers(0, count - 1)) for _ in range(p)] for p in tasks]
    flow = Dataflow.model_validate({"operators": operators, "edges": edges})
    return flow, parts, workers(count, draw(st.integers(max(1, max(tasks)), sum(tasks)))), placed


@given(cases())
def test_equal_groups_change_no_cost(case: Any):
    flow, parts, cluster, placed = case
    if cluster.slots < flow.tasks:
        return
    whole = Problem.of(flow, cluster)
    grouped = split_into(flow, {}, parts)
    split = Problem.of(grouped.dataflow, cluster)
    count = len(cluster.workers)
    counts = np.array([[row.count(w) for row in placed] for w in range(count)])
    index = {name: i for i, name in enumerate("abc")}
    of_groups = np.array(
        [
            [sum(placed[index[operator]][t] == w for t in tasks) for operator, tasks in grouped.members.values()]
            for w in range(count)
        ]
    )
    assert split.least == pytest.approx(whole.least)
    assert split.most == pytest.approx(whole.most)
    assert costs(split, of_groups) == pytest.approx(costs(whole, counts), abs=1e-9)
    assert grouped.merge(split.placement(of_groups)) == whole.placement(counts)


@given(cases(), st.lists(st.integers(1, 9), min_size=5, max_size=5))
def test_skew_moves_load_between_tasks_and_adds_none(case: Any, weights: list[int]):
    flow = case[0]
    shares = {o.name: [float(w) for w in weights[: o.parallelism]] for o in flow.operators}
    grouped = split_skewed(flow, shares, tolerance=0.0)
    for o in flow.operators:
        own = [g for g in grouped.dataflow.operators if grouped.members[g.name][0] == o.name]
        assert sum(g.parallelism for g in own) == o.parallelism
        assert sum(g.parallelism * g.cpu for g in own) == pytest.approx(o.parallelism * o.cpu)
        assert sum(g.parallelism * g.net for g in own) == pytest.approx(o.parallelism * o.net)
        for g in own:
            for t in grouped.members[g.name][1]:
                share = weights[t] / sum(weights[: o.parallelism])
                assert g.cpu == pytest.approx(o.cpu * o.parallelism * share)


@pytest.mark.parametrize(
    ("shares", "tolerance", "message"),
    [
        ({"z": [1.0]}, 0.1, "'z' is none of them"),
        ({"a": [1.0]}, 0.1, "'a' has 2 tasks, but 1 load shares"),
        ({"a": [1.0, -1.0]}, 0.1, "'a' have -1.0"),
        ({"a": [1.0, float("nan")]}, 0.1, "'a' have nan"),
        ({"a": [0.0, 0.0]}, 0.1, "'a' sum to 0"),
        ({}, -0.1, "at least 0, but got -0.1"),
    ],
)
def test_wrong_shares_are_refused(shares: dict[str, list[float]], tolerance: float, message: str):
    with pytest.raises(InvalidInput, match=message):
        split_skewed(dataflow((2, 1, 0, 8), (4, 10, 3, 6)), shares, tolerance)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"z": [[0]]}, "'z' is none of them"),
        ({"a": [[0]]}, "each of its 2 tasks once"),
        ({"a": [[0, 1], []]}, "none be empty"),
        ({"a": [[0], [1]]}, "must be split alike"),
    ],
)
def test_wrong_groups_are_refused(parts: dict[str, list[list[int]]], message: str):
    with pytest.raises(InvalidInput, match=message):
        split_into(dataflow((2, 1, 0, 8), (2, 10, 3, 6), partitioning="forward"), {}, parts)


def test_a_name_that_a_group_needs_is_refused():
    flow = Dataflow.model_validate(
        {"operators": [{"name": n, "parallelism": 2, "cpu": 1, "io": 0, "net": 0} for n in ("a", "a.g2")]}
    )
    with pytest.raises(InvalidInput, match=r"'a.g2'; rename"):
        split_skewed(flow, {"a": [1, 2]})
