from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from models.job import Job
from models.vertices import JobVertex, slots_by_group
from pipelines.store.digests import digest

EDGES = {"source": [], "parse": ["source forward"], "count": ["parse hash"], "sink": ["count forward"]}


def job(vertices: list[dict[str, Any]], edges: dict[str, list[str]] = EDGES) -> Job:
    """source -> parse (forward), parse -> count (hash), count -> sink (forward)."""
    kinds = {"source": "source", "sink": "sink"}
    return Job.model_validate(
        {
            "name": "j",
            "description": "A job.",
            "figures_from": "assumed: test",
            "operators": [
                {"name": n, "kind": kinds.get(n, "operator"), "cost": {"cpu_s": 1e-6}, "figures_from": "assumed: test"}
                for n in edges
            ],
            "edges": [
                {"from": one.split()[0], "to": name, "partitioning": one.split()[1]}
                for name, into in edges.items()
                for one in into
            ],
            "vertices": vertices,
        }
    )


def groups(j: Job) -> dict[tuple[str, ...], str | None]:
    return {v.operators: v.slot_sharing_group for v in j.deployed_vertices}


def test_without_vertices_each_operator_is_one_with_slots_of_its_own() -> None:
    assert groups(job([])) == {("source",): None, ("parse",): None, ("count",): None, ("sink",): None}


def test_an_operator_that_no_vertex_lists_is_one_of_its_own() -> None:
    found = groups(job([{"operators": ["source", "parse"]}]))
    assert found == {("source", "parse"): None, ("count",): None, ("sink",): None}


def test_where_one_vertex_names_a_group_the_others_are_in_the_default_group() -> None:
    found = groups(job([{"operators": ["count", "sink"], "slot_sharing_group": "heavy"}]))
    assert found == {("source",): "default", ("parse",): "default", ("count", "sink"): "heavy"}


def test_vertices_change_no_digest_of_a_job_and_so_repeat_no_measurement() -> None:
    assert "vertices" not in job([]).model_dump(mode="json")
    stated = job([{"operators": ["source"]}])
    assert "vertices" in stated.model_dump(mode="json")
    assert digest(stated) == digest(job([]))


@pytest.mark.parametrize(
    ("vertices", "message"),
    [
        ([["source", "parce"]], "'parce' is none; known operators: source, parse, count, sink"),
        ([["source", "parse"], ["parse"]], "'parse' is listed 2 times"),
        ([["parse", "count"]], r"the inputs of 'count' are parse \(hash\)"),
        ([["parse", "source"]], "the inputs of 'source' are none"),
        ([["parse", "sink"]], r"ahead of it in its vertex \(parse\), but the inputs of 'sink' are count \(forward\)"),
    ],
)
def test_a_chain_that_flink_could_not_make_is_refused(vertices: list[list[str]], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        job([{"operators": operators} for operators in vertices])


def test_an_operator_of_two_inputs_is_not_chained() -> None:
    edges = {**EDGES, "sink": ["count forward", "parse forward"]}
    with pytest.raises(ValidationError, match=r"are count \(forward\), parse \(forward\)"):
        job([{"operators": ["count", "sink"]}], edges)


def test_a_chain_that_forks_is_accepted() -> None:
    edges = {"source": [], "left": ["source forward"], "right": ["source forward"], "sink": ["left hash", "right hash"]}
    assert len(job([{"operators": ["source", "left", "right"]}], edges).deployed_vertices) == 2


def test_a_group_takes_the_slots_of_its_widest_vertex() -> None:
    vertices = job(
        [
            {"operators": ["source", "parse"], "slot_sharing_group": "default"},
            {"operators": ["sink"], "slot_sharing_group": "out"},
        ]
    ).deployed_vertices
    parallelism = {"source": 2, "parse": 2, "count": 5, "sink": 3}
    assert slots_by_group(vertices, parallelism) == {"default": 5, "out": 3}


def test_without_groups_every_task_takes_a_slot() -> None:
    vertices = job([{"operators": ["source", "parse"]}]).deployed_vertices
    found = slots_by_group(vertices, {"source": 2, "parse": 2, "count": 5, "sink": 3})
    assert found == {"source": 2, "count": 5, "sink": 3}


@given(
    st.lists(st.tuples(st.integers(1, 50), st.sampled_from([None, "a", "b", "default"])), min_size=1, max_size=8),
)
def test_no_job_takes_more_slots_than_it_has_tasks(drawn: list[tuple[int, str | None]]) -> None:
    vertices = [JobVertex(operators=(f"o{i}",), slot_sharing_group=group) for i, (_, group) in enumerate(drawn)]
    parallelism = {f"o{i}": tasks for i, (tasks, _) in enumerate(drawn)}
    slots = slots_by_group(vertices, parallelism)
    assert max(parallelism.values()) <= sum(slots.values()) <= sum(parallelism.values())
