"""A price limit on given workers and on kinds, by hand."""

from decimal import Decimal
from itertools import product
from typing import Any

import pytest

from models.cluster import Cluster, WorkerOffer
from models.errors import Infeasible, InvalidInput
from models.planning.workers.kinds import Need, pick_kind
from models.planning.workers.spending import affordable, check_prices_known, check_within

EQUAL = Cluster.model_validate({"name": "own", "count": 12, "slots": 16, "cores": 16, "price_per_hour": 0.85})
MIXED: list[dict[str, Any]] = [
    *({"name": f"a-{i}", "slots": 4, "cores": 4, "price_per_hour": 0.5} for i in range(3)),
    *({"name": f"b-{i}", "slots": 10, "cores": 8, "price_per_hour": 1} for i in range(2)),
]


def test_all_workers_are_used_within_the_limit() -> None:
    assert affordable(EQUAL, 40, 10.0, Decimal("10.2")) == (EQUAL, None)


def test_of_equal_workers_as_many_as_the_limit_pays_for() -> None:
    # 12 cost 10.20; 5 USD pay for 5 of 0.85, and 40 slots need 3.
    used, remark = affordable(EQUAL, 40, 10.0, Decimal(5))
    assert [w.name for w in used.workers] == ["tm-1", "tm-2", "tm-3", "tm-4", "tm-5"]
    assert remark is not None and "5 of the 12 workers run tasks" in remark and "10.20 USD per hour" in remark


def test_a_refusal_names_the_least_price_that_would_do() -> None:
    # 40 slots need 3 workers: 2.55.
    with pytest.raises(Infeasible, match=r"3 of the 12 workers, for 2.55 USD per hour; allow 2.55 \$/h"):
        affordable(EQUAL, 40, 10.0, Decimal("2.5"))
    assert len(affordable(EQUAL, 40, 10.0, Decimal("2.55"))[0].workers) == 3
    # 50 cores need 4.
    with pytest.raises(Infeasible, match=r"4 of the 12 workers, for 3\.40 USD per hour"):
        affordable(EQUAL, 40, 50.0, Decimal("2.55"))


@pytest.mark.parametrize("slots", [1, 4, 5, 9, 13, 14, 15, 20, 24, 28, 32])
def test_of_different_workers_the_cheapest_that_hold_the_plan(slots: int) -> None:
    cluster = Cluster.model_validate({"workers": MIXED})
    tried = [(Decimal("0.5") * a + b, 4 * a + 10 * b) for a, b in product(range(4), range(3))]
    least = min(price for price, held in tried if held >= slots)
    used, _ = affordable(cluster, slots, 0.0, least)
    assert sum((w.price_per_hour or Decimal(0) for w in used.workers), Decimal(0)) == least
    assert used.slots >= slots
    with pytest.raises(Infeasible, match=f"for {least:.2f} USD per hour"):
        affordable(cluster, slots, 0.0, least - Decimal("0.01"))


def test_the_cheapest_kind_is_within_the_limit_or_named() -> None:
    small = {"name": "small", "slots": 4, "price_per_hour": 0.25}
    offer = WorkerOffer.model_validate({"kinds": [small, {"name": "large", "slots": 16, "price_per_hour": 0.9}]})
    picked = pick_kind(offer, Need(20, 1024, None))
    check_within(picked, Decimal("1.25"))
    with pytest.raises(Infeasible, match=r"the cheapest are 5 of kind small, for 1.25 USD per hour; allow 1.25 \$/h"):
        check_within(picked, Decimal("1.24"))


def test_a_limit_needs_prices() -> None:
    check_prices_known(EQUAL)
    with pytest.raises(InvalidInput, match="'tm-1' of cluster 'own' has none; state its 'price_per_hour'"):
        check_prices_known(Cluster.model_validate({"name": "own", "count": 2, "slots": 2}))
