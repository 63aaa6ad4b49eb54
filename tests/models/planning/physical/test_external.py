"""Rate limits of sinks and services, by hand: a tenth of the records reaches the sink, twice as many the lookup."""

import pytest

from models.capacity.diagnosis.bound_by import BoundBy
from models.errors import Infeasible
from models.job import Job
from models.planning.physical.external import check_limit, limited_bound, tightest_limit
from pipelines.store.digests import digest

INTO = {"source": 1.0, "lookup": 2.0, "sink": 0.1}


def job(**limits: float) -> Job:
    operators = [
        {"name": name, "kind": kind, "cost": {"cpu_s": 1e-3}, "figures_from": "made up"}
        | ({"rate_limit": limits[name]} if name in limits else {})
        for name, kind in (("source", "source"), ("lookup", "operator"), ("sink", "sink"))
    ]
    edges = [
        {"from": "source", "to": "lookup", "partitioning": "rebalance"},
        {"from": "lookup", "to": "sink", "partitioning": "rebalance"},
    ]
    return Job.model_validate(
        {"name": "j", "description": "A job.", "figures_from": "made up", "operators": operators, "edges": edges}
    )


def test_the_limit_that_is_reached_first_counts() -> None:
    # 500 / 0.1 = 5,000 records/s at the sources, 6,000 / 2 = 3,000.
    found = tightest_limit(job(sink=500, lookup=6000), INTO)
    assert found is not None and (found.operator, found.source_rate) == ("lookup", 3000)
    assert tightest_limit(job(), INTO) is None
    assert tightest_limit(job(sink=500), {**INTO, "sink": 0.0}) is None


def test_a_target_beyond_the_limit_is_refused_with_the_highest_rate() -> None:
    limit = tightest_limit(job(sink=500), INTO)
    check_limit(limit, 5000)
    with pytest.raises(
        Infeasible,
        match=r"^6,000 records/s at the sources would send 600 records/s to sink, but its rate_limit is 500; plan for at most "
        r"5,000 records/s, or raise the limit",
    ):
        check_limit(limit, 6000)


def test_catching_up_needs_the_limit_too() -> None:
    # 1.75 x 2,857 = 5,000.
    limit = tightest_limit(job(sink=500), INTO)
    check_limit(limit, 2857, 1.75)
    with pytest.raises(
        Infeasible, match=r"^recovering from the outage, 1.75 x 4,000 records/s .* at most 2,857 records/s"
    ):
        check_limit(limit, 4000, 1.75)


def test_it_is_named_as_what_bounds_the_plan() -> None:
    limit = tightest_limit(job(sink=500), INTO)
    assert limit is not None
    inner = BoundBy(
        vertex="lookup", cause="CPU", sentence="it is busy", remedy="more slots", no_effect_because="not computed"
    )
    found = limited_bound(limit, 6000, inner)
    assert (found.vertex, found.cause, found.title) == ("sink", "rate limit", "bound by sink, rate limit")
    assert found.effect is not None and found.effect.gain == pytest.approx(0.2)
    assert found.effect.then_bound_by == "lookup"


def test_a_limit_changes_no_measurement() -> None:
    assert digest(job(sink=500)) == digest(job())
