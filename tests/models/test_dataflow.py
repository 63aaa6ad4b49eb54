from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from models.dataflow import Dataflow, Edge, Partitioning, topological_order
from models.errors import InvalidInput


def edge(upstream: str, downstream: str, partitioning: str = "hash") -> Edge:
    return Edge.model_validate({"from": upstream, "to": downstream, "partitioning": partitioning})


def graph(**fields: Any) -> dict[str, Any]:
    """The example of the format: Q1-sliding of CAPSys."""
    return {
        "name": "q1-sliding",
        "operators": [
            {"name": "source", "parallelism": 2, "cpu": 0.06, "io": 0.0, "net": 1880.0},
            {"name": "window", "parallelism": 8, "cpu": 0.74, "io": 17067.0, "net": 361.0, "memory_mb": 158},
        ],
        "edges": [{"from": "source", "to": "window", "partitioning": "hash"}],
        **fields,
    }


def test_the_example_of_the_format_is_read() -> None:
    dataflow = Dataflow.model_validate(graph())
    assert dataflow.tasks == 10
    assert dataflow.operators[1].memory_mb == 158 and dataflow.operators[0].memory_mb == 0
    assert dataflow.edges[0].partitioning is Partitioning.HASH and dataflow.edges[0].share == 1.0


def test_aliases_are_written_back() -> None:
    dataflow = Dataflow.model_validate(graph())
    assert dataflow.model_dump(mode="json", by_alias=True)["edges"] == [
        {"from": "source", "to": "window", "partitioning": "hash", "share": 1.0}
    ]
    assert Dataflow.model_validate_json(dataflow.model_dump_json(by_alias=True)) == dataflow


def test_a_forward_edge_needs_equal_parallelism() -> None:
    with pytest.raises(
        ValidationError, match="'source' has 2 tasks and 'window' has 8; make them equal, or use rebalance"
    ):
        Dataflow.model_validate(graph(edges=[{"from": "source", "to": "window", "partitioning": "forward"}]))


def test_operators_without_edges_are_a_dataflow() -> None:
    assert Dataflow.model_validate(graph(edges=[])).tasks == 10


@pytest.mark.parametrize(
    ("field", "value"),
    [("parallelism", 0), ("parallelism", 1.5), ("cpu", -0.1), ("io", float("inf")), ("net", float("nan")), ("cpus", 1)],
)
def test_a_wrong_load_is_refused(field: str, value: float) -> None:
    operator = {**graph()["operators"][0], field: value}
    with pytest.raises(ValidationError, match=field):
        Dataflow.model_validate(graph(operators=[operator], edges=[]))


def test_ties_keep_the_given_order() -> None:
    assert topological_order(["d", "c", "b", "a"], [edge("a", "d")]) == ["c", "b", "a", "d"]


@pytest.mark.parametrize(
    ("operators", "edges", "message"),
    [
        (["a", "b", "a"], [], "'a' appears 2 times"),
        (["a", "b"], [edge("a", "x")], "names the operator 'x', which does not exist; known operators: a, b"),
        (["a", "b"], [edge("a", "b"), edge("a", "b", "rebalance")], "'a' -> 'b' appears twice"),
        (["a", "b", "c"], [edge("a", "b"), edge("b", "c"), edge("c", "a")], "a -> b -> c -> a is one; remove one"),
        (["a"], [edge("a", "a")], "a -> a is one"),
    ],
)
def test_an_invalid_dataflow_is_refused_with_the_reason(operators: list[str], edges: list[Edge], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        topological_order(operators, edges)


@given(
    st.integers(2, 12).flatmap(
        lambda n: st.tuples(st.permutations(range(n)), st.sets(st.tuples(*[st.integers(0, n - 1)] * 2)))
    )
)
def test_every_edge_points_forward(drawn: tuple[list[int], set[tuple[int, int]]]) -> None:
    """Edges of a random acyclic graph over shuffled names."""
    names, pairs = [f"o{i}" for i in drawn[0]], drawn[1]
    edges = [edge(f"o{a}", f"o{b}") for a, b in pairs if a < b]
    order = topological_order(names, edges)
    assert sorted(order) == sorted(names)
    assert all(order.index(e.upstream) < order.index(e.downstream) for e in edges)
