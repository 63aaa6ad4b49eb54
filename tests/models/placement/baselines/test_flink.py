"""Random plans, and jobs that are submitted one after the other."""

from collections import Counter
from math import comb

import numpy as np
import pytest

from models.placement import place
from models.placement.baselines.flink import fill, scatter, spread


def test_a_random_plan_holds_every_task_within_the_slots(chain, equal_workers):
    result = place(chain(3, 4, 2), equal_workers(4, 3), "random", seed=5)
    totals = Counter()
    for tasks in result.placement.values():
        totals.update(tasks)
        assert sum(tasks.values()) <= 3
    assert totals == {"a": 3, "b": 4, "c": 2}
    assert result.placement == place(chain(3, 4, 2), equal_workers(4, 3), "random", seed=5).placement


def test_random_plans_are_uniform_over_slots(problem_of):
    """Two tasks on two workers of 3 slots: on one worker in 2 * C(3, 2) of the C(6, 2) choices of slots, 2 in 5."""
    problem = problem_of((2,), 2, 3)
    together = np.mean([scatter(problem, seed).max() == 2 for seed in range(4000)])
    assert together == pytest.approx(2 * comb(3, 2) / comb(6, 2), abs=0.03)


def test_jobs_are_placed_in_the_order_of_submission(problem_of):
    problem = problem_of((2, 2, 2, 2), 4, 2)
    assert fill(problem, 1, [("c", "d"), ("a", "b")])[:2, :2].sum() == 0
    assert fill(problem, 1, [("a", "b"), ("c", "d")])[2:, :2].sum() == 0
    evenly = spread(problem, 1, [("a", "b"), ("c", "d")])
    assert evenly[:, :2].sum(axis=1).tolist() == [1, 1, 1, 1]
    assert (evenly.sum(axis=0) == 2).all()
