"""A greedy start, and tabu steps that unload the worst worker.

`out` and `into` are operators, -1 for none.
"""

from typing import Final, NamedTuple

import numpy as np

from models.compiled import compiled
from models.placement.kernels.network import network_load
from models.placement.kernels.problem import ADDITIVE, NET, CompiledProblem, Floats, Ints
from models.placement.kernels.random import draw

SHORTEST_BAN: Final = 3
"""Steps for which a task may not go back, at least; a random number below `BAN_SPREAD` is added."""
BAN_SPREAD: Final = 10
NEGLIGIBLE: Final = 1e-13
"""Differences in excess up to this count as rounding."""


class Repairing(NamedTuple):
    """A plan under repair, changed in place."""

    most: Floats
    """(4, W): the most that a worker may hold; infinite where there is no limit."""
    weight: Floats
    """(4, W): excess per unit of load beyond that."""
    counts: Ints
    """(W, n)"""
    free: Ints
    """(W,)"""
    load: Floats
    """(4, W)"""
    excess: Floats
    """(W,)"""
    banned_until: Ints
    """(W, n): step before which operator i may not be put on worker w."""
    steps: Ints
    """(1,): steps taken."""
    random: Ints
    """(1,): state of the random numbers."""


@compiled
def refresh(p: CompiledProblem, plan: Repairing, w: int) -> None:
    """Compute the loads and the excess of worker w from its tasks."""
    excess = 0.0
    for d in range(4):
        load = 0.0
        if d == NET:
            load = network_load(plan.counts[w], -1, -1, p.tasks, p.upstream, p.downstream, p.edge_load, p.forward)
        else:
            for i in range(len(p.tasks)):
                load += plan.counts[w, i] * p.loads[d, i]
        plan.load[d, w] = load
        excess += max(0.0, load - plan.most[d, w]) * plan.weight[d, w]
    plan.excess[w] = excess


@compiled
def longest_first(p: CompiledProblem, plan: Repairing, order: Ints) -> None:
    """Place the tasks left, operators in `order`, each on the free slot that exceeds the limits least, then fills least."""
    workers = len(plan.free)
    for i in order:
        for _ in range(p.tasks[i] - plan.counts[:, i].sum()):
            chosen, least_over, least_full = -1, np.inf, np.inf
            for w in range(workers):
                if plan.free[w] == 0:
                    continue
                over, full = 0.0, 0.0
                for d in range(4):
                    most = plan.most[d, w]
                    if d == NET or most == np.inf:
                        continue
                    load = plan.load[d, w] + p.loads[d, i]
                    over += max(0.0, load - most) * plan.weight[d, w]
                    if p.loads[d, i] > 0.0 and most > 0.0:
                        full = max(full, load / most)
                if over < least_over or (over == least_over and full < least_full):
                    chosen, least_over, least_full = w, over, full
            plan.counts[chosen, i] += 1
            plan.free[chosen] -= 1
            for d in range(4):
                plan.load[d, chosen] += p.loads[d, i]


@compiled
def repair(p: CompiledProblem, plan: Repairing, steps: int) -> bool:
    """Take at most `steps` steps; whether the plan is within all limits. O(n^2 W E) a step."""
    workers, n = plan.counts.shape
    net_limited = False
    for w in range(workers):
        net_limited = net_limited or plan.most[NET, w] < np.inf
    left = np.zeros((n, n + 1))
    best_total = plan.excess.sum()
    for _ in range(steps):
        total = plan.excess.sum()
        if total <= 0.0:
            return True
        best_total = min(best_total, total)
        plan.steps[0] += 1
        worst = int(np.argmax(plan.excess))
        _leave(p, plan, worst, net_limited, left)
        w, i, j = _best_exchange(p, plan, worst, net_limited, left, best_total - total)
        if w >= 0:
            _exchange(p, plan, worst, w, i, j)
    return bool(plan.excess.sum() <= 0.0)


