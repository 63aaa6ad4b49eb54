"""The tree search: how many plans there are, and that it neither misses nor repeats one."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.cluster import Cluster
from models.dataflow import Dataflow
from models.placement import count_plans
from models.placement.budget import Budget
from models.placement.cost import TOLERANCE, costs, load_limits
from models.placement.problem import Problem
from models.placement.search import NO_THRESHOLDS, Search, Verdict, count_within, enumerate_plans, search_first


@pytest.mark.parametrize(
    ("parallelism", "workers", "slots", "plans"),
    [
        ((2, 5, 8, 1), 4, 4, 80),  # Q1-sliding, CAPSys section 3.2
        ((2, 2, 4, 1), 3, 3, 16),  # CAPSys Figure 4
        ((2, 2, 4, 1), 3, 9, 276),
        ((4, 4, 4, 4), 4, 4, 465),
        ((8, 8), 4, 4, 8),
        ((10,), 4, 4, 7),
        ((5, 5, 5), 3, 5, 40),
    ],
)
def test_number_of_distinct_plans(chain, equal_workers, parallelism, workers, slots, plans):
    assert count_plans(chain(*parallelism), equal_workers(workers, slots)) == plans


def test_workers_are_interchangeable_only_within_their_type(chain):
    workers = [{"name": "x", "slots": 2}, {"name": "big", "slots": 4}, {"name": "y", "slots": 2}]
    assert count_plans(chain(2, 2, 2), Cluster.model_validate({"workers": workers})) == 39


def test_the_order_of_exploration_changes_no_count(problem_of):
    p = problem_of((2, 5, 8, 1), 4, 4, cpu=[0.1, 0.4, 0.7, 0.02])
    thresholds = np.array([0.6, 1.0, 0.9])
    counted = {count_within(p, thresholds, Budget(), reorder=reorder) for reorder in (False, True)}
    assert len(counted) == 1
    assert 0 < counted.pop()[0] < 80


def test_pruning_visits_fewer_nodes(problem_of):
    p = problem_of((4, 4, 4, 4), 4, 4, cpu=[1, 2, 3, 4])
    every, tight = (Search(p, load_limits(p, np.array([alpha, 1, 1]))) for alpha in (1.0, 0.05))
    assert every.count(Budget()) and tight.count(Budget())
    assert 0 < tight.plans < every.plans
    assert tight.nodes < every.nodes / 4


def test_counting_stops_when_the_time_is_over(problem_of):
    ticks = itertools.count()
    plans, complete = count_within(
        problem_of((30, 30, 30, 30), 12, 12), NO_THRESHOLDS, Budget(lambda: float(next(ticks)), 3.0)
    )
    assert not complete
    assert plans > 0


@st.composite
def problems(draw: st.DrawFn, *, equal_workers: bool = False) -> Problem:
    """Small dataflows with several edges of all kinds, on workers that differ, some of them with memory."""
    load = st.sampled_from([0.0, 0.5, 1.0, 3.0, 7.0])
    n = draw(st.integers(1, 3))
    operators = [
        {
            "name": f"o{i}",
            "parallelism": draw(st.integers(1, 3)),
            "cpu": draw(load),
            "io": draw(load),
            "net": draw(load),
        }
        | ({} if equal_workers else {"memory_mb": draw(st.sampled_from([0.0, 1.0, 2.0]))})
        for i in range(n)
    ]
    edges = []
    for a, b in itertools.combinations(range(n), 2):
        kinds = ["none", "hash", "rebalance", "broadcast"]
        kinds += ["forward"] if operators[a]["parallelism"] == operators[b]["parallelism"] else []
        kind = draw(st.sampled_from(kinds))
        if kind != "none":
            edges.append(
                {"from": f"o{a}", "to": f"o{b}", "partitioning": kind, "share": draw(st.sampled_from([1, 0.5]))}
            )
    tasks = sum(o["parallelism"] for o in operators)
    if equal_workers:
        count = draw(st.integers(1, 3))
        slots = draw(st.integers(-(-tasks // count), -(-tasks // count) + 1))
        workers = [{"name": f"w{i}", "slots": slots} for i in range(count)]
    else:
        types = st.fixed_dictionaries(
            {
                "slots": st.integers(2, 4),
                "cores": st.sampled_from([None, 1, 2]),
                "memory_mb": st.sampled_from([None, 4.0, 8.0]),
            }
        )
        pool = draw(st.lists(types, min_size=1, max_size=2))
        workers = [{"name": f"w{i}", **draw(st.sampled_from(pool))} for i in range(draw(st.integers(1, 3)))]
        missing = tasks - sum(w["slots"] for w in workers)
        workers.append({"name": "rest", "slots": max(1, missing), "memory_mb": None})
    return Problem.of(
        Dataflow.model_validate({"operators": operators, "edges": edges}), Cluster.model_validate({"workers": workers})
    )


def every_plan(p: Problem) -> set[tuple]:
    """All distinct plans by trying all counts: per worker type, the sorted rows of its workers."""
    plans = set()

    def rows(w: int, left: tuple[int, ...], chosen: list[tuple[int, ...]]) -> None:
        if w == len(p.workers):
            if not any(left):
                plans.add(canonical(p, chosen))
            return
        for row in itertools.product(*(range(number + 1) for number in left)):
            if sum(row) <= p.slots[w] and np.dot(row, p.memory_mb) <= p.memory_limit_mb[w]:
                rows(w + 1, tuple(a - b for a, b in zip(left, row, strict=True)), [*chosen, row])

    rows(0, tuple(int(x) for x in p.parallelism), [])
    return plans


def canonical(p: Problem, rows: list) -> tuple:
    return tuple(sorted((int(kind), tuple(int(x) for x in row)) for kind, row in zip(p.worker_type, rows, strict=True)))


def as_counts(p: Problem, plan: tuple) -> np.ndarray:
    """Rows back on workers of their type."""
    rows = {kind: [row for k, row in plan if k == kind] for kind in set(p.worker_type.tolist())}
    return np.array([rows[kind].pop() for kind in p.worker_type.tolist()])


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
    found = search_first(p, load_limits(p, alpha), Budget())
    assert found.verdict is (Verdict.FEASIBLE if within else Verdict.INFEASIBLE)


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
