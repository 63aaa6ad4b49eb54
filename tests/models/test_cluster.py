from decimal import Decimal
from typing import Any

import pytest
from pydantic import ValidationError

from models.cluster import MOST_WORKERS, Cluster, Worker, WorkerKind, WorkerOffer


def test_the_short_form_makes_equal_workers() -> None:
    short = Cluster.model_validate({"count": 3, "slots": 4, "cores": 2, "memory_mb": 4096, "io": 5e8, "net": 1.25e9})
    assert [w.name for w in short.workers] == ["tm-1", "tm-2", "tm-3"]
    assert short.workers[2] == Worker(name="tm-3", slots=4, cores=2, memory_mb=4096, io=5e8, net=1.25e9)
    assert short.slots == 12


def test_what_is_absent_is_no_constraint() -> None:
    worker = Cluster.model_validate({"count": 1, "slots": 4}).workers[0]
    assert (worker.cores, worker.memory_mb, worker.io, worker.net) == (None, None, None, None)


def test_workers_may_differ() -> None:
    cluster = Cluster.model_validate({"workers": [{"name": "a", "slots": 4}, {"name": "b", "slots": 2, "cores": 2}]})
    assert cluster.slots == 6


def test_the_long_form_survives_json() -> None:
    cluster = Cluster.model_validate({"name": "c", "count": 2, "slots": 3})
    assert Cluster.model_validate_json(cluster.model_dump_json()) == cluster


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"count": 2, "workers": [{"name": "a", "slots": 1}]}, "either 'workers' or 'count'"),
        ({"workers": [{"name": "a", "slots": 1}], "cores": 4}, "either 'workers' or 'count'"),
        ({"slots": 4}, "need 'count'"),
        ({"count": 2}, "slots"),
        ({"count": 0, "slots": 1}, f"whole number from 1 to {MOST_WORKERS}, but got 0"),
        ({"count": True, "slots": 1}, "whole number"),
        ({"count": "3", "slots": 1}, "whole number"),
        ({"count": MOST_WORKERS + 1, "slots": 1}, "whole number"),
        ({"workers": []}, "at least 1 item"),
        ({"workers": [{"name": "a", "slots": 1}] * 2}, "'a' appears 2 times"),
        ({"workers": [{"name": "a", "slots": 1, "cpu": 4}]}, "cpu"),
        ({"workers": [{"name": "a/b", "slots": 1}]}, "pattern"),
        ({"workers": [{"name": "a", "slots": 1, "net": 0}]}, "greater than 0"),
        ({"count": 2, "slots": 10**400}, "less than or equal to 1000000"),
        ({"count": 2, "slots": 1, "cores": 1e300}, "less than or equal to 1000000"),
        ({"count": 2, "slots": 1, "memory_mb": 1e300}, "less than or equal to 1000000000"),
    ],
)
def test_a_wrong_cluster_is_refused(data: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Cluster.model_validate(data)


def test_a_price_is_exact_and_a_cluster_without_one_is_written_as_before() -> None:
    cluster = Cluster.model_validate({"count": 3, "slots": 4, "price_per_hour": 0.1})
    assert sum(w.price_per_hour for w in cluster.workers) == Decimal("0.3")
    assert Cluster.model_validate_json(cluster.model_dump_json()) == cluster
    assert "price_per_hour" not in Cluster.model_validate({"count": 1, "slots": 4}).model_dump_json()


@pytest.mark.parametrize("price", ["NaN", float("nan"), float("inf"), -0.01, 10_000.01, 0.0000001, True, "free"])
def test_a_price_that_is_none_is_refused(price: Any) -> None:
    with pytest.raises(ValidationError, match="price_per_hour"):
        Cluster.model_validate({"count": 1, "slots": 4, "price_per_hour": price})


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"kinds": []}, "at least 1 item"),
        ({"kinds": [{"name": "a", "slots": 1}, {"name": "a", "slots": 2}]}, "'a' appears 2 times"),
        ({"kinds": [{"name": "a", "slots": 1, "price_per_hour": 1}, {"name": "b", "slots": 2}]}, "but 'b' has none"),
        ({"kinds": [{"name": "a", "slots": 1, "count": 0}]}, "greater than or equal to 1"),
        ({"kinds": [{"name": "a" * 101, "slots": 1}]}, "at most 100 characters"),
        ({"kinds": [{"name": "a", "slots": 1}], "count": 3}, "count"),
    ],
)
def test_a_wrong_offer_is_refused(data: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        WorkerOffer.model_validate(data)


def test_kinds_are_no_workers() -> None:
    with pytest.raises(ValidationError, match="here the workers must be given"):
        Cluster.model_validate({"kinds": [{"name": "a", "slots": 1}]})


def test_a_kind_makes_its_workers() -> None:
    kind = WorkerKind(name="m", slots=4, cores=2, count=9, price_per_hour=0.5)
    assert kind.workers(2) == (
        Worker(name="m-1", slots=4, cores=2, price_per_hour=Decimal("0.5")),
        Worker(name="m-2", slots=4, cores=2, price_per_hour=Decimal("0.5")),
    )
