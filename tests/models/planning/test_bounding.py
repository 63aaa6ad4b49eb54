"""What bounds a plan: facts at the predicted MST, from the plan's tasks and what smaller configurations showed."""

from collections.abc import Sequence

import pytest

from models.capacity.diagnosis.bound_by import BoundBy
from models.capacity.diagnosis.diagnose import diagnose
from models.capacity.diagnosis.facts import BoundFacts, OperatorFacts
from models.capacity.observation import Budget, Observation
from models.cluster import Cluster
from models.job import Job
from models.keys.shares import KeyedInput
from models.plan.parts import Interval
from models.planning.bounding import chained_facts, largest_measured, plan_bound, plan_facts
from models.planning.parallelism import Scaling
from models.planning.physical.expansion import UnitCost, expand
from models.vertices import JobVertex

CLUSTER = Cluster.model_validate({"count": 2, "slots": 8, "cores": 4, "net": 1e6})
PLACEMENT = {"tm-1": {"source": 1, "map": 2, "count": 2, "sink": 1}, "tm-2": {"map": 2, "count": 2}}


def job(**count: object) -> Job:
    cost = {"cpu_s": 1e-3}
    return Job.model_validate(
        {
            "name": "made-up",
            "description": "Counts.",
            "figures_from": "assumed: all",
            "operators": [
                {"name": "source", "kind": "source", "cost": cost, "figures_from": "assumed: all"},
                {"name": "map", "cost": cost, "figures_from": "assumed: all"},
                {"name": "count", "cost": cost, "figures_from": "assumed: all", **count},
                {"name": "sink", "kind": "sink", "cost": cost, "figures_from": "assumed: all"},
            ],
            "edges": [
                {"from": "source", "to": "map", "partitioning": "rebalance"},
                {"from": "map", "to": "count", "partitioning": "hash"},
                {"from": "count", "to": "sink", "partitioning": "rebalance"},
            ],
        }
    )


def scaling(of: Job, mst: float = 1200.0, map_rate: float = 1000.0, count_rate: float = 400.0) -> Scaling:
    """Four tasks of map and of count, planned for 1,000 records/s, one of ten of which reaches the sink."""
    tasks = {"source": 1, "map": 4, "count": 4, "sink": 1}
    records = {"source": 1000.0, "map": 1000.0, "count": 1000.0, "sink": 100.0}
    costs = {name: UnitCost(cpu_s=1e-3, state_bytes=0, bytes_out=100) for name in tasks}
    return Scaling(
        budget=Budget(task_slots=9, memory_mb=1024),
        parallelism=tasks,
        managed_memory_mb=dict.fromkeys(tasks, 0.0),
        policy="bids2",
        records_in_per_s=records,
        true_rate_per_task={"source": 5000.0, "map": map_rate, "count": count_rate, "sink": 1000.0},
        predicted_mst=Interval(value=mst, low=mst / 2, high=2 * mst),
        dataflow=expand(of, tasks, records, costs, 64),
        operator_reasons={},
        reasons=(),
        origin="",
    )


def bound(of: Job, scaled: Scaling, seen: Sequence[Observation] = (), keyed: Sequence[KeyedInput] = ()) -> BoundBy:
    return plan_bound(of, CLUSTER, 1000.0, scaled, PLACEMENT, seen, keyed)


def observation(slots: int, *operators: OperatorFacts, memory_mb: float = 1024, mst: float = 500) -> Observation:
    facts = BoundFacts(rate=mst, measured=True, operators=operators)
    return Observation(
        run=f"m{slots}",
        task_slots=slots,
        memory_mb=memory_mb,
        parallelism={},
        mst=mst,
        facts=facts,
        bound_by=diagnose(facts),
    )


