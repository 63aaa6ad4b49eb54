"""ODRP: by hand, by brute force, and what it refuses."""

import math
from itertools import product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from models.cluster import Cluster
from models.dataflow import Dataflow
from models.errors import Infeasible, InvalidInput, SluiceError
from models.placement import place
from models.placement.baselines.odrp import GAP, LINK_LATENCY_S, WEIGHTS, odrp
from models.placement.baselines.odrp_instance import OdrpInstance, Stream
from models.placement.baselines.odrp_objectives import OdrpWeights
from pipelines.inputs.catalogue import load_cluster, load_job

TRAFFIC = OdrpWeights(response=0, cost=0, traffic=1, availability=0)


def chain_of(work, most, sent, memory_mb=None) -> OdrpInstance:
    n = len(work)
    return OdrpInstance(
        operators=tuple("abcdefgh"[:n]),
        work=tuple(work),
        choices=tuple(tuple(range(1, m + 1)) for m in most),
        memory_mb=tuple(memory_mb or [0.0] * n),
        streams=tuple(Stream(i, i + 1, s) for i, s in enumerate(sent)),
        order=tuple(range(n)),
    )


def workers(count: int, slots: int, **stated: float) -> Cluster:
    return Cluster.model_validate({"count": count, "slots": slots, **stated})


def by_brute_force(instance: OdrpInstance, cluster: Cluster, weights: OdrpWeights) -> float:
    """The least F over every assignment of tasks to workers, from pairs of tasks; the scales by their definition."""
    low, high = (sum(w / c[end] for w, c in zip(instance.work, instance.choices, strict=True)) for end in (-1, 0))
    high += LINK_LATENCY_S * len(instance.streams)
    fewest = sum(c[0] for c in instance.choices)
    most = min(cluster.slots, sum(c[-1] for c in instance.choices))
    everything = sum(s.bytes_per_s for s in instance.streams)
    best = math.inf
    for tasks in product(*instance.choices):
        for homes in product(range(len(cluster.workers)), repeat=sum(tasks)):
            if any(homes.count(w) > worker.slots for w, worker in enumerate(cluster.workers)):
                continue
            rest = iter(homes)
            at = [[next(rest) for _ in range(k)] for k in tasks]
            pairs = [[u != v for u in at[s.upstream] for v in at[s.downstream]] for s in instance.streams]
            response = sum(w / k for w, k in zip(instance.work, tasks, strict=True))
            response += LINK_LATENCY_S * sum(any(p) for p in pairs)
            traffic = sum(s.bytes_per_s * sum(p) / len(p) for s, p in zip(instance.streams, pairs, strict=True))
            f = weights.response * (response - low) / (high - low) if high > low else 0.0
            f += weights.cost * (sum(tasks) - fewest) / (most - fewest) if most > fewest else 0.0
            f += weights.traffic * traffic / everything if everything > 0 else 0.0
            best = min(best, f)
    return best


def test_traffic_alone_puts_everything_on_one_worker():
    found = odrp(chain_of([1, 1], [2, 2], [100.0]), workers(2, 4), TRAFFIC)
    assert (found.status, found.traffic, len(found.placement)) == ("optimal", 0.0, 1)


def test_latency_alone_takes_every_slot_and_shares_them_by_work():
    """1/p_a + 4/p_b with p_a + p_b = 6: 2 and 4 tasks give 1.5, beside 1.8 for 1 and 5, 5/3 for 3 and 3."""
    found = odrp(chain_of([1, 4], [5, 5], [100.0]), workers(2, 3), WEIGHTS["latency"])
    assert found.parallelism == {"a": 2, "b": 4}
    assert found.cost_slots == 6
    assert found.response_s == pytest.approx(1.5 + LINK_LATENCY_S)


def test_cost_alone_takes_one_slot_each():
    found = odrp(
        chain_of([9, 9], [3, 3], [1.0]), workers(2, 3), OdrpWeights(response=0, cost=1, traffic=0, availability=0)
    )
    assert (found.parallelism, found.objective) == ({"a": 1, "b": 1}, 0.0)


def test_availability_keeps_to_the_better_workers():
    """Four tasks fit on the two workers that are always up; A_w = 0.5 of the third would halve availability."""
    weights = OdrpWeights(response=0.1, cost=0, traffic=0, availability=0.9)
    found = odrp(chain_of([1, 1], [2, 2], [1.0]), workers(3, 2), weights, availability={"tm-2": 0.5})
    assert set(found.placement) == {"tm-1", "tm-3"}
    assert found.availability == 1.0
    with pytest.raises(InvalidInput, match=r"'tm-1' has 1\.5"):
        odrp(chain_of([1], [1], []), workers(1, 1), availability={"tm-1": 1.5})


