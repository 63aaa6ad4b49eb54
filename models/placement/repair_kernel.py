"""The compiled part of `models.placement.repair`: a greedy start, and tabu steps out of the worst worker.

Rows of `loads`, `load`, `most` and `weight` are cpu, io, net and memory. `out` and `into` are operators, -1 for none.
"""

from typing import Final, NamedTuple

import numpy as np

from models.compiled import compiled
from models.placement.problem import Bools, Floats, Ints

CPU, IO, NET, MEMORY = 0, 1, 2, 3
SHORTEST_BAN: Final = 3
"""Steps for which a task may not go back, at least; a random number below `BAN_SPREAD` is added."""
BAN_SPREAD: Final = 10
NEGLIGIBLE: Final = 1e-13
"""Differences in excess up to this are rounding."""


class Shape(NamedTuple):
    """What does not change during the repair."""

    tasks: Ints
    """(n,)"""
    loads: Floats
    """(4, n): cpu, io, net and memory of one task."""
    upstream: Ints
    downstream: Ints
    edge_load: Floats
    forward: Bools


class Plan(NamedTuple):
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
def _random(state: Ints, below: int) -> int:
    """A whole number from 0 to below - 1 (Lehmer's generator; the state lies in 1..2^31 - 2)."""
    state[0] = state[0] * 48271 % 2147483647
    return int(state[0] % below)


@compiled
def _network(
    row: Ints, out: int, into: int, tasks: Ints, upstream: Ints, downstream: Ints, edge_load: Floats, forward: Bools
) -> float:
    """What leaves a worker that holds `row` (n,), after one task went and another came (Eq. 8)."""
    total = 0.0
    for e in range(len(upstream)):
        u, v = upstream[e], downstream[e]
        here = row[u] - (u == out) + (u == into)
        if here > 0:
            there = row[v] - (v == out) + (v == into)
            if forward[e]:
                total += edge_load[e] * max(0, here - there)
            else:
                total += edge_load[e] * here * (1.0 - there / tasks[v])
    return total


@compiled
def refresh(shape: Shape, plan: Plan, w: int) -> None:
    """Compute the loads and the excess of worker w from its tasks."""
    excess = 0.0
    for d in range(4):
        load = 0.0
        if d == NET:
            load = _network(
                plan.counts[w], -1, -1, shape.tasks, shape.upstream, shape.downstream, shape.edge_load, shape.forward
            )
        else:
            for i in range(len(shape.tasks)):
                load += plan.counts[w, i] * shape.loads[d, i]
        plan.load[d, w] = load
        excess += max(0.0, load - plan.most[d, w]) * plan.weight[d, w]
    plan.excess[w] = excess


@compiled
def longest_first(shape: Shape, plan: Plan, order: Ints) -> None:
    """Place the tasks left, operators in `order`, each on the free slot that exceeds the limits least, then fills least."""
    workers = len(plan.free)
    for i in order:
        for _ in range(shape.tasks[i] - plan.counts[:, i].sum()):
            chosen, least_over, least_full = -1, np.inf, np.inf
            for w in range(workers):
                if plan.free[w] == 0:
                    continue
                over, full = 0.0, 0.0
                for d in range(4):
                    most = plan.most[d, w]
                    if d == NET or most == np.inf:
                        continue
                    load = plan.load[d, w] + shape.loads[d, i]
                    over += max(0.0, load - most) * plan.weight[d, w]
                    if shape.loads[d, i] > 0.0 and most > 0.0:
                        full = max(full, load / most)
                if over < least_over or (over == least_over and full < least_full):
                    chosen, least_over, least_full = w, over, full
            plan.counts[chosen, i] += 1
            plan.free[chosen] -= 1
            for d in range(4):
                plan.load[d, chosen] += shape.loads[d, i]


@compiled
def repair(shape: Shape, plan: Plan, steps: int) -> bool:
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
        _leave(shape, plan, worst, net_limited, left)
        w, i, j = _best_exchange(shape, plan, worst, net_limited, left, best_total - total)
        if w >= 0:
            _exchange(shape, plan, worst, w, i, j)
    return bool(plan.excess.sum() <= 0.0)


@compiled
def _leave(shape: Shape, plan: Plan, worst: int, net_limited: bool, left: Floats) -> None:
    """Set left[i, j]: excess of the worst worker once a task of i has left it and one of j has come (j = n: none)."""
    tasks, loads = shape.tasks, shape.loads
    upstream, downstream, edge_load, forward = shape.upstream, shape.downstream, shape.edge_load, shape.forward
    n = len(tasks)
    row, load, most, weight = plan.counts[worst], plan.load[:, worst], plan.most[:, worst], plan.weight[:, worst]
    for i in range(n):
        for j in range(n + 1):
            if row[i] > 0 and j != i:
                into = -1 if j == n else j
                excess = _additive_excess(i, into, loads, load, most, weight)
                if net_limited:
                    sent = _network(row, i, into, tasks, upstream, downstream, edge_load, forward)
                    excess += max(0.0, sent - most[NET]) * weight[NET]
                left[i, j] = excess


@compiled
def _best_exchange(
    shape: Shape, plan: Plan, worst: int, net_limited: bool, left: Floats, to_best: float
) -> tuple[int, int, int]:
    """The worker w, the operator i to send there and the operator j to take from there (n: none) that lower the excess
    most; ties at random. Bans are passed over by what lowers it by more than -`to_best`: below the best so far.

    w is -1 where every exchange is banned.
    """
    tasks, loads = shape.tasks, shape.loads
    upstream, downstream, edge_load, forward = shape.upstream, shape.downstream, shape.edge_load, shape.forward
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
                gain += _additive_excess(out, i, loads, load, most, weight)
                if net_limited and gain <= best + NEGLIGIBLE:
                    sent = _network(row, out, i, tasks, upstream, downstream, edge_load, forward)
                    gain += max(0.0, sent - most[NET]) * weight[NET]
                banned = banned_until[w, i] > step or (j < n and banned_until[worst, j] > step)
                if gain > best + NEGLIGIBLE or (banned and gain >= to_best - NEGLIGIBLE):
                    continue
                ties = 1 if gain < best - NEGLIGIBLE else ties + 1
                if _random(plan.random, ties) == 0:
                    best, chosen_worker, chosen_out, chosen_in = gain, w, i, j
    return chosen_worker, chosen_out, chosen_in


@compiled
def _exchange(shape: Shape, plan: Plan, worst: int, w: int, i: int, j: int) -> None:
    """Send a task of i from the worst worker to w, take one of j in return (n: none), and ban the way back."""
    until = plan.steps[0] + SHORTEST_BAN + _random(plan.random, BAN_SPREAD)
    plan.counts[worst, i] -= 1
    plan.counts[w, i] += 1
    plan.banned_until[worst, i] = until
    if j < len(shape.tasks):
        plan.counts[w, j] -= 1
        plan.counts[worst, j] += 1
        plan.banned_until[w, j] = until
    else:
        plan.free[worst] += 1
        plan.free[w] -= 1
    refresh(shape, plan, worst)
    refresh(shape, plan, w)


@compiled
def _additive_excess(out: int, into: int, loads: Floats, load: Floats, most: Floats, weight: Floats) -> float:
    """Excess in cpu, io and memory of a worker with `load` (4,), after one task went and another came."""
    excess = 0.0
    for d in (CPU, IO, MEMORY):
        changed = load[d]
        if out >= 0:
            changed -= loads[d, out]
        if into >= 0:
            changed += loads[d, into]
        excess += max(0.0, changed - most[d]) * weight[d]
    return excess
