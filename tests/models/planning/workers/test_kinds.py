"""The worker kind of the least price: by hand, and against trying every number of every kind."""

import random
from decimal import Decimal
from typing import Any

import pytest

from models.cluster import WorkerKind, WorkerOffer
from models.errors import Infeasible
from models.planning.workers.kinds import Need, pick_kind


def offer(*kinds: dict[str, Any]) -> WorkerOffer:
    return WorkerOffer.model_validate({"name": "cloud", "kinds": kinds})


SMALL = {"name": "small", "slots": 4, "cores": 4, "memory_mb": 16384, "price_per_hour": 0.25}
LARGE = {"name": "large", "slots": 16, "cores": 16, "memory_mb": 65536, "price_per_hour": 0.9}
CLOUD = offer(SMALL, LARGE)


def need(tasks: int, memory_mb: float = 65536, slots_per_worker: int | None = 16, busy_cores: float = 0.0) -> Need:
    return Need(tasks, memory_mb, slots_per_worker, busy_cores)


@pytest.mark.parametrize(
    ("tasks", "kind", "count", "price"),
    [
        (12, "small", 3, "0.75"),  # one large costs 0.9
        (16, "large", 1, "0.9"),  # four small cost 1.0
        (20, "small", 5, "1.25"),  # two large cost 1.8
        (32, "large", 2, "1.8"),  # eight small cost 2.0
    ],
)
def test_the_cheapest_kind_by_hand(tasks: int, kind: str, count: int, price: str) -> None:
    picked = pick_kind(CLOUD, need(tasks))
    assert (picked.kind.name, picked.count) == (kind, count)
    assert picked.alternatives[0].price_per_hour == Decimal(price)


def test_prices_are_added_up_exactly() -> None:
    # 3 x 0.1 is 0.30000000000000004 in binary.
    (only,) = pick_kind(offer({"name": "a", "slots": 1, "price_per_hour": 0.1}), need(3, 1024, 1)).alternatives
    assert only.price_per_hour == Decimal("0.3") and only.model_dump(mode="json")["price_per_hour"] == 0.3


def test_too_few_workers_and_too_little_memory_rule_a_kind_out_and_are_stated() -> None:
    few = {**SMALL, "count": 2}
    lean = {**LARGE, "name": "lean", "memory_mb": 32768, "price_per_hour": 0.1}
    picked = pick_kind(offer(few, lean, LARGE), need(12))
    assert (picked.kind.name, picked.count) == ("large", 1)
    why_not = {a.kind: (a.task_managers, a.price_per_hour, a.why_not) for a in picked.alternatives}
    assert why_not == {
        "large": (1, Decimal("0.9"), None),
        "small": (None, None, "its 2 workers have 8 slots"),
        "lean": (None, None, "a worker has 32,768 MiB, but 16 slots need 65,536"),
    }
    assert picked.reason == (
        "1 TaskManager of kind large holds 12 tasks, sources included, for 0.90 USD per hour, the least of what was offered "
        "(small cannot: its 2 workers have 8 slots; lean cannot: a worker has 32,768 MiB, but 16 slots need 65,536)"
    )


def test_cores_that_the_tasks_keep_busy_are_counted() -> None:
    # 16 tasks keep 12 cores busy: 6 workers of 2 cores at 0.2, or one of 16 cores at 0.9.
    weak = {"name": "weak", "slots": 16, "cores": 2, "price_per_hour": 0.2}
    assert pick_kind(offer(weak, LARGE), need(16, busy_cores=1.5)).kind.name == "weak"
    picked = pick_kind(offer(weak, LARGE), need(16, busy_cores=12.0))
    assert [(a.kind, a.task_managers, a.price_per_hour) for a in picked.alternatives] == [
        ("large", 1, Decimal("0.9")),
        ("weak", 6, Decimal("1.2")),
    ]
    with pytest.raises(Infeasible, match="weak: its 5 workers have 10 cores, but the tasks keep 12 busy"):
        pick_kind(offer({**weak, "count": 5}), need(16, busy_cores=12.0))


def test_of_equal_prices_the_fewest_workers_then_the_first() -> None:
    ones = {"name": "ones", "slots": 1, "price_per_hour": 0.1}
    fours = {"name": "fours", "slots": 4, "price_per_hour": 0.4}
    again = {"name": "again", "slots": 4, "price_per_hour": 0.4}
    assert [a.kind for a in pick_kind(offer(ones, fours, again), need(8, 1024, 1)).alternatives] == [
        "fours",
        "again",
        "ones",
    ]


