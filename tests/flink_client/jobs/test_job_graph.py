"""Plans of jobs/nexmark-q3.sql and q5 without chaining, as Flink 1.20.5 answers POST /jars/:id/plan."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flink_client.jobs.job_graph import read_job, vertices_of
from flink_client.rest.answers import Vertex, VertexEdge, graph
from models.dataflow import Partitioning
from models.errors import InvalidInput
from models.job import Job, Kind
from pipelines.inputs.catalogue import load_job


@pytest.fixture
def plans(root: Path) -> dict[str, Any]:
    return dict(json.loads((root / "tests" / "data" / "flink" / "sql-plans.json").read_text()))


@pytest.fixture
def q3(plans: dict[str, Any]) -> tuple[tuple[Vertex, ...], tuple[VertexEdge, ...]]:
    return graph(plans["q3"])


def _stages(job: Job, vertices: dict[str, Vertex]) -> dict[str, str]:
    return {name: vertices[name].name.split("]:")[-1].split("(")[0].strip() for name in job.order}


def test_operators_of_the_catalogue_have_their_vertices(plans: dict[str, Any]) -> None:
    job = load_job("nexmark-q5")
    found = vertices_of(job, *graph(plans["q5"]))
    assert _stages(job, found) == {
        "source": "TableSourceScan",
        "bids": "Calc",
        "count-window": "GroupWindowAggregate",
        "counts": "Calc",
        "counts-for-max": "Calc",
        "max": "GroupAggregate",
        "maxima": "Calc",
        "join": "Join",
        "hot-items": "Calc",
        "sink": "Writer",
    }
    assert "MAX" not in found["counts-for-max"].name and "maxnum" in found["maxima"].name
    assert len({v.id for v in found.values()}) == len(job.operators)


@pytest.mark.parametrize("query", ["q3", "q5"])
def test_a_source_without_a_number_comes_before_those_that_read_it(plans: dict[str, Any], query: str) -> None:
    """Flink 2.3 numbers no sources; its plans are those of 1.20 otherwise."""
    vertices, edges = graph(plans[query])
    unnumbered = [replace(v, name=re.sub(r"^\[\d+\]:(?=TableSourceScan)", "", v.name)) for v in vertices]
    assert sum(a.name != b.name for a, b in zip(vertices, unnumbered, strict=True)) == 1
    expected, found = (read_job(query, given, edges) for given in (vertices, list(reversed(unnumbered))))
    assert found.order == expected.order and found.edges == expected.edges


def test_operators_that_look_alike_are_reported_apart_by_their_order(
    q3: tuple[tuple[Vertex, ...], tuple[VertexEdge, ...]],
) -> None:
    found = vertices_of(load_job("nexmark-q3"), *q3)
    assert "category" in found["auctions"].name and "Sarg" in found["persons"].name


def test_a_job_that_is_not_the_sql_is_refused_with_what_flink_has(
    q3: tuple[tuple[Vertex, ...], tuple[VertexEdge, ...]],
) -> None:
    for other in ("nexmark-q11", "nexmark-q5"):
        with pytest.raises(InvalidInput, match=r"events -> calc-1 \(rebalance\).*calc-1 -> join \(hash\)"):
            vertices_of(load_job(other), *q3)


def test_a_graph_is_read_as_a_job(q3: tuple[tuple[Vertex, ...], tuple[VertexEdge, ...]]) -> None:
    job = read_job("q3", *q3)
    assert job.order == ("events", "calc-1", "calc-2", "join", "calc-3", "local_items")
    assert [o.name for o in job.sources] == ["events"]
    assert job.operator("local_items").kind is Kind.SINK
    edges = {(e.upstream, e.downstream): e.partitioning for e in job.edges}
    assert edges == {
        ("events", "calc-1"): Partitioning.REBALANCE,
        ("events", "calc-2"): Partitioning.REBALANCE,
        ("calc-1", "join"): Partitioning.HASH,
        ("calc-2", "join"): Partitioning.HASH,
        ("join", "calc-3"): Partitioning.REBALANCE,
        ("calc-3", "local_items"): Partitioning.REBALANCE,
    }
    assert job.operator("join").state is not None and job.operator("calc-1").state is None


def test_vertices_without_numbers_keep_their_order() -> None:
    vertices = [Vertex("a", "Source: words", 1, 0), Vertex("b", "Flat Map", 1, 0), Vertex("c", "Flat Map", 1, 0)]
    edges = [VertexEdge("a", "b", "FORWARD"), VertexEdge("b", "c", "BROADCAST")]
    job = read_job("words", vertices, edges)
    assert job.order == ("words", "flat-map-1", "flat-map-2")
    assert [e.partitioning for e in job.edges] == [Partitioning.REBALANCE, Partitioning.BROADCAST]
    assert [o.flink_name for o in job.operators] == [None, "Flat Map", "Flat Map"]


def test_what_takes_all_records_in_one_task_gets_no_more() -> None:
    """As `SELECT COUNT(*)` without a key."""
    vertices = [Vertex(id_, id_, 1, 0) for id_ in ("source", "count", "sink")]
    edges = [VertexEdge("source", "count", "GLOBAL"), VertexEdge("count", "sink", "FORWARD")]
    job = read_job("all", vertices, edges)
    assert {o.name: job.most_tasks(o.name) for o in job.operators} == {"source": None, "count": 1, "sink": None}


def test_operators_of_a_jar_are_called_as_its_program_names_them() -> None:
    names = [
        "Source: example.Fed(words)",
        "long-words",
        "Keyed Aggregation",
        "the 2 hottest (by hour)",
        "nowhere: Writer",
    ]
    vertices = [Vertex(str(i), name, 1, 0) for i, name in enumerate(names)]
    edges = [VertexEdge(str(i), str(i + 1), "FORWARD") for i in range(4)]
    job = read_job("words", vertices, edges, [re.compile(r"example\.Fed\((.+?)\)")])
    assert job.order == ("words", "long-words", "keyed-aggregation", "the-2-hottest", "nowhere")
    # The source of the testbed has another name than the user's; the others have theirs where they run.
    assert job.flink_names == {"keyed-aggregation": "Keyed Aggregation", "the-2-hottest": "the 2 hottest (by hour)"}


def test_what_flink_calls_the_vertices_of_sql_is_not_in_its_plan(
    q3: tuple[tuple[Vertex, ...], tuple[VertexEdge, ...]],
) -> None:
    assert read_job("q3", *q3).flink_names == {}
