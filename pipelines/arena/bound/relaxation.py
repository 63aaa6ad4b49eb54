"""The lower bound as a linear programme over the steps of a workload.

Notation, from the end of the burn-in on: A_i records that arrive in step i, Q_i records that arrived by its end and are on
time, U_i records of these that capacity was used for by then, x_is rate of segment s of the hull, L the latency objective,
q the attainment, V_i records that arrive in the last L before the end of step i, W records that are read before capacity
is used for them, F_i records of step i that rescales forgive, dt_i its seconds.

    minimise    sum_i dt_i (E(0) + sum_s slope_s x_is)
    subject to  U_i - U_(i-1) <= dt_i (free + sum_s x_is) + F_i,   0 <= x_is <= width_s
                U_i <= Q_i                           nothing is read before it arrives
                U_i >= Q_i - V_i - W                 what is on time is read within L
                0 <= Q_i - Q_(i-1) <= A_i            the others may be dropped
                Q_n >= q sum of A

A convex function of a mean is at most the mean of the function, so one rate for each step is a relaxation. Steps are
merged until there are at most MOST_STEPS of them.
"""

from typing import Final

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array, csr_array, eye_array, hstack, vstack

from pipelines.arena.bound.deployments import Hull

MOST_STEPS: Final = 5000
_INFEASIBLE: Final = 2


def merged(rates: np.ndarray, seconds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Records that arrive in each step of the programme (A), and its seconds (dt); float64[steps] each."""
    first = np.arange(0, len(rates), -(-len(rates) // MOST_STEPS))
    return np.add.reduceat(rates * seconds, first), np.add.reduceat(seconds, first)


def fewest_task_s(
    arrived: np.ndarray,
    seconds: np.ndarray,
    recent: np.ndarray,
    forgiven: np.ndarray,
    waiting: float,
    attainment: float,
    hull: Hull,
) -> float | None:
    """The optimum, task-seconds; None if the programme is infeasible.

    Args:
        arrived, seconds: A and dt, float64[steps].
        recent, forgiven: V and F, float64[steps].
        waiting: W.
        attainment: q.
    """
    n, segments, unit = len(arrived), len(hull.width), max(float(np.max(arrived)), 1.0)
    one, change, none = eye_array(n), _differences(n), csr_array((n, n))
    last = coo_array(([-1.0], ([0], [n - 1])), shape=(1, n))
    # Columns: U, Q and the records of each segment in each step, in units of the largest step.
    rows = [
        hstack([change, none, *[-one] * segments]),
        hstack([one, -one, *[none] * segments]),
        hstack([-one, one, *[none] * segments]),
        hstack([none, change, *[none] * segments]),
        hstack([none, -change, *[none] * segments]),
        hstack([csr_array((1, n)), last, *[csr_array((1, n))] * segments]),
    ]
    limits = [hull.free * seconds + forgiven, np.zeros(n), recent + waiting, arrived, np.zeros(n)]
    most = [np.full(2 * n, np.sum(arrived)), *(width * seconds for width in hull.width)]
    found = linprog(
        np.concatenate([np.zeros(2 * n), np.repeat(hull.slope, n)]) * unit,
        A_ub=vstack(rows).tocsr(),
        b_ub=np.concatenate([*limits, [-attainment * float(np.sum(arrived))]]) / unit,
        bounds=np.column_stack([np.zeros((2 + segments) * n), np.concatenate(most) / unit]),
        method="highs",
    )
    if found.status == _INFEASIBLE:
        return None
    if found.status != 0:
        raise ArithmeticError(f"the linear programme of the lower bound was not solved: {found.message}")
    return hull.least_tasks * float(np.sum(seconds)) + float(found.fun)


def _differences(n: int) -> csr_array:
    """Each value less the one before, of which the first is 0."""
    at = np.arange(n)
    values, rows, columns = np.concatenate([np.ones(n), -np.ones(n - 1)]), [*at, *at[1:]], [*at, *at[:-1]]
    return coo_array((values, (rows, columns)), shape=(n, n)).tocsr()
