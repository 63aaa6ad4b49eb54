"""The operators in the names of vertices, and the vertex of an operator."""

import pytest

from flink.server import word_count_plan
from flink_client.jobs.deployment import RunningVertex
from flink_client.jobs.operators import chained_operators, map_operators
from models.errors import InvalidInput


@pytest.mark.parametrize(
    ("vertex", "operators"),
    [
        ("count", ("count",)),
        ("Source: clicks -> parse -> Sink: out", ("clicks", "parse", "out")),
        ("a -> (b, c -> d)", ("a", "b", "c", "d")),
        ("a -> (b -> (c, d), e)", ("a", "b", "c", "d", "e")),
        ("Source: events[1] -> Calc[2] -> bids[3]: Writer", ("events", "Calc", "bids")),
        ("bids[3]: Committer", ("bids[3]: Committer",)),
        # What is in the brackets of a description is no operator.
        ("Calc(select=[a, count]) -> out", ("Calc(select=[a, count])", "out")),
    ],
)
def test_the_chain_is_read_from_the_name_of_a_vertex(vertex: str, operators: tuple[str, ...]) -> None:
    assert chained_operators(vertex) == operators


def running(*names: str) -> tuple[RunningVertex, ...]:
    """Vertices with the ids 0, 1, ... and these names."""
    return tuple(RunningVertex(str(i), name, 1, 128, "shared", ("tm1",)) for i, name in enumerate(names))


PLAN = word_count_plan({"tm1": {"source": 1, "flatmap": 1, "count": 1}})


@pytest.mark.parametrize(
    ("flink_name", "vertex"),
    [
        ("Source: card transactions -> parse", "0"),
        ("Source: card transactions", "0"),
        ("card transactions", "0"),
        ("parse", "0"),
        ("Keyed Aggregation, per user", "1"),
        ("2", "2"),  # a vertex id
        ("sum", "3"),  # the whole name of a vertex counts before a part of a chain
        ("Calc[7]", "4"),  # and the literal part before the one without SQL's number
        ("Calc[8]", "5"),
    ],
)
def test_an_operator_is_found_by_its_name_in_flink(flink_name: str, vertex: str) -> None:
    vertices = running(
        "Source: card transactions -> parse",
        "Keyed Aggregation, per user",
        "Map -> sum",
        "sum",
        "flatmap -> Calc[7]",
        "count -> Calc[8]",
    )
    assert map_operators(PLAN.parallelism, vertices, {"source": flink_name}) == {
        "source": vertex,
        "flatmap": "4",
        "count": "5",
    }


@pytest.mark.parametrize(
    ("names", "flink_name", "message"),
    [
        (
            ("Source: source", "flatmap", "count"),
            "card transactions",
            "which Flink calls 'card transactions', is in no",
        ),
        (("Source: a b", "Source: a b", "flatmap", "count"), "a b", "which Flink calls 'a b', is in 2 vertices"),
        (("Source: a b", "a b -> flatmap -> count"), None, "operator 'source' of the plan is in no vertex"),
    ],
)
def test_an_operator_that_flink_does_not_have_once_is_refused_with_the_ways_to_name_it(
    names: tuple[str, ...], flink_name: str | None, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message) as refused:
        map_operators(PLAN.parallelism, running(*names), {} if flink_name is None else {"source": flink_name})
    assert "flink_name" in str(refused.value) and "--vertices" in str(refused.value)
