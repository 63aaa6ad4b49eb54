"""The Pareto front against the published instance, and against all plans of small ones."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from known_answers.drawn_instances import draw_edges, draw_operators, instance_of
from known_answers.every_plan import enumerate_plans
from models.cluster import Cluster
from models.dataflow import Dataflow
from models.errors import Infeasible, InvalidInput
from models.placement import Effort
from models.placement.cost import as_array, costs
from models.placement.front import Front, efficient, pareto_front, split
from models.placement.kernels.problem import Floats
from models.placement.problem import Problem


def costs_of(front: Front) -> Floats:
    return np.array([as_array(point.cost) for point in front.points])


def test_the_front_of_q2_scaled_on_4_workers_of_4_slots(q2_scaled):
    front = pareto_front(*q2_scaled(4, 4))
    expected = [[0.099102, 0.2, 0.533718], [0.099176, 0.2, 0.308327], [0.298286, 0.2, 0.294306]]
    assert costs_of(front) == pytest.approx(np.array(expected), abs=5e-7)
    assert (front.status, front.step, front.open_corners, front.seconds) == ("optimal", 0.0, (), None)
    assert {point.status for point in front.points} == {"optimal"}


def test_128_tasks_are_exact_in_seconds(q2_scaled):
    front = pareto_front(*q2_scaled(8, 16))
    assert (front.status, front.step, len(front.points)) == ("optimal", 0.0, 12)


def test_one_plan_that_is_best_in_everything(chain, equal_workers):
    """Two `a` (cpu 1, net 1) and two `b` (nothing) on two workers of two slots: L_min is 1 in cpu, L_max 2.

    One of each on both workers: cpu is even, and half of what the one `a` sends leaves, 0.5 of at most 2.
    Both `a` on one worker: cpu 2 is the worst, and all that they send leaves. The first is better in both.
    """
    front = pareto_front(chain(2, 2, cpu=[1.0, 0.0], io=[0.0, 0.0], net=[1.0, 0.0]), equal_workers(2, 2))
    assert [as_array(point.cost).tolist() for point in front.points] == [[0.0, 0.0, 0.25]]
    assert front.points[0].placement == {"tm-1": {"a": 1, "b": 1}, "tm-2": {"a": 1, "b": 1}}


@st.composite
def instances(draw: st.DrawFn) -> tuple[Dataflow, Cluster]:
    operators = draw_operators(draw, draw(st.integers(1, 3)), memory_mb=st.sampled_from([1, 2]))
    edges = draw_edges(draw, len(operators), "hash")
    tasks = sum(o["parallelism"] for o in operators)
    workers = [{"name": f"w{i}", "slots": draw(st.sampled_from([2, 3])), "cores": 2, "memory_mb": 5} for i in range(3)]
    workers.append({"name": "rest", "slots": tasks, "cores": 4, "memory_mb": 2 * tasks})
    return instance_of(operators, edges, workers)


@pytest.mark.slow
@given(instances(), st.sampled_from([0.0, 0.05, 0.3]))
def test_every_plan_is_covered_by_a_point_and_no_point_is_bettered(instance: tuple[Dataflow, Cluster], step: float):
    p = Problem.of(*instance)
    every = np.unique(np.concatenate([costs(p, plans) for plans in enumerate_plans(p)]).round(12), axis=0)
    front = pareto_front(*instance, step=step)
    found = costs_of(front)
    assert front.status == "optimal"
    for point in front.points:
        cost = as_array(point.cost)
        assert cost == pytest.approx(costs(p, p.counts(point.placement)))
        assert not ((every <= cost + 1e-8).all(axis=1) & (every < cost - 1e-7).any(axis=1)).any()
    covered = (found[:, None, :] <= every[None, :, :] + step + 1e-7).all(axis=2).any(axis=0)
    assert covered.all()


@pytest.mark.slow
@given(instances())
def test_without_a_step_the_front_is_the_one_of_all_plans(instance: tuple[Dataflow, Cluster]):
    p = Problem.of(*instance)
    every = np.unique(np.concatenate([costs(p, plans) for plans in enumerate_plans(p)]).round(8), axis=0)
    expected = every[[not ((every <= c).all(axis=1) & (every < c).any(axis=1)).any() for c in every]]
    assert costs_of(pareto_front(*instance)) == pytest.approx(expected, abs=2e-8)


def test_unproved_results_are_marked(q2_scaled):
    effort = Effort(repair_steps=20, repair_steps_at_end=20, tries=100, tries_at_end=100)
    ticks = itertools.count()
    front = pareto_front(*q2_scaled(16, 16), effort=effort, clock=lambda: float(next(ticks)), time_limit_s=20.0)
    assert (front.status, front.step) == ("feasible", 0.01)
    assert front.open_corners
    assert front.points
    assert front.seconds is not None and front.seconds >= 20


def test_a_point_splits_the_boxes_it_lies_in():
    corners = split([np.array([1.0, 1.0, 1.0])], np.array([0.2, 0.3, 0.4]))
    assert sorted(u.tolist() for u in corners) == [[0.2, 1, 1], [1, 0.3, 1], [1, 1, 0.4]]
    # Only the first box reaches below 0.1 in cpu; of its parts, (0.1, 1, 1) and two more that others do not hold.
    corners = split(corners, np.array([0.1, 0.5, 0.6]))
    assert sorted(u.tolist() for u in corners) == [[0.1, 1, 1], [0.2, 0.5, 1], [0.2, 1, 0.6], [1, 0.3, 1], [1, 1, 0.4]]


def test_of_equal_costs_the_first_is_kept():
    assert efficient(np.array([[1.0, 0, 0], [0, 1, 0], [1, 0, 0], [1, 1, 0]])) == [True, True, False, False]


@pytest.mark.parametrize("step", [-0.1, 1.0])
def test_a_step_outside_0_to_1_is_refused(chain, equal_workers, step):
    with pytest.raises(InvalidInput, match="0 <= step < 1"):
        pareto_front(chain(2), equal_workers(2, 2), step=step)


def test_memory_that_fits_nowhere(chain, equal_workers):
    with pytest.raises(Infeasible, match="do not fit the memory"):
        pareto_front(chain(3, memory_mb=[600.0]), equal_workers(2, 4, memory_mb=1000))