def test_a_lone_kind_needs_no_price() -> None:
    picked = pick_kind(offer({"name": "own", "slots": 4}), need(9))
    assert (picked.count, picked.alternatives[0].price_per_hour) == (3, None)
    assert picked.reason == "3 TaskManagers of kind own hold 9 tasks, sources included"


def test_a_task_manager_has_the_measured_memory_for_each_of_its_slots() -> None:
    assert pick_kind(offer(LARGE), need(16)).memory_mb == 65536  # as measured
    assert pick_kind(offer({"name": "any", "slots": 32}), need(16)).memory_mb == 131072
    # 2048 MiB of 4 slots: (2048 - 256 - 204.8) / 4 = 396.8 for one, and 256 + 192 for the JVM make 844.8.
    assert pick_kind(offer({"name": "one", "slots": 1}), need(1, 2048, 4)).memory_mb == 845
    assert pick_kind(offer({"name": "one", "slots": 1, "memory_mb": 600}), need(1, 2048, 4)).memory_mb == 600
    # However many slots: what was asked for.
    assert pick_kind(offer(SMALL), need(16, 8192, None)).memory_mb == 8192


def test_without_any_kind_each_says_why() -> None:
    with pytest.raises(
        Infeasible, match=r"'cloud' holds 12 tasks, .*: small: its 2 workers have 8 slots; lean: a worker has"
    ):
        pick_kind(offer({**SMALL, "count": 2}, {**LARGE, "name": "lean", "memory_mb": 1024}), need(12))


def test_against_every_number_of_every_kind() -> None:
    rng = random.Random(8)
    infeasible = 0
    for _ in range(400):
        kinds = [
            {
                "name": f"k{i}",
                "slots": rng.randint(1, 9),
                "cores": rng.choice([None, 1, 2, 4.5]),
                "memory_mb": rng.choice([None, 2048, 4096, 8192]),
                "count": rng.choice([None, None, 1, 3, 8]),
                "price_per_hour": rng.randint(0, 12) / 10,
            }
            for i in range(rng.randint(1, 5))
        ]
        offered = offer(*kinds)
        wanted = need(rng.randint(1, 40), rng.choice([2048, 4096]), rng.randint(1, 4), rng.choice([0.0, 3.0, 9.0]))
        tried = [
            count * kind.price_per_hour
            for kind in offered.kinds
            for count in range(1, min(kind.most, 40) + 1)
            if _holds(kind, count, wanted)
        ]
        if not tried:
            infeasible += 1
            with pytest.raises(Infeasible):
                pick_kind(offered, wanted)
            continue
        picked = pick_kind(offered, wanted)
        assert picked.count * picked.kind.price_per_hour == min(tried)
        assert _holds(picked.kind, picked.count, wanted)
    assert 20 < infeasible < 200


def _holds(kind: WorkerKind, count: int, wanted: Need) -> bool:
    """What `pick_kind` promises, in other words: a slot, memory and CPU for every task, with the workers there are."""
    memory = kind.memory_mb is None or kind.memory_mb / kind.slots >= wanted.memory_mb / wanted.slots_per_worker
    cores = kind.cores is None or count * kind.cores >= wanted.busy_cores
    return memory and cores and count * kind.slots >= wanted.tasks and (kind.count is None or count <= kind.count)


def test_a_mix_saves_less_than_one_worker_of_the_kind_that_is_cheapest_by_slot() -> None:
    rng = random.Random(3)
    for _ in range(200):
        kinds = [
            {"name": f"k{i}", "slots": rng.randint(1, 8), "price_per_hour": rng.randint(1, 30) / 10} for i in range(3)
        ]
        offered, tasks = offer(*kinds), rng.randint(1, 30)
        best = [Decimal(0)]
        for n in range(1, tasks + 1):
            best.append(min(best[max(0, n - k.slots)] + k.price_per_hour for k in offered.kinds))
        picked = pick_kind(offered, need(tasks, 1024, 1))
        by_slot = min(offered.kinds, key=lambda k: k.price_per_hour / k.slots)
        assert best[tasks] <= picked.count * picked.kind.price_per_hour < best[tasks] + by_slot.price_per_hour
