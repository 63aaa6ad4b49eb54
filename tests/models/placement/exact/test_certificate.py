"""The configuration LP: patterns, proofs, and the same answers as the search tree and every plan written down."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from known_answers.drawn_instances import draw_edges, draw_operators, instance_of
from known_answers.every_plan import enumerate_plans
from models.errors import Infeasible
from models.placement import place, tune
from models.placement.cost import TOLERANCE, as_array, costs, load_limits
from models.placement.exact.certificate import ConfigurationLp
from models.placement.exact.patterns import Patterns
from models.placement.exact.rounding import rounded
from models.placement.feasible import first_feasible
from models.placement.minimum import Minimiser
from models.placement.problem import Problem
from models.placement.ray import Ray
from models.placement.search.tree import NO_THRESHOLDS, Feasibility
from models.placement.time_limit import TimeLimit
from models.plan.parts import CostVector

JOINT = np.zeros(3), np.ones(3)


def every_plan(p: Problem) -> np.ndarray:
    """(B, W, n): all plans, equal workers and all, written down without any of the searches."""
    rows = list(itertools.product(*(range(tasks + 1) for tasks in p.parallelism)))
    plans = []

    def add(w: int, left: np.ndarray, held: list[tuple[int, ...]]) -> None:
        if w == len(p.workers):
            if not left.any():
                plans.append(held)
            return
        for row in rows:
            fits = (np.array(row) <= left).all() and sum(row) <= p.slots[w]
            if fits and np.dot(row, p.memory_mb) <= p.memory_limit_mb[w] * (1 + TOLERANCE):
                add(w + 1, left - np.array(row), [*held, row])

    add(0, p.parallelism, [])
    return np.array(plans, dtype=np.int64).reshape(-1, len(p.workers), len(p.operators))


@st.composite
def instances(draw: st.DrawFn) -> Problem:
    """Up to 7 tasks on 2 or 3 workers that may differ in slots, capacities and memory; hash and forward edges."""
    same, memory = draw(st.booleans()), draw(st.booleans())
    operators = draw_operators(
        draw,
        draw(st.integers(1, 3)),
        st.sampled_from([0.0, 1.0, 2.0, 3.5, 5.0]),
        parallelism=st.just(2) if same else st.integers(1, 3),
        memory_mb=st.sampled_from([0.0, 100.0, 250.0]) if memory else st.just(0.0),
    )
    kinds = ["hash", "forward"] if same else ["hash", "rebalance", "broadcast"]
    edges = draw_edges(draw, len(operators), *kinds)
    workers = [
        {"name": f"w{i}", "slots": draw(st.sampled_from([3, 4])), "cores": draw(st.sampled_from([2.0, 4.0]))}
        | ({"memory_mb": 900.0} if memory else {})
        for i in range(draw(st.integers(2, 3)))
    ]
    spare = sum(o["parallelism"] for o in operators) - sum(w["slots"] for w in workers)
    if spare > 0:
        workers.append({"name": "rest", "slots": spare, "cores": 2.0} | ({"memory_mb": 900.0} if memory else {}))
    return Problem.of(*instance_of(operators, edges, workers))


def all_patterns(p: Problem, base: np.ndarray, slope: np.ndarray) -> Patterns:
    patterns = Patterns.within(p, load_limits(p, np.ones(3)), base, slope, 10.0)
    assert patterns is not None
    return patterns


def test_patterns_of_a_worker_by_hand(problem_of):
    """2 + 2 tasks on 2 workers of 2 slots: each worker holds two tasks; alike ones cost 1, one of each costs 0."""
    p = problem_of((2, 2), 2, 2, cpu=[1.0, 3.0], io=[0.0, 0.0], net=[0.0, 0.0])
    patterns = all_patterns(p, np.zeros(3), np.array([1.0, 0, 0]))
    assert {tuple(row) for row in patterns.counts.tolist()} == {(2, 0), (1, 1), (0, 2)}
    assert dict(zip(map(tuple, patterns.counts.tolist()), patterns.reach.tolist(), strict=True)) == {
        (1, 1): 0.0,
        (2, 0): 0.0,  # its load lies below the average
        (0, 2): 1.0,
    }
    answer = ConfigurationLp(patterns).smallest(TimeLimit())
    assert (answer.bound, answer.exact) == (0.0, True)
    assert answer.mixture is not None
    assert rounded(p, patterns, answer.mixture).tolist() == [[1, 1], [1, 1]]


def test_what_the_others_cannot_hold_bounds_a_pattern_from_below(problem_of):
    """5 tasks on 2 workers of 3 slots: no worker holds fewer than 2."""
    patterns = all_patterns(problem_of((5,), 2, 3), *JOINT)
    assert sorted(patterns.counts[:, 0].tolist()) == [2, 3]


def test_more_patterns_than_may_be_stored_are_none(q2_scaled):
    p = Problem.of(*q2_scaled(8, 8))
    assert Patterns.within(p, load_limits(p, np.ones(3)), *JOINT, 1.0, most=100, windows=()) is None


def test_a_bound_from_the_dearest_patterns_alone_is_checked_against_all(q2_scaled):
    """256 tasks, network: 12,559 patterns up to 0.2855; 7,000 do not hold them all, and prove the same."""
    p = Problem.of(*q2_scaled(16, 16))
    ray = Ray(np.array([1.0, 1, 0]), np.array([0, 0, 1.0]))
    limits = ray.limits(p, 0.2855)
    full = Patterns.within(p, limits, ray.base, ray.slope, 0.2855)
    few = Patterns.within(p, limits, ray.base, ray.slope, 0.2855, most=7000)
    assert full is not None and few is not None
    assert (full.complete, few.complete) == (True, False)
    assert len(few) <= 7000 < len(full)
    bounds = [ConfigurationLp(patterns).smallest(TimeLimit()).bound for patterns in (full, few)]
    assert bounds == pytest.approx([0.2826724, 0.2826724], abs=1e-6)


@settings(max_examples=100, deadline=None)
@given(instances())
def test_every_plan_is_made_of_patterns_and_costs_no_less_than_the_bound(p: Problem):
    plans = every_plan(p)
    if not len(plans):
        return
    cost = costs(p, plans)
    for base, slope in [(np.array([0, 1.0, 1]), np.array([1.0, 0, 0])), (np.zeros(3), np.array([0.5, 0.1, 1.0]))]:
        ray = Ray(base, slope)
        patterns = all_patterns(p, base, slope)
        known = {
            (int(j), *row): t for j, row, t in zip(patterns.kind, patterns.counts.tolist(), patterns.reach, strict=True)
        }
        reached = [max(known[(int(p.worker_type[w]), *row)] for w, row in enumerate(plan.tolist())) for plan in plans]
        assert reached == pytest.approx([ray.reach(c) for c in cost], abs=1e-9)
        answer = ConfigurationLp(patterns).smallest(TimeLimit())
        assert answer.exact
        assert answer.bound is not None
        assert answer.bound <= min(reached) + 1e-9
        few = Patterns.within(p, load_limits(p, np.ones(3)), base, slope, patterns.reach[-1], most=len(patterns) - 1)
        if few is not None:
            assert not few.complete
            assert (ConfigurationLp(few).smallest(TimeLimit()).bound or 0.0) <= min(reached) + 1e-9


@pytest.mark.slow
@settings(max_examples=1000, deadline=None)
@given(instances())
def test_tree_engine_and_every_plan_agree(p: Problem):
    """The least cost in each dimension and together: with the certificate, by the tree, from all plans written down."""
    plans = every_plan(p)
    walked = list(enumerate_plans(p))
    assert bool(walked) == bool(len(plans))
    if not len(plans):
        assert first_feasible(p, NO_THRESHOLDS, TimeLimit()).verdict is Feasibility.INFEASIBLE
        return
    cost = costs(p, plans)
    assert np.unique(costs(p, np.concatenate(walked)).round(9), axis=0) == pytest.approx(
        np.unique(cost.round(9), axis=0)
    )
    single = cost.min(axis=0)
    start = first_feasible(p, NO_THRESHOLDS, TimeLimit())
    assert start.counts is not None
    for d in range(3):
        slope = np.eye(3)[d]
        least = Minimiser(p, TimeLimit()).minimise(Ray(1 - slope, slope), [start.counts])
        assert least.proved
        assert least.t == pytest.approx(single[d], abs=1e-8)
    floor = np.maximum(single, 0.01)
    joint = Minimiser(p, TimeLimit()).minimise(Ray(np.zeros(3), floor), [start.counts])
    assert joint.proved
    assert joint.t == pytest.approx((cost / floor).max(axis=1).min(), abs=1e-6)


@settings(max_examples=200, deadline=None)
@given(instances(), st.tuples(*[st.sampled_from([0.0, 0.2, 0.5, 1.0])] * 3))
def test_thresholds_are_called_infeasible_only_when_no_plan_meets_them(p: Problem, alpha: tuple[float, float, float]):
    plans = every_plan(p)
    met = bool(len(plans)) and bool((costs(p, plans) <= np.array(alpha) + 1e-12).all(axis=1).any())
    limits = load_limits(p, np.array(alpha))
    patterns = Patterns.within(p, limits, np.array(alpha), np.zeros(3), 1.0)
    assert patterns is not None
    answer = ConfigurationLp(patterns).smallest(TimeLimit())
    if met:
        assert answer.mixture is not None
    if answer.mixture is None:
        assert answer.impossible
        assert first_feasible(p, np.array(alpha), TimeLimit()).verdict is Feasibility.INFEASIBLE


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "slots"), [(16, 16), (16, 64)])
def test_joint_minimum_of_large_instances_is_proved(q2_scaled, workers: int, slots: int):
    tuning = tune(*q2_scaled(workers, slots))
    assert tuning.gap is not None
    assert tuning.gap <= 0.005
    assert tuning.single_proved["io"]
    if slots == 16:
        assert tuning.status == "optimal"


def test_ten_thousand_tasks_are_proved(q2_scaled):
    tuning = tune(*q2_scaled(1000, 10))
    assert tuning.gap is not None
    assert tuning.gap <= 0.01
    assert (as_array(tuning.cost) <= as_array(tuning.thresholds) + 1e-9).all()


def test_the_time_limit_also_holds_for_the_certificate(q2_scaled):
    """On a clock that goes on by 10 ms whenever it is asked: how long the work takes here does not matter."""
    ticks = itertools.count()
    tuning = tune(*q2_scaled(16, 64), clock=lambda: next(ticks) / 100, time_limit_s=0.3)
    assert tuning.status == "feasible"
    assert tuning.seconds is not None
    assert tuning.seconds < 1.0


def test_thresholds_right_below_the_joint_minimum_of_256_tasks_are_proved_infeasible(q2_scaled):
    dataflow, cluster = q2_scaled(16, 16)
    least = tune(dataflow, cluster).thresholds
    assert place(dataflow, cluster, "caps", least).status == "feasible"
    below = CostVector(cpu=least.cpu * 0.9999, io=least.io * 0.9999, net=least.net * 0.9999)
    with pytest.raises(Infeasible, match="proved"):
        place(dataflow, cluster, "caps", below)