def test_the_facts_of_a_plan_are_those_at_its_predicted_mst() -> None:
    facts = plan_facts(job(), CLUSTER, 1000.0, scaling(job()), PLACEMENT, None, ())
    assert (facts.rate, facts.measured, [o.name for o in facts.operators]) == (1200.0, False, ["map", "count", "sink"])
    # 1,200 records/s to four tasks of 400 each.
    assert facts.operator("count").busyness == facts.operator("count").held_busyness == pytest.approx(0.75)
    # On tm-1 a ms for each of 1,200 (source), 600 (map), 600 (count) and 120 records/s.
    assert facts.cores_use == pytest.approx(2.52 / 4)
    # Half of the 100 B of 1,200 + 600 + 600 records/s go to the other worker; the sink sends none.
    assert facts.network_use == pytest.approx(0.5 * 100 * 2400 / 1e6)
    assert facts.network_vertex in ("source", "map", "count")


def test_even_load_is_bound_by_cpu() -> None:
    found = bound(job(), scaling(job(), mst=1500))
    assert (found.vertex, found.cause) == ("count", "CPU")
    assert "1,600 records/s fill the fullest" in found.sentence


def test_no_more_tasks_than_the_job_allows() -> None:
    limited = job(max_parallelism=4)
    found = bound(limited, scaling(limited, mst=1500))
    assert (found.vertex, found.cause) == ("count", "max parallelism")
    # 1,600 records/s saturate it; the fullest worker's cores are full at 4 / 2.1 ms.
    assert found.effect is not None and found.effect.rate_then == pytest.approx(1500 / 1600 * 4 / 2.1e-3)
    assert found.effect.then_bound_by is None


def test_key_groups_that_do_not_divide_by_the_tasks() -> None:
    """Of five groups one task has two: 0.4 x 900 of its 400 records/s, where an even share were a quarter."""
    few = job().model_copy(update={"key_groups": 5})
    found = bound(few, scaling(few, mst=900))
    assert (found.vertex, found.cause) == ("count", "key groups")
    assert "1,000 records/s fill the fullest, since 5 key groups do not divide by 4 tasks" in found.sentence
    assert found.effect is not None and found.effect.rate_then == pytest.approx(900 * 8 / 5)


def test_a_recorded_stream_says_what_the_fullest_task_gets() -> None:
    """Of 128 key groups, that of one key has half of the records: 0.5 + 0.5 x 31 / 127 of them go to its task."""
    groups = (127, *[1] * 127)
    keyed = KeyedInput(operator="count", source="recording", groups=groups)
    found = bound(job(), scaling(job(), mst=600), keyed=[keyed])
    assert (found.vertex, found.cause) == ("count", "hot key")
    share = (127 + 31) / 254
    assert f"{share:.0%} of the records and an even share is 25%" in found.sentence
    # The task takes 400 records/s of its own, and even shares 1,600.
    assert f"{400 / share:,.0f} records/s fill the fullest" in found.sentence
    assert found.effect is not None and found.effect.rate_then == pytest.approx(1600)


def test_a_key_that_moves_on_keeps_its_share_with_more_tasks() -> None:
    """Measured with two tasks: over time even, but 80 % to one at a time. That is 60 % beside the half of an even share."""
    count = OperatorFacts(
        name="count", parallelism=2, keyed=True, busyness=0.5, fullest_busyness=0.5, peak_busyness=0.8, key_groups=128
    )
    seen = observation(5, count)
    facts = plan_facts(job(), CLUSTER, 1000.0, scaling(job(), mst=800), PLACEMENT, seen.facts, ())
    assert facts.operator("count").peak_busyness == pytest.approx(2 * (0.25 + 0.6 * 0.75))
    found = bound(job(), scaling(job(), mst=800), [seen])
    assert (found.vertex, found.cause) == ("count", "hot key")


def test_published_measurements_take_the_hot_key_of_the_file() -> None:
    for period, cause in (({"hot_period_s": 2}, "hot key"), ({"hot_period_records": 500}, "unknown")):
        # 500 records/s: a key that is hot for 500 of 600 records/s lasts less than a second, and is evened out.
        hot = job(keys={"distinct": 10, "hot_share": 0.8, **period})
        assert bound(hot, scaling(hot, mst=600)).cause == cause


