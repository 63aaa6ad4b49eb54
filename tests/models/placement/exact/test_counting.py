"""The number of plans: the published ones, those written down one by one, and more than 64 bits hold."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from known_answers.every_plan import as_counts, every_plan, problems
from models.cluster import Cluster
from models.errors import SluiceError
from models.placement import count_plans
from models.placement.cost import TOLERANCE, costs
from models.placement.exact import counting
from models.placement.exact.counting import count_within
from models.placement.problem import Problem
from models.placement.time_limit import TimeLimit

NO_THRESHOLDS = np.ones(3)


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


def test_a_hundred_thousand_million_plans_are_counted(chain, equal_workers):
    """Each worker full: the number of multisets of 16 quadruples with these sums, found by another recurrence."""
    tasks = (24, 18, 13, 3, 3, 3)
    assert count_plans(chain(*tasks), equal_workers(16, 4)) == by_cycle_index(tasks, 16, 4) == 121_953_906_140


def by_cycle_index(tasks: tuple[int, ...], workers: int, slots: int) -> int:
    """W h_W = sum over k of P(z^k) h_(W-k), with P the patterns of a full worker (cycle index of the symmetric group)."""
    rows = [row for row in itertools.product(range(slots + 1), repeat=len(tasks)) if sum(row) == slots]
    shape = tuple(t + 1 for t in tasks[1:])
    h = [np.zeros(shape, dtype=object) for _ in range(workers + 1)]
    h[0][(0,) * len(shape)] = 1
    for w in range(1, workers + 1):
        for k in range(1, w + 1):
            for row in rows:
                step = [k * x for x in row[1:]]
                if all(x < size for x, size in zip(step, shape, strict=True)):
                    to = tuple(slice(x, None) for x in step)
                    of = tuple(slice(0, size - x) for x, size in zip(step, shape, strict=True))
                    h[w][to] += h[w - k][of]
        h[w] //= w
    return int(h[workers][(-1,) * len(shape)])


@pytest.mark.slow
def test_counts_beyond_64_bits_are_exact(chain):
    """Workers that all differ have room for every task, so each operator is spread over them by itself."""
    workers = [{"name": f"w{i}", "slots": 46, "cores": 1 + i} for i in range(10)]
    ways = math.comb(15 + 10 - 1, 10 - 1)
    assert count_plans(chain(15, 15, 15), Cluster.model_validate({"workers": workers})) == ways**3 > 2**60
    assert count_plans(chain(15, 15, 15, 1), Cluster.model_validate({"workers": workers})) == ways**3 * 10 > 2**63


@settings(max_examples=200, deadline=None)
@given(problems(), st.tuples(*[st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.8, 1.0])] * 3))
def test_every_plan_within_the_thresholds_is_counted_once(p: Problem, thresholds: tuple[float, float, float]):
    alpha = np.array(thresholds)
    plans = every_plan(p)
    within = [plan for plan in plans if (costs(p, as_counts(p, plan)) <= alpha + TOLERANCE).all()]
    assert count_within(p, NO_THRESHOLDS, TimeLimit()) == len(plans)
    assert count_within(p, alpha, TimeLimit()) == len(within)


def test_counting_stops_when_the_time_is_over(q2_scaled):
    ticks = itertools.count()
    with pytest.raises(SluiceError, match="did not end within 3 s; allow more time"):
        count_within(Problem.of(*q2_scaled(8, 8)), NO_THRESHOLDS, TimeLimit(lambda: float(next(ticks)), 3.0))


def test_too_many_plans_to_count_are_refused(q2_scaled, monkeypatch):
    with pytest.raises(SluiceError, match="millions of ways; use fewer tasks or workers, or tighter thresholds"):
        count_plans(*q2_scaled(16, 64))
    monkeypatch.setattr(counting, "MOST_STATES", 1000)
    with pytest.raises(SluiceError, match="at most 1,000 can be"):
        count_plans(*q2_scaled(8, 8))
