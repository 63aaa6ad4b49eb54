"""Threshold auto-tuning (CAPSys section 5.2) against known minima, and against all plans of small instances."""

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
from models.placement import Effort, tune
from models.placement.cost import as_array, costs
from models.placement.problem import Problem


def test_q2_scaled_on_4_workers_of_4_slots(q2_scaled):
    tuning = tune(*q2_scaled(4, 4))
    assert as_array(tuning.single) == pytest.approx([0.09910, 0.2, 0.29431], abs=5e-6)
    assert tuning.relaxation == pytest.approx(1.0476, abs=5e-5)
    assert tuning.grid_relaxation == pytest.approx(1.1)
    assert as_array(tuning.cost) == pytest.approx([0.099176, 0.2, 0.308327], abs=5e-7)
    assert tuning.status == "optimal"
    assert tuning.gap == 0
    assert tuning.single_bound == tuning.single


def test_q2_scaled_on_8_workers_of_8_slots(q2_scaled):
    tuning = tune(*q2_scaled(8, 8))
    assert as_array(tuning.single) == pytest.approx([0.02903, 0, 0.28994], abs=5e-6)
    assert tuning.relaxation == pytest.approx(1.0718, abs=5e-5)
    assert tuning.single_proved == {"cpu": True, "io": True, "net": True}
    assert tuning.bound == pytest.approx(tuning.relaxation)
    assert tuning.thresholds.io == pytest.approx(tuning.relaxation * 0.01)  # its minimum is 0: relaxed from the floor


def test_the_front_of_q2_scaled(q2_scaled):
    p = Problem.of(*q2_scaled(4, 4))
    cost = np.unique(np.concatenate([costs(p, plans) for plans in enumerate_plans(p)]).round(9), axis=0)
    dominated = [((cost <= c) & (cost < c).any(axis=1)[:, None]).all(axis=1).any() for c in cost]
    front = cost[~np.array(dominated)]
    assert front == pytest.approx(
        np.array([[0.099102, 0.2, 0.533718], [0.099176, 0.2, 0.308327], [0.298286, 0.2, 0.294306]]), abs=1e-6
    )


@st.composite
def instances(draw: st.DrawFn) -> tuple[Dataflow, Cluster]:
    operators = draw_operators(draw, draw(st.integers(1, 3)))
    edges = draw_edges(draw, len(operators), "hash")
    tasks = sum(o["parallelism"] for o in operators)
    workers = [{"name": f"w{i}", "slots": draw(st.sampled_from([2, 3])), "cores": 2} for i in range(3)]
    workers.append({"name": "rest", "slots": max(1, tasks - sum(w["slots"] for w in workers)), "cores": 4})
    return instance_of(operators, edges, workers)


@pytest.mark.slow
@given(instances())
def test_tuning_of_small_instances_is_exact_and_pareto_optimal(instance: tuple[Dataflow, Cluster]):
    p = Problem.of(*instance)
    every = np.concatenate([costs(p, plans) for plans in enumerate_plans(p)])
    tuning = tune(*instance, idle_share=0.0)
    single = every.min(axis=0)
    assert as_array(tuning.single) == pytest.approx(single, abs=1e-8)
    assert tuning.relaxation == pytest.approx((every / np.maximum(single, 0.01)).max(axis=1).min(), abs=1e-6)
    cost = as_array(tuning.cost)
    assert cost == pytest.approx(costs(p, p.counts(tuning.placement)))
    assert (cost <= as_array(tuning.thresholds) + 1e-8).all()
    better = (every <= cost + 1e-8).all(axis=1) & (every < cost - 1e-7).any(axis=1)
    assert not better.any()
    assert tuning.status == "optimal"


def test_nothing_to_balance(chain, equal_workers):
    tuning = tune(chain(3, net=[0.0]), equal_workers(1, 4))
    assert as_array(tuning.cost).tolist() == [0, 0, 0]
    assert as_array(tuning.thresholds).tolist() == [0, 0, 0]
    assert (tuning.relaxation, tuning.grid_relaxation, tuning.status) == (0, 1, "optimal")


def test_the_same_seed_gives_the_same_answer(q2_scaled):
    effort = Effort(repair_steps=50, repair_steps_at_end=50, tries=10_000, tries_at_end=10_000)
    answers = [tune(*q2_scaled(16, 16), seed=3, effort=effort) for _ in range(2)]
    assert answers[0] == answers[1]
    assert answers[0].seconds is None


@pytest.mark.slow
def test_what_is_only_found_is_not_called_proved(q2_scaled):
    effort = Effort(repair_steps=50, repair_steps_at_end=50, tries=1000, tries_at_end=1000)
    tuning = tune(*q2_scaled(16, 64), effort=effort)
    assert tuning.status == "feasible"
    assert not tuning.single_proved["cpu"]
    assert tuning.single_bound.cpu < tuning.single.cpu
    assert (as_array(tuning.cost) >= as_array(tuning.single) - 1e-9).all()


def test_the_time_limit_ends_it_with_the_plan_so_far(q2_scaled):
    dataflow, cluster = q2_scaled(16, 64)
    ticks = itertools.count()
    tuning = tune(dataflow, cluster, clock=lambda: float(next(ticks)), time_limit_s=10.0)
    assert tuning.status == "feasible"
    placed = sum(sum(tasks.values()) for tasks in tuning.placement.values())
    assert placed == dataflow.tasks


def test_memory_that_fits_nowhere(chain, equal_workers):
    with pytest.raises(Infeasible, match="do not fit the memory"):
        tune(chain(3, memory_mb=[600.0]), equal_workers(2, 4, memory_mb=1000))


@pytest.mark.parametrize("wrong", [{"floor": 0.0}, {"relaxation_step": 1.0}])
def test_settings_that_could_not_work_are_refused(chain, equal_workers, wrong):
    with pytest.raises(InvalidInput, match="must"):
        tune(chain(2), equal_workers(2, 2), **wrong)
