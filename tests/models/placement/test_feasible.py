"""A first plan within thresholds: found fast, excluded by proof, or left open."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from known_answers.drawn_instances import draw_operators, edges_in_a_row, instance_of
from models.cluster import Cluster
from models.dataflow import Dataflow
from models.placement.cost import TOLERANCE, costs, load_limits, worker_loads
from models.placement.feasible import first_feasible
from models.placement.problem import Problem
from models.placement.search.repair import Repair
from models.placement.search.tree import Feasibility, search_first
from models.placement.time_limit import TimeLimit

PUBLISHED_THRESHOLDS = [(0.08, 0.15, 0.6), (0.15, 0.25, 0.8), (0.25, 0.3, 0.9)]
"""CAPSys section 6.5.1."""


def assert_plan_of(p: Problem, counts: np.ndarray) -> None:
    assert (counts >= 0).all()
    assert counts.sum(axis=0).tolist() == p.parallelism.tolist()
    assert (counts.sum(axis=1) <= p.slots).all()
    assert (counts @ p.memory_mb <= p.memory_limit_mb).all()


@pytest.mark.parametrize("thresholds", PUBLISHED_THRESHOLDS)
@pytest.mark.parametrize(("workers", "slots", "tasks"), [(8, 8, 64), (16, 16, 256), (16, 64, 1024), (70, 16, 1100)])
def test_published_thresholds_are_met(q2_scaled, workers, slots, tasks, thresholds):
    p = Problem.of(*q2_scaled(workers, slots, tasks))
    found = first_feasible(p, np.array(thresholds), TimeLimit())
    assert found.verdict is Feasibility.FEASIBLE
    assert_plan_of(p, found.counts)
    assert (costs(p, found.counts) <= np.array(thresholds) + TOLERANCE).all()


def test_thresholds_below_every_plan_are_proved_infeasible(q2_scaled):
    p = Problem.of(*q2_scaled(8, 8))
    assert first_feasible(p, np.array([0.029, 1, 1]), TimeLimit()).verdict is Feasibility.INFEASIBLE
    assert first_feasible(p, np.array([0.02904, 1, 1]), TimeLimit()).verdict is Feasibility.FEASIBLE


def test_when_the_time_is_over_the_answer_is_unknown_and_shows_the_closest_plan(q2_scaled):
    p = Problem.of(*q2_scaled(16, 64))
    ticks = itertools.count()
    found = first_feasible(p, np.array([0.0001, 0.0158, 0.2]), TimeLimit(lambda: float(next(ticks)), 2.0))
    assert found.verdict is Feasibility.UNKNOWN
    assert_plan_of(p, found.counts)


def test_memory_is_a_hard_limit():
    """Two tasks of 3 GiB and four of 1 GiB on two workers of 5 GiB: 3 + 1 + 1 on each is the only way."""
    operators = [
        {"name": "large", "parallelism": 2, "cpu": 0, "io": 0, "net": 0, "memory_mb": 3072},
        {"name": "small", "parallelism": 4, "cpu": 1, "io": 0, "net": 0, "memory_mb": 1024},
    ]
    dataflow = Dataflow.model_validate({"operators": operators})
    p = Problem.of(dataflow, Cluster.model_validate({"count": 2, "slots": 5, "memory_mb": 5120}))
    found = first_feasible(p, np.ones(3), TimeLimit())
    assert found.counts.tolist() == [[1, 2], [1, 2]]
    too_small = Problem.of(dataflow, Cluster.model_validate({"count": 3, "slots": 5, "memory_mb": 3500}))
    assert first_feasible(too_small, np.ones(3), TimeLimit()).verdict is Feasibility.INFEASIBLE


@st.composite
def instances(draw: st.DrawFn) -> tuple[Problem, np.ndarray]:
    operators = draw_operators(draw, draw(st.integers(1, 4)), st.floats(0, 10))
    tasks = sum(o["parallelism"] for o in operators)
    edges = edges_in_a_row(len(operators), "hash")
    slots = draw(st.integers(1, 5))
    workers = [
        {"name": f"w{i}", "slots": slots, "cores": draw(st.sampled_from([2.0, 4.0])), "io": 1.0, "net": 1.0}
        for i in range(-(-tasks // slots) + draw(st.integers(0, 1)))
    ]
    thresholds = np.array([draw(st.sampled_from([0.0, 0.2, 0.4, 0.7, 1.0])) for _ in range(3)])
    return Problem.of(*instance_of(operators, edges, workers)), thresholds


@given(instances())
def test_repair_and_search_never_contradict_each_other(instance: tuple[Problem, np.ndarray]):
    p, thresholds = instance
    found = first_feasible(p, thresholds, TimeLimit())
    assert found.verdict is search_first(p, load_limits(p, thresholds), TimeLimit()).verdict
    if found.verdict is Feasibility.FEASIBLE:
        assert_plan_of(p, found.counts)
        assert (costs(p, found.counts) <= thresholds + 1e-6).all()


@given(instances(), st.integers(0, 200))
def test_repair_keeps_every_task_and_says_truly_when_it_is_done(instance: tuple[Problem, np.ndarray], steps: int):
    p, thresholds = instance
    limits = load_limits(p, thresholds)
    repair = Repair(p, limits, seed=0)
    done = repair.run(steps)
    assert_plan_of(p, repair.counts)
    within = worker_loads(p, repair.counts) <= limits[:, None] * (1 + 2 * TOLERANCE)
    assert done == (repair.excess == 0)
    assert within.all() or not done
