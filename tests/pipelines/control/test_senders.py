"""Which vertices send to which."""

from collections.abc import Sequence

import pytest

from flink_client.rest.answers import VertexEdge
from pipelines.control.senders import sole_senders


def edge(upstream: str, downstream: str, strategy: str = "HASH") -> VertexEdge:
    return VertexEdge(upstream, downstream, strategy)


@pytest.mark.parametrize(
    ("edges", "senders"),
    [
        pytest.param([edge("a", "b"), edge("b", "c", "FORWARD")], {"b": ["a"], "c": ["b"]}, id="a line"),
        pytest.param([edge("a", "c"), edge("b", "c", "REBALANCE")], {"c": ["a", "b"]}, id="a join"),
        pytest.param([edge("a", "b"), edge("a", "c"), edge("b", "d")], {"d": ["b"]}, id="two outputs count together"),
        pytest.param([edge("a", "b", "BROADCAST")], {}, id="all tasks get a copy"),
        pytest.param([edge("a", "c"), edge("b", "c", "BROADCAST")], {}, id="one input is a copy"),
        pytest.param([edge("a", "b"), edge("a", "b")], {}, id="joined with itself"),
    ],
)
def test_what_is_in_flight_is_known_where_all_of_it_is_sent_to_one_vertex_once(
    edges: Sequence[VertexEdge], senders: dict[str, list[str]]
) -> None:
    assert sole_senders(edges) == senders
