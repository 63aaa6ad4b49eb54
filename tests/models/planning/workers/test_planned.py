"""TaskManagers for a number of slots: what they have, and what they cost over its range."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from models.capacity.sizing import SlotsInterval
from models.cluster import Cluster, WorkerOffer
from models.errors import Infeasible
from models.plan.content import Plan
from models.plan.parts import SlotsNeeded
from models.planning.workers.planned import PlannedWorkers, resources_for
from models.resources.planned import Price

PLANS = Path(__file__).parents[3] / "data" / "plans"
SLOTS = SlotsInterval(value=10, low=7, high=19)


def cluster(**fields: Any) -> Cluster:
    return Cluster.model_validate({"count": 5, "slots": 4, "cores": 2, "memory_mb": 8192} | fields)


def test_cores_memory_and_price_of_given_workers() -> None:
    found = resources_for(cluster(price_per_hour=0.5), SLOTS, 4096)
    # 10 slots take 3 workers of 4, 7 take 2, 19 take 5.
    assert (found.task_managers, found.slots, found.cores, found.total_cores) == (3, 4, 2, 6)
    assert (found.memory_mb, found.total_memory_mb) == (4096, 12288)
    assert found.price == Price(per_hour=Decimal("1.5"), low=Decimal("1"), high=Decimal("2.5"))
    assert (found.kind, found.alternatives) == (None, ())


def test_a_plan_pays_for_the_workers_that_run_its_tasks() -> None:
    plan = Plan.model_validate_json((PLANS / "nexmark-q5-v1.json").read_text())
    assert (plan.total_slots, plan.task_slots, len(plan.placement)) == (34, 32, 9)
    needed = plan.model_copy(update={"slots_needed": SlotsNeeded(low=20, high=50)})
    workers = PlannedWorkers(cluster(count=20, price_per_hour=0.5), plan.memory_mb, ())
    found = workers.resources(needed)
    assert (found.task_managers, found.total_cores, found.total_memory_mb) == (9, 18, 9 * plan.memory_mb)
    # With the 2 tasks of the source: 22 slots take 6 workers, 52 take 13.
    assert found.price == Price(per_hour=Decimal("4.5"), low=Decimal("3"), high=Decimal("6.5"))
    assert workers.resources(plan).price == Price(per_hour=Decimal("4.5"), low=None, high=None)
    stated = {**plan.model_dump(), "cores_per_worker": 2, "resources": found}
    assert Plan.model_validate(stated).resources == found
    with pytest.raises(ValueError, match="resources must state the plan's TaskManagers"):
        Plan.model_validate(stated | {"resources": found.model_copy(update={"task_managers": 8})})


def test_nothing_is_said_of_money_where_a_price_is_missing() -> None:
    assert resources_for(cluster(), SLOTS, 4096).price is None
    one_unknown = [{"name": "a", "slots": 6, "price_per_hour": 1}, {"name": "b", "slots": 6}]
    assert resources_for(Cluster.model_validate({"workers": one_unknown}), SLOTS, 4096).price is None


def test_the_high_end_is_unknown_where_there_is_none_or_too_few_workers() -> None:
    endless = SlotsInterval(value=10, low=7, high=None)
    for slots in (endless, SLOTS.model_copy(update={"high": 21})):
        price = resources_for(cluster(price_per_hour=0.5), slots, 4096).price
        assert price is not None and (price.per_hour, price.low, price.high) == (Decimal("1.5"), Decimal("1"), None)


def test_workers_that_differ_are_added_up() -> None:
    workers = [
        {"name": "a", "slots": 8, "cores": 8, "price_per_hour": 0.7},
        {"name": "b", "slots": 4, "cores": 4, "price_per_hour": 0.4},
        {"name": "c", "slots": 4, "cores": 4, "price_per_hour": 0.4},
    ]
    found = resources_for(Cluster.model_validate({"workers": workers}), SLOTS, 4096)
    assert (found.task_managers, found.slots, found.cores, found.total_cores) == (2, None, None, 12)
    assert found.price == Price(per_hour=Decimal("1.1"), low=None, high=None)


def test_the_picked_kind_is_priced_over_the_range() -> None:
    kinds = [
        {"name": "small", "slots": 4, "cores": 4, "memory_mb": 8192, "price_per_hour": 0.25},
        {"name": "large", "slots": 16, "cores": 16, "memory_mb": 32768, "price_per_hour": 0.9, "count": 1},
    ]
    found = resources_for(WorkerOffer.model_validate({"kinds": kinds}), SLOTS, 8192)
    assert (found.kind, found.task_managers, found.total_cores, found.total_memory_mb) == ("small", 3, 12, 24576)
    assert found.price == Price(per_hour=Decimal("0.75"), low=Decimal("0.5"), high=Decimal("1.25"))
    assert [(a.kind, a.price_per_hour) for a in found.alternatives] == [
        ("small", Decimal("0.75")),
        ("large", Decimal("0.9")),
    ]


def test_the_slots_of_the_measured_task_manager_give_a_slot_its_share() -> None:
    kinds = [{"name": "small", "slots": 4, "memory_mb": 16384}]
    offer = WorkerOffer.model_validate({"kinds": kinds})
    assert resources_for(offer, SLOTS, 65536, slots_per_worker=16).memory_mb == 16384
    with pytest.raises(Infeasible, match="a worker has 16,384 MiB, but a TaskManager needs 65,536"):
        resources_for(offer, SLOTS, 65536)
    with pytest.raises(Infeasible, match="a worker has 16,384 MiB, but 4 slots need 32,768"):
        resources_for(offer, SLOTS, 65536, slots_per_worker=8)


def test_more_than_the_cluster_has_is_infeasible() -> None:
    with pytest.raises(Infeasible, match="21 task slots are needed, but cluster 'cluster' has 20"):
        resources_for(cluster(), SlotsInterval(value=21, low=7, high=None), 4096)
    with pytest.raises(
        Infeasible, match="of 4 slots needs 9,000 MiB, but worker 'tm-1' of cluster 'cluster' has 8,192"
    ):
        resources_for(cluster(), SLOTS, 9000)


def test_a_price_lies_within_its_range() -> None:
    with pytest.raises(ValueError, match="low <= per_hour <= high"):
        Price(per_hour=Decimal("1"), low=Decimal("2"), high=None)
