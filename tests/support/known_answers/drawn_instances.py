"""Parts of small placement instances, as hypothesis draws them."""

import itertools
from typing import Any

import hypothesis.strategies as st

from models.cluster import Cluster
from models.dataflow import Dataflow

LOADS = st.sampled_from([0.0, 1.0, 2.0, 5.0])


def draw_operators(
    draw: st.DrawFn, count: int, load: st.SearchStrategy[float] = LOADS, **others: st.SearchStrategy[Any]
) -> list[dict[str, Any]]:
    """Operators o0, o1, ... of 1 to 4 tasks, unless others are drawn."""
    fields = {"parallelism": st.integers(1, 4), **dict.fromkeys(("cpu", "io", "net"), load), **others}
    return [{"name": f"o{i}"} | {name: draw(values) for name, values in fields.items()} for i in range(count)]


def draw_edges(draw: st.DrawFn, count: int, *kinds: str) -> list[dict[str, str]]:
    """Any edges from an operator to a later one."""
    return [
        {"from": f"o{a}", "to": f"o{b}", "partitioning": draw(st.sampled_from(kinds))}
        for a, b in itertools.combinations(range(count), 2)
        if draw(st.booleans())
    ]


def edges_in_a_row(count: int, kind: str) -> list[dict[str, str]]:
    return [{"from": f"o{i}", "to": f"o{i + 1}", "partitioning": kind} for i in range(count - 1)]


def instance_of(
    operators: list[dict[str, Any]], edges: list[dict[str, str]], workers: list[dict[str, Any]]
) -> tuple[Dataflow, Cluster]:
    dataflow = Dataflow.model_validate({"operators": operators, "edges": edges})
    return dataflow, Cluster.model_validate({"workers": workers})
