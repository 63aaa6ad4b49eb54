"""The cost of a plan, on figures that can be checked by hand (CAPSys Eq. 4-10)."""

import numpy as np
import pytest

from models.cluster import Cluster
from models.dataflow import Dataflow
from models.placement.cost import costs, load_limits, worker_loads
from models.placement.problem import Problem


def problem(operators: list[tuple[int, float, float, float]], edges: list[dict], cluster: dict) -> Problem:
    """Operators a, b, ... as (parallelism, cpu, io, net)."""
    named = [
        {"name": name, "parallelism": p, "cpu": cpu, "io": io, "net": net}
        for name, (p, cpu, io, net) in zip("abcd", operators, strict=False)
    ]
    return Problem.of(Dataflow.model_validate({"operators": named, "edges": edges}), Cluster.model_validate(cluster))


TWO_BY_TWO = {"count": 2, "slots": 2}
A_TO_B = [{"from": "a", "to": "b", "partitioning": "hash"}]


def test_balanced_and_worst_plan_of_two_operators():
    p = problem([(2, 1, 0, 4), (2, 3, 1, 0)], A_TO_B, TWO_BY_TWO)
    assert p.least.tolist() == [4, 1, 0]  # (2 * 1 + 2 * 3) / 2, (2 * 1) / 2, 0 by definition
    assert p.most.tolist() == [6, 2, 8]  # both b, both b, both a
    balanced, apart = np.array([[1, 1], [1, 1]]), np.array([[2, 0], [0, 2]])
    assert worker_loads(p, balanced).tolist() == [[4, 4], [1, 1], [2, 2]]  # half of each a's 4 leaves
    assert costs(p, balanced).tolist() == [0, 0, 0.25]
    assert costs(p, apart).tolist() == [1, 1, 1]


def test_many_plans_at_once_cost_what_they_cost_alone():
    p = problem([(2, 1, 0, 4), (2, 3, 1, 0)], A_TO_B, TWO_BY_TWO)
    plans = np.array([[[1, 1], [1, 1]], [[2, 0], [0, 2]], [[0, 2], [2, 0]]])
    together = costs(p, plans)
    assert together.shape == (3, 3)
    assert [costs(p, plan).tolist() for plan in plans] == together.tolist()


def test_equivalent_plans_cost_nothing():
    alike = problem([(4, 1.1, 2, 0)], [], TWO_BY_TWO)
    assert costs(alike, np.array([[2], [2]])).tolist() == [0, 0, 0]
    one_worker = problem([(2, 1, 1, 4), (2, 3, 1, 0)], A_TO_B, {"count": 1, "slots": 5})
    assert costs(one_worker, np.array([[2, 2]])).tolist() == [0, 0, 0]
    assert np.isinf(load_limits(alike, np.zeros(3))).all()


def test_fewer_tasks_than_slots_bound_the_worst_load():
    p = problem([(1, 5, 0, 0), (1, 1, 0, 0)], A_TO_B, {"count": 2, "slots": 8})
    assert p.most[0] == 6
    assert costs(p, np.array([[1, 0], [0, 1]]))[0] == pytest.approx((5 - 3) / (6 - 3))


def test_output_divides_over_the_links_of_several_edges():
    """a sends to 1 task of b and 3 of c: 8 / 4 = 2 over each link. Alone on its worker, all 8 leave; with b, 6."""
    edges = [{"from": "a", "to": "b", "partitioning": "hash"}, {"from": "a", "to": "c", "partitioning": "rebalance"}]
    p = problem([(1, 0, 0, 8), (1, 0, 0, 0), (3, 0, 0, 0)], edges, {"count": 2, "slots": 4})
    assert worker_loads(p, np.array([[1, 0, 0], [0, 1, 3]]))[2].tolist() == [8, 0]
    assert worker_loads(p, np.array([[1, 1, 0], [0, 0, 3]]))[2].tolist() == [6, 0]
    assert worker_loads(p, np.array([[1, 0, 2], [0, 1, 1]]))[2].tolist() == [4, 0]


