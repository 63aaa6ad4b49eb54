"""The network load of a worker: the kernels against NumPy's formulation in `models.placement.cost`."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from known_answers.every_plan import problems
from models.placement.cost import worker_loads
from models.placement.kernels.network import network_floor, network_load
from models.placement.kernels.problem import NET
from models.placement.problem import Problem


def by_numpy(p: Problem, row: np.ndarray) -> float:
    """What leaves the first worker, in units of load."""
    return float(worker_loads(p, np.tile(row, (len(p.workers), 1)))[NET, 0] * p.capacity[NET, 0])


def links(p: Problem) -> tuple[np.ndarray, ...]:
    c = p.compiled()
    return c.tasks, c.upstream, c.downstream, c.edge_load, c.forward


@given(problems(), st.data())
def test_a_worker_sends_what_equation_8_says(p: Problem, data: st.DataObject):
    row = np.array([data.draw(st.integers(0, int(tasks))) for tasks in p.parallelism])
    assert network_load(row, -1, -1, *links(p)) == pytest.approx(by_numpy(p, row), rel=1e-12)
    out, into = (data.draw(st.integers(-1, len(row) - 1)) for _ in range(2))
    after = row.copy()
    after[out] -= out >= 0
    after[into] += into >= 0
    if (after >= 0).all() and (after <= p.parallelism).all():
        assert network_load(row, out, into, *links(p)) == pytest.approx(by_numpy(p, after), rel=1e-12)


@given(problems(), st.data())
def test_the_floor_is_the_least_of_edges_by_themselves(p: Problem, data: st.DataObject):
    """Never above what any completion sends; with all operators placed, exactly what the worker sends."""
    row = np.array([data.draw(st.integers(0, int(tasks))) for tasks in p.parallelism])
    free, k = data.draw(st.integers(0, 4)), data.draw(st.integers(0, len(row) - 1))
    placed = np.where(np.arange(len(row)) <= k, row, 0)
    floor = network_floor(k, placed, free, *links(p))
    rest = [range(min(free, int(tasks)) + 1) for tasks in p.parallelism[k + 1 :]]
    completions = [np.append(placed[: k + 1], tail) for tail in itertools.product(*rest) if sum(tail) <= free]
    assert floor <= min(by_numpy(p, row.astype(np.int64)) for row in completions) + 1e-9
    assert network_floor(len(row) - 1, row, 0, *links(p)) == pytest.approx(by_numpy(p, row), rel=1e-12)


def test_the_floor_of_one_edge_is_reached(problem_of):
    """Four tasks of a send 1 each to four of b; with two free slots half of the receivers can join three senders."""
    p = problem_of((4, 4), 2, 5)
    assert network_floor(0, np.array([3, 0]), 2, *links(p)) == pytest.approx(3 * (1 - 2 / 4))
    assert network_load(np.array([3, 2]), -1, -1, *links(p)) == pytest.approx(3 * (1 - 2 / 4))
