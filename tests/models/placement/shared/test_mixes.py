"""Which tasks share a slot."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.dataflow import Dataflow
from models.placement.shared.mixes import Bundle, by_load, candidates, nested, round_robin
from models.placement.shared.sharing import SharedDataflow
from models.vertices import JobVertex

ABC = [("a", 4, 1.0, 0.0, 0.0), ("b", 2, 1.0, 0.0, 0.0), ("c", 2, 1.0, 0.0, 0.0)]


def test_flinks_default_puts_subtask_i_of_each_vertex_into_slot_i(share):
    assert set(nested(share(ABC))) == {Bundle(("a", "b", "c"), 2), Bundle(("a",), 2)}


def test_round_robin_goes_on_after_the_last_narrow_vertex(share):
    # b takes slots 0 and 1, c goes on with 2 and 3
    assert set(round_robin(share(ABC))) == {Bundle(("a", "b"), 2), Bundle(("a", "c"), 2)}


def test_round_robin_starts_over_at_the_end(share):
    rows = [("a", 3, 1.0, 0, 0), ("b", 2, 1.0, 0, 0), ("c", 2, 1.0, 0, 0)]
    # b in 0 and 1, c in 2 and 0
    assert set(round_robin(share(rows))) == {Bundle(("a", "b", "c"), 1), Bundle(("a", "b"), 1), Bundle(("a", "c"), 1)}


def test_by_load_keeps_heavy_tasks_apart(share):
    rows = [("a", 4, 1.0, 0, 0), ("light", 2, 1.0, 0, 0), ("heavy", 2, 9.0, 0, 0), ("middle", 1, 5.0, 0, 0)]
    # heavy takes 0 and 1, middle 2, the two light ones 3 and then 2, which are the least loaded of all
    assert set(by_load(share(rows), (1, 0, 0))) == {
        Bundle(("a", "heavy"), 2),
        Bundle(("a", "light", "middle"), 1),
        Bundle(("a", "light"), 1),
    }


def test_forward_pairs_share_their_slots(share):
    rows = [("a", 4, 1.0, 0, 0), ("b", 2, 1.0, 0, 1.0), ("c", 2, 1.0, 0, 0)]
    mix = by_load(share(rows, [("a", "b", "hash"), ("b", "c", "forward")]), (1, 0, 0))
    assert set(mix) == {Bundle(("a", "b", "c"), 2), Bundle(("a",), 2)}


def test_groups_share_no_slot(share):
    found = nested(share(ABC, groups={"c": "out"}))
    assert set(found) == {Bundle(("a", "b"), 2), Bundle(("a",), 2), Bundle(("c",), 2)}


def test_equal_mixes_are_placed_once(share):
    assert list(candidates(share([("a", 2, 1.0, 0, 0), ("b", 2, 1.0, 0, 0)]))) == ["nested"]


def test_a_chain_must_have_equal_parallelism():
    from models.errors import InvalidInput

    flow = Dataflow.model_validate(
        {"operators": [{"name": n, "parallelism": p, "cpu": 1, "io": 0, "net": 0} for n, p in (("a", 2), ("b", 3))]}
    )
    with pytest.raises(InvalidInput, match="a 2, b 3"):
        SharedDataflow.of(flow, [JobVertex(operators=("a", "b"))])


def test_a_chain_has_the_load_of_its_operators_and_sends_what_leaves_it():
    flow = Dataflow.model_validate(
        {
            "operators": [
                {"name": "source", "parallelism": 2, "cpu": 1, "io": 0, "net": 100, "memory_mb": 10},
                {"name": "map", "parallelism": 2, "cpu": 2, "io": 5, "net": 30, "memory_mb": 10},
                {"name": "sink", "parallelism": 4, "cpu": 1, "io": 0, "net": 0, "memory_mb": 10},
            ],
            "edges": [
                {"from": "source", "to": "map", "partitioning": "forward"},
                {"from": "map", "to": "sink", "partitioning": "hash"},
            ],
        }
    )
    shared = SharedDataflow.of(flow, [JobVertex(operators=("source", "map")), JobVertex(operators=("sink",))])
    chain = shared.dataflow.operators[0]
    assert (chain.name, chain.cpu, chain.io, chain.net, chain.memory_mb) == ("source", 3, 5, 30, 10)
    assert [(e.upstream, e.downstream, e.partitioning) for e in shared.dataflow.edges] == [("source", "sink", "hash")]
    assert shared.slots == 6  # without groups, a slot for each task
    assert shared.by_operator({"w": {"source": 1}}) == {"w": {"source": 1, "map": 1}}


def test_edges_of_a_fork_to_one_vertex_are_joined():
    names = ("source", "left", "right", "join")
    flow = Dataflow.model_validate(
        {
            "operators": [
                {"name": n, "parallelism": 1, "cpu": 1, "io": 0, "net": net}
                for n, net in zip(names, (100, 30, 10, 0), strict=True)
            ],
            "edges": [
                {"from": "source", "to": "left", "partitioning": "forward"},
                {"from": "source", "to": "right", "partitioning": "forward"},
                {"from": "left", "to": "join", "partitioning": "hash"},
                {"from": "right", "to": "join", "partitioning": "forward"},
            ],
        }
    )
    shared = SharedDataflow.of(flow, [JobVertex(operators=names[:3]), JobVertex(operators=("join",))])
    assert shared.dataflow.operators[0].net == 40
    assert [(e.partitioning, e.share) for e in shared.dataflow.edges] == [("hash", 1.0)]


@given(st.lists(st.tuples(st.integers(1, 6), st.sampled_from("ab")), min_size=1, max_size=6))
def test_every_mix_has_each_task_once_in_as_many_slots_as_the_widest_vertices_need(drawn):
    flow = Dataflow.model_validate(
        {
            "operators": [
                {"name": f"o{i}", "parallelism": p, "cpu": i + 1, "io": 0, "net": 0} for i, (p, _) in enumerate(drawn)
            ]
        }
    )
    shared = SharedDataflow.of(
        flow, [JobVertex(operators=(f"o{i}",), slot_sharing_group=g) for i, (_, g) in enumerate(drawn)]
    )
    assert shared.slots == sum(max((p for p, g in drawn if g == group), default=0) for group in "ab")
    for mix in (nested(shared), round_robin(shared), by_load(shared, (1, 1, 1))):
        assert sum(b.slots for b in mix) == shared.slots
        for i, (p, _) in enumerate(drawn):
            assert sum(b.slots for b in mix if f"o{i}" in b.vertices) == p
        assert all(len({shared.group_of[v] for v in b.vertices}) == 1 for b in mix)
