"""CAPS over shared slots against a list of all placements, and Flink's policies."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from known_answers.every_shared_plan import every_plan
from models.cluster import Cluster
from models.dataflow import Dataflow
from models.errors import Infeasible
from models.placement.cost import as_array, costs, worker_loads
from models.placement.graph.slot_sharing import with_shared_slots
from models.placement.problem import Problem
from models.placement.shared.bundles import bundled, by_vertex
from models.placement.shared.mixes import candidates, nested
from models.placement.shared.place import place_shared, tune_shared
from models.placement.shared.sharing import SharedDataflow
from models.plan.slots import slots_in, tasks_in
from models.vertices import JobVertex

ABC = [("a", 4, 1.0, 0.0, 0.0), ("b", 2, 4.0, 0.0, 0.0), ("c", 2, 4.0, 0.0, 0.0)]


def workers(count: int, slots: int, **fields: float) -> Cluster:
    return Cluster.model_validate({"count": count, "slots": slots, **fields})


def test_heavy_tasks_of_different_vertices_get_different_slots(share):
    # Flink's default has two slots with all three (9) and two with a alone (1); b and c apart give 5 in each.
    found = tune_shared(share(ABC), workers(4, 1))
    assert found.cost.cpu == 0
    assert {frozenset(b.vertices for b in bundles) for bundles in found.slots.values()} == {
        frozenset({("a", "b")}),
        frozenset({("a", "c")}),
    }
    assert found.best_of_every_mix
    assert place_shared(share(ABC), workers(4, 1), "default").cost.cpu == 1


def test_tasks_of_flink_2_3_balance_numbers_and_not_loads(share):
    rows = [("a", 4, 0.0, 0, 0), ("heavy", 2, 10.0, 0, 0), ("light", 2, 0.0, 0, 0)]
    # Round-robin: two slots with heavy, two with light, all of two tasks: any two may share a worker of two slots.
    found = [place_shared(share(rows), workers(2, 2), "tasks", seed).cost.cpu for seed in range(20)]
    assert set(found) == {0.0, 1.0}
    assert tune_shared(share(rows), workers(2, 2)).cost.cpu == 0


def test_tasks_of_flink_2_3_put_the_fullest_slots_first_and_apart(share):
    rows = [("a", 4, 1.0, 0, 0), ("b", 1, 1.0, 0, 0), ("c", 1, 1.0, 0, 0)]
    found = place_shared(share(rows), workers(2, 2), "tasks")
    assert [sum(tasks_in(bundles).values()) for bundles in found.slots.values()] == [3, 3]


def test_flinks_default_fills_one_worker_and_evenly_spreads_slots(share):
    rows = [("a", 4, 1.0, 0, 0), ("b", 4, 1.0, 0, 0)]
    filled = place_shared(share(rows), workers(4, 4), "default")
    assert filled.placement == {"tm-1": {"a": 4, "b": 4}}
    spread = place_shared(share(rows), workers(4, 4), "evenly")
    assert spread.placement == {f"tm-{i}": {"a": 1, "b": 1} for i in range(1, 5)}


def test_each_group_has_slots_of_its_own(share):
    found = tune_shared(share(ABC, groups={"c": "out"}), workers(3, 2))
    assert slots_in(found.slots) == 4 + 2
    assert all(set(b.vertices) in ({"a"}, {"a", "b"}, {"c"}) for bs in found.slots.values() for b in bs)


def test_too_few_slots_are_named(share):
    with pytest.raises(
        Infeasible, match=r"needs 4 slots, those of the widest vertex of each slot sharing group, but .* 3"
    ):
        tune_shared(share(ABC), workers(3, 1))


def test_memory_counts_by_slot_and_not_by_task(share):
    # Four slots of 100 MiB fit two workers of 200, though there are eight tasks.
    found = tune_shared(share(ABC, memory_mb=100), workers(2, 4, memory_mb=200))
    assert {w: sum(b.slots for b in bundles) for w, bundles in found.slots.items()} == {"tm-1": 2, "tm-2": 2}


def test_a_mix_may_beat_every_placement_of_flinks_default(share):
    nested_only = bundled(share(ABC), nested(share(ABC)), workers(4, 1))
    assert costs(nested_only, np.eye(4, 2, dtype=np.int64)[[0, 0, 1, 1]])[0] == 1


@st.composite
def instances(draw) -> tuple[SharedDataflow, Cluster]:
    number = draw(st.integers(1, 3))
    load = st.sampled_from([0.0, 1.0, 2.0, 3.0, 7.0])
    rows = [(f"v{i}", draw(st.integers(1, 3)), draw(load), draw(load), draw(load)) for i in range(number)]
    edges = [
        {"from": f"v{i}", "to": f"v{i + 1}", "partitioning": how}
        for i in range(number - 1)
        if (how := draw(st.sampled_from(["hash", "forward", None]))) and (how == "hash" or rows[i][1] == rows[i + 1][1])
    ]
    flow = Dataflow.model_validate(
        {
            "operators": [dict(zip(("name", "parallelism", "cpu", "io", "net"), row, strict=True)) for row in rows],
            "edges": edges,
        }
    )
    groups = [draw(st.sampled_from(["x", "y"])) for _ in rows]
    shared = SharedDataflow.of(
        flow, [JobVertex(operators=(row[0],), slot_sharing_group=g) for row, g in zip(rows, groups, strict=True)]
    )
    slots = [draw(st.integers(1, 3)) for _ in range(draw(st.integers(1, 3)))]
    slots[0] += max(0, shared.slots - sum(slots))
    return shared, Cluster.model_validate({"workers": [{"name": f"w{i}", "slots": s} for i, s in enumerate(slots)]})


def free_costs(shared: SharedDataflow, cluster: Cluster):
    """(N, 3): the cost of every plan of every mix, on the scale of the mixes."""
    scale = bundled(shared, nested(shared), cluster)
    larger = with_shared_slots(cluster, shared.dataflow, shared.group_of)
    problem = replace(Problem.of(shared.dataflow, larger), least=scale.least, most=scale.most)
    return costs(problem, every_plan(shared, cluster))


@settings(deadline=None, max_examples=40)
@given(instances(), st.randoms(use_true_random=False))
def test_loads_of_bundles_are_those_of_their_tasks(instance, random):
    shared, cluster = instance
    larger = Problem.of(shared.dataflow, with_shared_slots(cluster, shared.dataflow, shared.group_of))
    for mix in candidates(shared).values():
        problem = bundled(shared, mix, cluster)
        slots = [w for w, worker in enumerate(cluster.workers) for _ in range(worker.slots)]
        random.shuffle(slots)
        counts = np.zeros((len(cluster.workers), len(mix)), dtype=np.int64)
        for b, w in zip((b for b, one in enumerate(mix) for _ in range(one.slots)), slots, strict=False):
            counts[w, b] += 1
        of_tasks = worker_loads(larger, larger.counts(by_vertex(mix, problem.placement(counts))))
        of_bundles = worker_loads(problem, counts)
        assert of_bundles[:2] == pytest.approx(of_tasks[:2])
        assert (of_bundles[2] >= of_tasks[2] - 1e-9).all()  # forward edges between slots count in full
        if not larger.edges.forward.any():
            assert of_bundles[2] == pytest.approx(of_tasks[2])


@settings(deadline=None, max_examples=40)
@given(instances())
def test_the_answer_is_a_plan_and_what_it_proves_holds_for_every_mix(instance):
    shared, cluster = instance
    every = free_costs(shared, cluster)
    found = tune_shared(shared, cluster, idle_share=0.0)
    cost = as_array(found.cost)
    assert slots_in(found.slots) == shared.slots <= shared.dataflow.tasks
    assert {w: tasks_in(b) for w, b in found.slots.items()} == found.placement
    assert all(sum(b.slots for b in found.slots.get(w.name, ())) <= w.slots for w in cluster.workers)
    assert (as_array(found.least) <= every.min(axis=0) + 1e-8).all()
    assert (every <= cost + 1e-7).all(axis=1).any()  # no better than any plan there is
    if found.best_of_every_mix:
        better = (every <= cost + 1e-8).all(axis=1) & (every < cost - 1e-7).any(axis=1)
        assert not better.any()


@settings(deadline=None, max_examples=30)
@given(instances(), st.sampled_from(["default", "evenly", "tasks"]), st.integers(0, 5))
def test_flinks_policies_place_each_task_once_and_cost_no_less_than_is_proved(instance, policy, seed):
    shared, cluster = instance
    placed = place_shared(shared, cluster, policy, seed)
    counted = {name: sum(tasks.get(name, 0) for tasks in placed.placement.values()) for name in shared.parallelism}
    assert counted == shared.parallelism
    assert slots_in(placed.slots) == shared.slots
    assert (as_array(placed.cost) >= as_array(tune_shared(shared, cluster).least) - 1e-8).all()


@pytest.mark.parametrize(("extra", "mix"), [(0.01, "nested"), (0.5, "by-load-cpu")])
def test_flinks_default_mix_is_kept_where_it_is_about_as_good(share, extra, mix):
    # Both narrow vertices in one slot: 1 + 2 extra on the worst worker, apart 1 + extra.
    rows = [("a", 2, 1.0, 0, 0), ("b", 1, extra / 2, 0, 0), ("c", 1, extra / 2, 0, 0)]
    found = tune_shared(share(rows), workers(2, 1))
    assert found.mix in ((mix,) if mix == "nested" else ("by-load-cpu", "round-robin"))
