"""Several threads on one search tree do what one does."""

import itertools
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from models.errors import InvalidInput
from models.placement import count_plans, place, shared_walk
from models.placement.budget import Budget
from models.placement.cost import costs, load_limits
from models.placement.problem import Problem
from models.placement.search import Search, Verdict, enumerate_plans, search_first
from models.placement.shared_walk import SharedWalk, split
from models.placement.tree import NODES, PAUSED, PLANS, advance, start
from models.plan import CostVector

THRESHOLDS = [(1.0, 1.0, 1.0), (0.4, 1.0, 1.0), (0.3, 0.9, 0.6), (0.0, 0.0, 0.0)]


@pytest.fixture(autouse=True)
def look_up_often(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Small trees, too, are to be shared."""
    monkeypatch.setattr(shared_walk, "STEPS_OF_MANY", 40)
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) <= before


@pytest.fixture
def q2(q2_scaled) -> Problem:
    """1,046 plans in all."""
    return Problem.of(*q2_scaled(4, 4))


@pytest.mark.parametrize("thresholds", THRESHOLDS)
@pytest.mark.parametrize("threads", [2, 5])
def test_threads_visit_the_same_nodes_once(q2, thresholds, threads):
    alone, shared = (Search(q2, load_limits(q2, np.array(thresholds)), threads=t) for t in (1, threads))
    budget = Budget()
    assert alone.count(Budget()) and shared.count(budget)
    assert (shared.plans, shared.nodes) == (alone.plans, alone.nodes)
    assert budget.nodes == shared.nodes


@pytest.mark.parametrize("steps", [1, 7, 40])
def test_parts_that_are_split_off_make_up_the_tree(problem_of, steps):
    tree = Search(problem_of((2, 2, 4, 1), 3, 9), np.full(3, np.inf)).tree  # CAPSys Figure 4
    nothing = np.zeros((0, 3, 4), dtype=np.int64)
    walks, nodes, plans, parts = [start(tree)], 0, 0, 0
    while walks:
        walk = walks.pop()
        if advance(tree, walk, nothing, steps)[0] == PAUSED:
            part = split(tree, walk)
            parts += part is not None
            walks += [walk] if part is None else [walk, part]
        nodes, plans = nodes + walk.position[NODES], plans + walk.position[PLANS]
        walk.position[[NODES, PLANS]] = 0
    whole = Search(problem_of((2, 2, 4, 1), 3, 9), np.full(3, np.inf))
    assert whole.count(Budget())
    assert (plans, nodes) == (276, whole.nodes)
    assert parts > 10


def test_threads_meet_every_plan_once(q2):
    def met(threads: int) -> list[bytes]:
        return sorted(plan.tobytes() for batch in enumerate_plans(q2, threads=threads) for plan in batch)

    assert met(3) == met(1)
    assert len(set(met(3))) == 1046


def test_the_first_plan_ends_the_work_of_all(q2):
    thresholds = np.array([0.1, 0.2, 0.31])
    budget = Budget()
    found = search_first(q2, load_limits(q2, thresholds), budget, threads=4)
    assert found.verdict is Verdict.FEASIBLE
    assert (costs(q2, found.counts) <= thresholds + 1e-9).all()
    every = Search(q2, load_limits(q2, thresholds))
    every.count(Budget())
    assert budget.nodes <= every.nodes


def test_no_plan_is_a_proof_by_all(q2):
    assert search_first(q2, load_limits(q2, np.array([0.09, 0.2, 1.0])), Budget(), threads=4).verdict is (
        Verdict.INFEASIBLE
    )


def test_tries_are_counted_together(problem_of):
    walk, budget = SharedWalk(Search(problem_of((30, 30, 30), 12, 12), np.full(3, np.inf)).tree), Budget()
    assert len(walk.walk(0, budget, 400, threads=3)) == 0
    assert not walk.ended
    assert 0 < budget.nodes == walk.nodes <= 400


def test_the_time_limit_ends_all(problem_of):
    ticks = itertools.count()
    search = Search(problem_of((30, 30, 30, 30), 12, 12), np.full(3, np.inf), threads=3)
    assert not search.count(Budget(lambda: float(next(ticks)), 50.0))
    assert search.plans > 0


def test_an_error_in_one_thread_ends_all(q2, monkeypatch):
    def broken(*_: object) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(shared_walk, "advance", broken)
    with pytest.raises(MemoryError):
        Search(q2, np.full(3, np.inf), threads=3).count(Budget())


def test_a_placement_may_take_several_threads(q2_scaled):
    thresholds = CostVector(cpu=0.1, io=0.2, net=0.31)
    assert place(*q2_scaled(4, 4), "caps", thresholds, threads=2).status == "feasible"


def test_no_threads_are_refused(q2_scaled):
    with pytest.raises(InvalidInput, match="at least one thread, but got 0"):
        count_plans(*q2_scaled(4, 4), threads=0)
