"""The tree search: how many plans there are, and that it neither misses nor repeats one."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from known_answers.every_plan import as_counts, canonical, enumerate_plans, every_plan, problems
from models.placement.cost import TOLERANCE, costs, load_limits
from models.placement.kernels.tree import EXHAUSTED, NODES, advance, start
from models.placement.problem import Problem
from models.placement.search.tree import Feasibility, exploration_order, search_first, tree_of
from models.placement.time_limit import TimeLimit


def nodes_to_the_end(p: Problem, alpha: float) -> int:
    limits = load_limits(p, np.array([alpha, 1, 1]))
    tree = tree_of(p, limits, exploration_order(p, limits), np.arange(len(p.workers)))
    walk, buffer = start(tree), np.zeros((1000, *p.slots.shape, len(p.operators)), dtype=np.int64)
    assert advance(tree, walk, buffer, 10_000_000)[0] == EXHAUSTED
    return int(walk.position[NODES])


def test_pruning_visits_fewer_nodes(problem_of):
    p = problem_of((4, 4, 4, 4), 4, 4, cpu=[1, 2, 3, 4])
    assert 0 < nodes_to_the_end(p, 0.05) < nodes_to_the_end(p, 1.0) / 4


def test_an_exhausted_time_limit_leaves_the_answer_open(q2_scaled):
    p = Problem.of(*q2_scaled(16, 64))
    ticks = itertools.count()
    found = search_first(p, load_limits(p, np.array([0.05, 1, 0.3])), TimeLimit(lambda: float(next(ticks)), 2.0))
    assert (found.verdict, found.counts) == (Feasibility.UNKNOWN, None)


@given(problems())
def test_the_search_meets_every_plan_once(p: Problem):
    met = [canonical(p, plan) for batch in enumerate_plans(p) for plan in batch]
    assert len(met) == len(set(met))
    assert set(met) == every_plan(p)


@given(problems(), st.tuples(*[st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.8, 1.0])] * 3))
def test_pruning_loses_no_plan_within_the_thresholds(p: Problem, thresholds: tuple[float, float, float]):
    alpha = np.array(thresholds)
    within = {plan for plan in every_plan(p) if (costs(p, as_counts(p, plan)) <= alpha + TOLERANCE).all()}
    assert {canonical(p, plan) for batch in enumerate_plans(p, alpha) for plan in batch} == within
    found = search_first(p, load_limits(p, alpha), TimeLimit())
    assert found.verdict is (Feasibility.FEASIBLE if within else Feasibility.INFEASIBLE)


@given(problems(equal_workers=True))
def test_costs_of_equal_workers_lie_between_0_and_1(p: Problem):
    for batch in enumerate_plans(p):
        cost = costs(p, batch)
        assert (cost >= 0).all() and (cost <= 1).all()


@given(problems())
def test_costs_of_workers_that_differ_lie_between_0_and_1(p: Problem):
    for batch in enumerate_plans(p):
        cost = costs(p, batch)
        assert (cost >= 0).all() and (cost <= 1).all()