def test_bandwidth_of_a_worker_is_kept():
    """a sends 100 bytes/s and the workers let 60 out: one slot for each of 2 + 2 tasks, half of it crosses at least."""
    instance = OdrpInstance.of_dataflow(
        Dataflow.model_validate(
            {
                "operators": [
                    {"name": "a", "parallelism": 2, "cpu": 1, "io": 0, "net": 50},
                    {"name": "b", "parallelism": 2, "cpu": 1, "io": 0, "net": 0},
                ],
                "edges": [{"from": "a", "to": "b", "partitioning": "hash"}],
            }
        ),
        workers(2, 2),
    )
    kept = odrp(instance, workers(2, 2, net=60.0), WEIGHTS["latency"])
    assert kept.placement == {"tm-1": {"a": 1, "b": 1}, "tm-2": {"a": 1, "b": 1}}
    assert kept.traffic == 50
    with pytest.raises(Infeasible, match="4 slots"):
        odrp(instance, workers(2, 2, net=20.0))


@settings(max_examples=30, deadline=None)
@example(work=[1.0, 2.0], sent=[7.4e-168, 0.0], most=[2, 2, 1], slots=2, name="default")
@example(work=[1e-10, 2e-10], sent=[0.0, 0.0], most=[2, 2, 1], slots=2, name="weighted")
@given(
    work=st.lists(st.floats(0.1, 5), min_size=2, max_size=3),
    sent=st.lists(st.floats(0, 100, allow_subnormal=False), min_size=2, max_size=2),
    most=st.lists(st.integers(1, 2), min_size=3, max_size=3),
    slots=st.integers(2, 3),
    name=st.sampled_from(sorted(WEIGHTS)),
)
def test_no_assignment_is_better(work, sent, most, slots, name):
    n = len(work)
    instance, cluster = chain_of(work, most[:n], sent[: n - 1]), workers(2, slots)
    found = odrp(instance, cluster, WEIGHTS[name])
    least = by_brute_force(instance, cluster, WEIGHTS[name])
    assert found.objective == pytest.approx(least, abs=2 * GAP)
    assert found.bound <= least + 1e-6
    assert all(sum(tasks.values()) <= slots for tasks in found.placement.values())


def test_memory_is_a_limit():
    found = odrp(chain_of([1, 1], [1, 1], [1.0], [3.0, 3.0]), workers(2, 2, memory_mb=5.0), TRAFFIC)
    assert len(found.placement) == 2


def test_several_sources_are_refused():
    job = load_job("nexmark-q3")
    edges = [{"from": "a", "to": "c", "partitioning": "hash"}, {"from": "b", "to": "c", "partitioning": "hash"}]
    operators = [{"name": n, "parallelism": 1, "cpu": 1, "io": 0, "net": 1} for n in "abc"]
    dataflow = Dataflow.model_validate({"operators": operators, "edges": edges})
    with pytest.raises(InvalidInput, match=r"one source, but this one has 2: a, b; use another policy"):
        place(dataflow, workers(2, 2), "odrp")
    assert len(OdrpInstance.of_job(job, 1e5, {o.name: 1e5 for o in job.operators}, 2).operators) == len(job.operators)


def test_q3_inf_jointly_at_the_rates_of_the_catalogue():
    """CAPSys Table 3: the default weights give fewer tasks than the rate needs."""
    job, cluster = load_job("q3-inf"), load_cluster("capsys-4x8")
    instance = OdrpInstance.of_job(job, 4236.0, {o.name: 1 / o.cost.cpu_s for o in job.operators}, 4)
    assert instance.work[3] == pytest.approx(4236 * 1.467e-3)
    found = odrp(instance, cluster, WEIGHTS["default"])
    assert found.cost_slots < 5 + 10
    assert found.parallelism["inference"] * job.operator("inference").cost.cpu_s ** -1 < 4236
    assert found.status == "optimal"
    assert found.gap <= 1e-3


def test_too_few_slots_and_too_little_time_are_reported():
    with pytest.raises(Infeasible, match="3 tasks need as many slots, but the cluster has 2"):
        odrp(chain_of([1, 1, 1], [1, 1, 1], [1.0, 1.0]), workers(1, 2))
    ticks = iter(range(10))
    with pytest.raises(SluiceError, match="longer time limit"):
        odrp(
            chain_of([3, 1, 2, 2], [20] * 4, [5.0, 3.0, 2.0]),
            workers(4, 8),
            clock=lambda: float(next(ticks)),
            time_limit_s=1e-9,
        )


def test_the_policy_places_the_given_tasks(chain, equal_workers):
    """Together on one worker nothing crosses; caps would spread them."""
    result = place(chain(2, 2), equal_workers(2, 4), "odrp", clock=lambda: 0.0)
    assert list(result.placement.values()) == [{"a": 2, "b": 2}]
    assert (result.policy, result.status, result.gap, result.seconds) == ("odrp", "optimal", 0.0, 0.0)
    assert result.cost.net == 0
    with pytest.raises(InvalidInput, match="leave them out"):
        place(chain(2, 2), equal_workers(2, 4), "odrp", result.thresholds)
