"""Loads and excess of workers in the tabu searches: the kernels against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from known_answers.every_plan import problems
from models.placement.cost import load_limits, worker_limits, worker_loads
from models.placement.kernels.homing import Setting, excess_after
from models.placement.kernels.problem import MEMORY
from models.placement.kernels.repair import additive_excess, refresh
from models.placement.problem import Problem
from models.placement.search.repair import Repair

THRESHOLDS = st.tuples(*[st.sampled_from([0.0, 0.1, 0.5, 1.0])] * 3)


def loads_by_numpy(p: Problem, counts: np.ndarray) -> np.ndarray:
    """(4, W), in units of load."""
    capacity = np.where(np.isfinite(p.capacity), p.capacity, 1.0)
    unlimited = Problem(**(vars(p) | {"capacity": capacity}))
    return np.vstack([worker_loads(unlimited, counts) * capacity[:MEMORY], counts @ p.memory_mb])


@given(problems(), THRESHOLDS, st.integers(0, 1000))
def test_loads_and_excess_of_every_worker(p: Problem, thresholds: tuple[float, float, float], seed: int):
    limits = load_limits(p, np.array(thresholds))
    repair = Repair(p, limits, seed)
    counts, state, compiled = repair.counts, repair._plan, p.compiled()
    loads, most = loads_by_numpy(p, counts), worker_limits(p, limits)
    over = np.maximum(0.0, loads - most) * state.weight
    for w in range(len(p.workers)):
        refresh(compiled, state, w)
        without_network = additive_excess(-1, -1, compiled.loads, state.load[:, w], most[:, w], state.weight[:, w])
        assert without_network == pytest.approx(np.delete(over[:, w], 2).sum(), rel=1e-9, abs=1e-12)
    assert state.load == pytest.approx(loads, rel=1e-12)
    assert state.excess == pytest.approx(over.sum(axis=0), rel=1e-9, abs=1e-12)
    setting = Setting(compiled, counts, p.slots, most, state.weight)
    excess = [excess_after(setting, counts, w, -1, -1, np.inf) for w in range(len(p.workers))]
    assert excess == pytest.approx(over.sum(axis=0), rel=1e-9, abs=1e-12)