@compiled
def _leave(p: CompiledProblem, plan: Repairing, worst: int, net_limited: bool, left: Floats) -> None:
    """Set left[i, j]: excess of the worst worker after a task of i leaves and one of j arrives (j = n: none)."""
    tasks, loads, upstream, downstream, edge_load, forward = p
    n = len(tasks)
    row, load, most, weight = plan.counts[worst], plan.load[:, worst], plan.most[:, worst], plan.weight[:, worst]
    for i in range(n):
        for j in range(n + 1):
            if row[i] > 0 and j != i:
                into = -1 if j == n else j
                excess = additive_excess(i, into, loads, load, most, weight)
                if net_limited:
                    sent = network_load(row, i, into, tasks, upstream, downstream, edge_load, forward)
                    excess += max(0.0, sent - most[NET]) * weight[NET]
                left[i, j] = excess


@compiled
def _best_exchange(
    p: CompiledProblem, plan: Repairing, worst: int, net_limited: bool, left: Floats, to_best: float
) -> tuple[int, int, int]:
    """The worker w, the operator i to send there and the operator j to take from there (n: none) that lower the excess
    most; ties at random. A banned exchange is allowed where it lowers the total below the best so far, by more than -`to_best`.

    w is -1 where every exchange is banned.
    """
    tasks, loads, upstream, downstream, edge_load, forward = p
    counts, free, excess, banned_until, step = plan.counts, plan.free, plan.excess, plan.banned_until, plan.steps[0]
    workers, n = counts.shape
    best, chosen_worker, chosen_out, chosen_in, ties = np.inf, -1, -1, -1, 0
    for w in range(workers):
        if w == worst:
            continue
        row, load, most, weight = counts[w], plan.load[:, w], plan.most[:, w], plan.weight[:, w]
        for i in range(n):
            if counts[worst, i] == 0:
                continue
            for j in range(n + 1):
                if j == i or (free[w] == 0 if j == n else row[j] == 0):
                    continue
                gain = left[i, j] - excess[worst] - excess[w]
                if gain > best + NEGLIGIBLE:
                    continue
                out = -1 if j == n else j
                gain += additive_excess(out, i, loads, load, most, weight)
                if net_limited and gain <= best + NEGLIGIBLE:
                    sent = network_load(row, out, i, tasks, upstream, downstream, edge_load, forward)
                    gain += max(0.0, sent - most[NET]) * weight[NET]
                banned = banned_until[w, i] > step or (j < n and banned_until[worst, j] > step)
                if gain > best + NEGLIGIBLE or (banned and gain >= to_best - NEGLIGIBLE):
                    continue
                ties = 1 if gain < best - NEGLIGIBLE else ties + 1
                if draw(plan.random, ties) == 0:
                    best, chosen_worker, chosen_out, chosen_in = gain, w, i, j
    return chosen_worker, chosen_out, chosen_in


@compiled
def _exchange(p: CompiledProblem, plan: Repairing, worst: int, w: int, i: int, j: int) -> None:
    """Send a task of i from the worst worker to w, take one of j in return (n: none), and ban the way back."""
    until = plan.steps[0] + SHORTEST_BAN + draw(plan.random, BAN_SPREAD)
    plan.counts[worst, i] -= 1
    plan.counts[w, i] += 1
    plan.banned_until[worst, i] = until
    if j < len(p.tasks):
        plan.counts[w, j] -= 1
        plan.counts[worst, j] += 1
        plan.banned_until[w, j] = until
    else:
        plan.free[worst] += 1
        plan.free[w] -= 1
    refresh(p, plan, worst)
    refresh(p, plan, w)


@compiled
def additive_excess(out: int, into: int, loads: Floats, load: Floats, most: Floats, weight: Floats) -> float:
    """Excess in cpu, io and memory of a worker with `load` (4,), after one task leaves and another arrives."""
    excess = 0.0
    for d in ADDITIVE:
        changed = load[d]
        if out >= 0:
            changed -= loads[d, out]
        if into >= 0:
            changed += loads[d, into]
        excess += max(0.0, changed - most[d]) * weight[d]
    return excess
