"""One placement by each policy."""

import pytest

from models.cluster import Cluster
from models.errors import Infeasible, InvalidInput
from models.placement import count_plans, place
from models.plan.parts import CostVector


def tasks_on(result) -> dict[str, int]:
    return {worker: sum(tasks.values()) for worker, tasks in result.placement.items()}


def placed(result) -> dict[str, int]:
    totals: dict[str, int] = {}
    for tasks in result.placement.values():
        for operator, number in tasks.items():
            totals[operator] = totals.get(operator, 0) + number
    return totals


@pytest.mark.parametrize("policy", ["caps", "default", "evenly", "random", "odrp"])
def test_every_task_is_placed_once(chain, equal_workers, policy):
    result = place(chain(2, 5, 8, 1), equal_workers(5, 4), policy, seed=7)
    assert placed(result) == {"a": 2, "b": 5, "c": 8, "d": 1}
    assert max(tasks_on(result).values()) <= 4


def test_default_fills_one_worker_after_the_other(chain, equal_workers):
    result = place(chain(3, 3), equal_workers(4, 4), "default")
    assert tasks_on(result) == {"tm-1": 4, "tm-2": 2}


def test_evenly_spreads_the_number_of_tasks(chain, equal_workers):
    assert tasks_on(place(chain(3, 3), equal_workers(4, 4), "evenly")) == {"tm-1": 2, "tm-2": 2, "tm-3": 1, "tm-4": 1}
    uneven = Cluster.model_validate({"workers": [{"name": "big", "slots": 4}, {"name": "small", "slots": 2}]})
    assert tasks_on(place(chain(3), uneven, "evenly")) == {"big": 2, "small": 1}


@pytest.mark.parametrize("policy", ["default", "evenly"])
def test_flinks_policies_are_random_and_repeatable(chain, equal_workers, policy):
    dataflow, cluster = chain(4, 4, 4, 4), equal_workers(4, 4)
    placements = [place(dataflow, cluster, policy, seed=seed).placement for seed in range(5)]
    assert placements[3] == place(dataflow, cluster, policy, seed=3).placement
    assert any(placement != placements[0] for placement in placements)


def test_flinks_policies_respect_memory(chain, equal_workers):
    dataflow = chain(4, 4, memory_mb=[3.0, 1.0])
    result = place(dataflow, equal_workers(4, 4, memory_mb=5.0), "evenly", seed=1)
    assert all(3 * tasks.get("a", 0) + tasks.get("b", 0) <= 5 for tasks in result.placement.values())
    with pytest.raises(Infeasible, match="random order"):
        place(chain(3, memory_mb=[2.0]), equal_workers(2, 4, memory_mb=3.0), "default")


def test_within_thresholds(q2_scaled):
    result = place(*q2_scaled(4, 4), "caps", CostVector(cpu=0.11, io=0.2, net=0.31))
    assert result.status == "feasible"
    assert result.cost.cpu == pytest.approx(0.099176, abs=1e-6)
    assert result.cost.net == pytest.approx(0.308327, abs=1e-6)
    assert result.gap == 0


def test_without_thresholds_the_tuned_plan(q2_scaled):
    result = place(*q2_scaled(4, 4))
    assert result.status == "optimal"
    assert result.thresholds.net == pytest.approx(0.308327, abs=1e-6)
    assert result.seconds is None


def test_impossible_requests_are_reported_in_a_sentence(chain, equal_workers, q2_scaled):
    with pytest.raises(Infeasible, match=r"5 tasks need as many slots, but the cluster has 4"):
        place(chain(5), equal_workers(2, 2))
    with pytest.raises(Infeasible, match=r"a task of 'a' needs 9 MiB, but the largest worker has 8 MiB"):
        place(chain(1, memory_mb=[9.0]), equal_workers(2, 2, memory_mb=8))
    with pytest.raises(Infeasible, match=r"18 MiB together, but the workers have 16 MiB"):
        place(chain(3, memory_mb=[6.0]), equal_workers(2, 2, memory_mb=8))
    with pytest.raises(Infeasible, match=r"net=0.1 \(proved\)"):
        place(*q2_scaled(4, 4), "caps", CostVector(cpu=1, io=1, net=0.1))


def test_thresholds_go_with_caps_only(chain, equal_workers):
    with pytest.raises(InvalidInput, match="leave them out"):
        place(chain(2), equal_workers(2, 2), "evenly", CostVector(cpu=1, io=1, net=1))


def test_counting_within_thresholds(q2_scaled):
    dataflow, cluster = q2_scaled(4, 4)
    assert count_plans(dataflow, cluster) == 1046
    assert count_plans(dataflow, cluster, CostVector(cpu=0.0992, io=0.2, net=0.31)) == 1
