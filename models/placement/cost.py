"""The cost of a plan (CAPSys section 4.2, Eq. 4-10), for one plan or many at once.

With x = `counts` of shape (..., W, n) and the notation of `models.placement.problem`:

    L_d(w) = sum_i U_d(i) x_wi / K_d(w)                                    d = cpu, io           (Eq. 5)
    L_net(w) = sum_e T_e(w) / K_net(w)                                                           (Eq. 8)
        T_e = c_e x_wu (1 - x_wv / p_v)      rebalance, hash, broadcast: every task sends to all
        T_e = c_e max(0, x_wu - x_wv)        forward: a pair on one worker sends nothing out
    C_d = (max_w L_d(w) - L_d^min) / (L_d^max - L_d^min)                                         (Eq. 4)

C_d is 0 where all plans are equivalent (L_d^max = L_d^min). C lies in [0, 1].
"""

from typing import Final

import numpy as np

from models.placement.kernels.problem import Floats, Ints
from models.placement.problem import DIMENSIONS, Problem
from models.plan.parts import CostVector

SAME: Final = 1e-12
"""Loads that differ by no more than this share of L^max are equal."""
SMALLEST: Final = 1e-300
"""Loads below this count as 0: a float that small has lost its digits, and its inverse would be infinite."""
TOLERANCE: Final = 1e-9
"""Loads are compared with this relative tolerance."""


def worker_loads(problem: Problem, counts: Ints) -> Floats:
    """(..., 3, W): the load of each worker, as a share of its capacity, in each dimension (Eq. 5 and 8)."""
    cpu_io = np.moveaxis(counts @ problem.loads[:2].T, -1, -2)
    loads = np.concatenate([cpu_io, _network(problem, counts)[..., None, :]], axis=-2)
    return np.asarray(loads / problem.capacity[: len(DIMENSIONS)])


def _network(problem: Problem, counts: Ints) -> Floats:
    """(..., W): what leaves each worker."""
    edges = problem.edges
    up, down = counts[..., edges.upstream], counts[..., edges.downstream]
    to_all = up * (1 - down / problem.parallelism[edges.downstream])
    return np.asarray(np.where(edges.forward, np.maximum(0, up - down), to_all) @ edges.load)


def costs(problem: Problem, counts: Ints) -> Floats:
    """(..., 3): C_cpu, C_io, C_net (Eq. 4)."""
    above = worker_loads(problem, counts).max(axis=-1) - problem.least
    balanced = _equivalent(problem) | (above <= SAME * problem.most)
    cost = np.where(balanced, 0.0, above / np.where(balanced, 1.0, problem.most - problem.least))
    return np.minimum(cost, 1.0)


def cost_vector(problem: Problem, counts: Ints) -> CostVector:
    """C of one plan."""
    return as_vector(costs(problem, counts))


def as_vector(values: Floats) -> CostVector:
    """An array (3,) with names."""
    cpu, io, net = (float(value) for value in values)
    return CostVector(cpu=cpu, io=io, net=net)


def as_array(vector: CostVector) -> Floats:
    """A vector without its names, (3,)."""
    return np.array([vector.cpu, vector.io, vector.net])


def load_limits(problem: Problem, thresholds: Floats) -> Floats:
    """(3,): the largest load that meets the thresholds (Eq. 10); infinite where no plan can break them.

    Loads whose cost counts as 0 meet a threshold of 0.
    """
    limits = problem.least + thresholds * (problem.most - problem.least) + SAME * problem.most
    return np.where(_equivalent(problem) | (thresholds >= 1), np.inf, limits)


def worker_limits(problem: Problem, limits: Floats, tolerance: float = TOLERANCE) -> Floats:
    """(4, W): the most that each worker may hold, with the tolerance; infinite where there is no limit.

    Args:
        limits: (3,) largest load of a worker, as a share of its capacity.
    """
    shares = np.append(limits, 1.0)[:, None]
    bounded = np.isfinite(problem.capacity) & np.isfinite(shares)
    finite = np.where(np.isfinite(shares), shares, 0.0) * (1 + tolerance)
    return np.where(bounded, finite * np.where(bounded, problem.capacity, 1.0), np.inf)


def _equivalent(problem: Problem) -> np.ndarray:
    """(3,): dimensions in which every plan costs the same."""
    return np.asarray((problem.most - problem.least <= SAME * problem.most) | (problem.most < SMALLEST))
