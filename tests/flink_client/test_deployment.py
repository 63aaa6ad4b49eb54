"""A running job compared with a plan."""

import pytest

from flink_client.deployment import RunningJob, RunningVertex, chained_operators, slots_needed


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


def test_vertices_of_a_group_share_slots() -> None:
    """Flink needs as many slots as the widest vertex of each group has tasks."""
    vertices = [("a", 2, "shared"), ("b", 3, "shared"), ("c", 4, "own")]
    job = RunningJob(
        "j", "j", tuple(RunningVertex(n, n, tasks, 128, group, ("tm1",) * tasks) for n, tasks, group in vertices)
    )
    assert slots_needed(job, {}) == 3 + 4
    assert slots_needed(job, {"a": 5, "c": 1}) == 5 + 1