def test_what_nothing_explains_is_as_in_the_largest_measurement() -> None:
    window = OperatorFacts(name="count", parallelism=2, windowed=True, busyness=0.6, backpressure=0.0)
    mapping = OperatorFacts(name="map", parallelism=1, busyness=0.3, backpressure=0.6)
    seen = observation(5, mapping, window)
    found = bound(job(), scaling(job(), mst=600), [seen])
    assert (found.vertex, found.cause) == ("count", "waiting")
    assert bound(job(), scaling(job(), mst=600)).cause == "unknown"


def test_a_source_at_its_limit_may_bind_and_another_not() -> None:
    def with_source(most: int) -> Job:
        of = job()
        limited = of.operator("source").model_copy(update={"max_parallelism": most})
        return of.model_copy(update={"operators": (limited, *of.operators[1:])})

    assert bound(with_source(1), scaling(job(), mst=4800, map_rate=9e3, count_rate=9e3)).cause == "source partitions"
    assert bound(with_source(2), scaling(job(), mst=4800, map_rate=9e3, count_rate=9e3)).cause != "source partitions"


def test_a_source_below_its_limit_may_send_most_where_the_network_binds() -> None:
    """It is named although it is not among those that may bind: it gets the tasks that it needs."""
    slow = Cluster.model_validate({"count": 2, "slots": 8, "net": 5e5})
    scaled = scaling(job(), mst=9000, map_rate=1e5, count_rate=1e5)
    # The source, map and count send 9,000 records/s of 100 B each, all of the source's from tm-1 and half of the others';
    # half of those 18,000 x 100 B go to the other worker. The first of those that send most is named.
    facts = plan_facts(job(), slow, 1000.0, scaled, PLACEMENT, None, ())
    assert facts.network_use == pytest.approx(0.5 * 100 * 18_000 / 5e5)
    assert (facts.network_vertex, [o.name for o in facts.operators]) == ("source", ["map", "count", "sink"])
    found = plan_bound(job(), slow, 1000.0, scaled, PLACEMENT, (), ())
    assert (found.vertex, found.cause) == ("source", "network")
    assert "the fullest worker uses 180% of its network; source sends most of it" in found.sentence
    # With twice the bandwidth 0.9 of it is used, as the sink is busy for 900 of its 1,000 records/s.
    assert found.effect is not None and found.effect.rate_then == pytest.approx(9000 / 0.9)


def test_the_largest_measurement_has_the_planned_memory_where_there_is_one() -> None:
    busy = OperatorFacts(name="map", parallelism=1, busyness=1.0)
    small, large, other = observation(4, busy), observation(8, busy), observation(16, busy, memory_mb=2048)
    assert largest_measured([small, large, other], 1024) is large
    assert largest_measured([small, large, other], 4096) is other
    published = large.model_copy(update={"facts": None})
    assert largest_measured([published], 1024) is None


def test_a_chain_is_one_fact_with_the_work_of_all_its_operators() -> None:
    def fact(name: str, busyness: float, upstream: str = "", **more: object) -> OperatorFacts:
        ups = (upstream,) if upstream else ()
        return OperatorFacts.model_validate(
            {"name": name, "parallelism": 2, "upstream": ups, "busyness": busyness, "fullest_busyness": busyness} | more
        )

    facts = [
        fact("source", 0.2, is_source=True),
        fact("map", 0.3, "source", most_tasks=8),
        fact("count", 0.6, "map"),
        fact("sink", 0.1, "count"),
    ]
    vertices = (JobVertex(operators=("source", "map")), JobVertex(operators=("count", "sink")))
    first, second = chained_facts(facts, vertices)
    assert (first.name, first.busyness, first.is_source, first.most_tasks, first.upstream) == ("map", 0.5, False, 8, ())
    assert (second.name, second.fullest_busyness, second.upstream) == ("count", pytest.approx(0.7), ("map",))
    assert second.peak_busyness is None
    assert chained_facts(facts, ()) == facts
