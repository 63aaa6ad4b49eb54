"""Slot sharing: more slots for the search, and Flink's count of those a placement takes."""

import pytest

from models.cluster import Cluster
from models.dataflow import Dataflow
from models.errors import InvalidInput
from models.placement import place
from models.placement.graph.slot_sharing import slots_taken, with_shared_slots

FLOW = Dataflow.model_validate(
    {
        "operators": [
            {"name": name, "parallelism": 4, "cpu": cpu, "io": 0, "net": 0}
            for name, cpu in (("source", 1), ("window", 3), ("sink", 0))
        ],
    }
)
TWO_BY_TWO = Cluster.model_validate({"count": 2, "slots": 2, "cores": 4})


def test_a_shared_slot_holds_one_task_of_each_operator():
    assert [w.slots for w in with_shared_slots(TWO_BY_TWO, FLOW).workers] == [6, 6]
    assert [w.slots for w in with_shared_slots(TWO_BY_TWO, FLOW, {"sink": "own"}).workers] == [4, 4]
    assert [w.cores for w in with_shared_slots(TWO_BY_TWO, FLOW).workers] == [4, 4]


def test_twelve_tasks_fit_four_shared_slots():
    result = place(FLOW, with_shared_slots(TWO_BY_TWO, FLOW))
    assert result.cost.cpu == 0
    assert sum(sum(tasks.values()) for tasks in result.placement.values()) == 12
    assert slots_taken({"tm-1": {"source": 2, "window": 2, "sink": 2}}, FLOW) == {"tm-1": 2}


def test_groups_share_no_slot():
    placement = {"tm-1": {"source": 2, "window": 1, "sink": 3}, "tm-2": {"sink": 1}}
    assert slots_taken(placement, FLOW) == {"tm-1": 3, "tm-2": 1}
    assert slots_taken(placement, FLOW, {"sink": "own"}) == {"tm-1": 2 + 3, "tm-2": 1}
    apart = {"source": "a", "window": "b", "sink": "c"}
    assert slots_taken(placement, FLOW, apart) == {"tm-1": 6, "tm-2": 1}
    assert with_shared_slots(TWO_BY_TWO, FLOW, apart) == TWO_BY_TWO


def test_an_unknown_operator_is_refused():
    with pytest.raises(InvalidInput, match="'map' is none of them"):
        with_shared_slots(TWO_BY_TWO, FLOW, {"map": "own"})