def test_shares_divide_the_output_where_they_are_stated():
    """A quarter of a's 8 goes to b, the rest to the 3 tasks of c."""
    edges = [
        {"from": "a", "to": "b", "partitioning": "hash", "share": 0.25},
        {"from": "a", "to": "c", "partitioning": "hash", "share": 0.75},
    ]
    p = problem([(1, 0, 0, 8), (1, 0, 0, 0), (3, 0, 0, 0)], edges, {"count": 2, "slots": 4})
    assert worker_loads(p, np.array([[1, 1, 0], [0, 0, 3]]))[2].tolist() == [6, 0]
    assert worker_loads(p, np.array([[1, 0, 2], [0, 1, 1]]))[2].tolist() == [2 + 6 / 3, 0]


def test_forward_pairs_on_one_worker_send_nothing():
    edges = [{"from": "a", "to": "b", "partitioning": "forward"}]
    p = problem([(3, 0, 0, 5), (3, 0, 0, 0)], edges, {"count": 2, "slots": 3})
    assert worker_loads(p, np.array([[3, 0], [0, 3]]))[2].tolist() == [15, 0]
    assert worker_loads(p, np.array([[2, 1], [1, 2]]))[2].tolist() == [5, 0]


@pytest.mark.parametrize("partitioning", ["hash", "rebalance", "broadcast"])
def test_all_to_all_partitionings_count_alike(partitioning: str):
    p = problem(
        [(2, 0, 0, 6), (3, 0, 0, 0)], [{"from": "a", "to": "b", "partitioning": partitioning}], {"count": 2, "slots": 3}
    )
    assert worker_loads(p, np.array([[2, 1], [0, 2]]))[2].tolist() == pytest.approx([2 * 6 * 2 / 3, 0])


def test_sinks_send_nothing():
    p = problem([(1, 0, 0, 3), (1, 0, 0, 7)], A_TO_B, TWO_BY_TWO)
    assert worker_loads(p, np.array([[1, 0], [0, 1]]))[2].tolist() == [3, 0]


def test_larger_workers_may_carry_more():
    """Load is relative to capacity: 6 of 3 cores in all; the big worker full of a is the worst, 2 * 2 / 2."""
    cluster = {"workers": [{"name": "big", "slots": 2, "cores": 2}, {"name": "small", "slots": 1, "cores": 1}]}
    p = problem([(3, 2, 0, 0)], [], cluster)
    assert p.least[0] == 2
    assert p.most[0] == 2  # 4 / 2 on the big one, 2 / 1 on the small one: all plans are equal
    p = problem([(2, 2, 0, 0), (1, 1, 0, 0)], [], cluster)
    assert p.least[0] == pytest.approx(5 / 3)
    assert p.most[0] == 2
    assert worker_loads(p, np.array([[1, 1], [1, 0]]))[0].tolist() == [1.5, 2]
    assert costs(p, np.array([[1, 1], [1, 0]]))[0] == 1


def test_a_worker_that_states_no_capacity_is_not_constrained():
    cluster = {"workers": [{"name": "known", "slots": 2, "net": 4}, {"name": "unknown", "slots": 2}]}
    p = problem([(2, 1, 0, 4), (2, 1, 0, 0)], A_TO_B, cluster)
    assert p.most.tolist() == [2, 0, 2]
    assert worker_loads(p, np.array([[0, 2], [2, 0]]))[2].tolist() == [0, 0]
    assert worker_loads(p, np.array([[2, 0], [0, 2]]))[2].tolist() == [2, 0]


def test_capacities_of_equal_workers_change_no_cost():
    plain = problem([(2, 1, 2, 4), (2, 3, 1, 0)], A_TO_B, TWO_BY_TWO)
    stated = problem([(2, 1, 2, 4), (2, 3, 1, 0)], A_TO_B, {**TWO_BY_TWO, "cores": 4, "io": 5e8, "net": 1.25e9})
    plans = np.array([[[1, 1], [1, 1]], [[2, 0], [0, 2]]])
    assert costs(plain, plans) == pytest.approx(costs(stated, plans))


def test_thresholds_as_largest_loads():
    """Eq. 10: 4 + 0.5 (6 - 4) = 5, 1 + 0.25 (2 - 1) = 1.25; a threshold of 1 limits nothing."""
    p = problem([(2, 1, 0, 4), (2, 3, 1, 0)], A_TO_B, TWO_BY_TWO)
    assert load_limits(p, np.array([0.5, 0.25, 1])) == pytest.approx([5, 1.25, np.inf])
