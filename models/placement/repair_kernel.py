"""The compiled part of `models.placement.repair`: a greedy start, and tabu steps out of the worst worker.

Rows of `loads`, `load`, `most` and `weight` are cpu, io, net and memory. `out` and `into` are operators, -1 for none.
"""

from typing import Final, NamedTuple

import numpy as np

from models.placement.compiled import compiled
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
    """Place all tasks, operators in `order`, each on the free slot that exceeds the limits least, then fills least."""
    workers = len(plan.free)
    for i in order:
        for _ in range(shape.tasks[i]):
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
    tasks, loads = shape.tasks, shape.loads
    upstream, downstream, edge_load, forward = shape.upstream, shape.downstream, shape.edge_load, shape.forward
    most, weight, counts, free, load = plan.most, plan.weight, plan.counts, plan.free, plan.load
    excess, banned_until, random = plan.excess, plan.banned_until, plan.random
    workers, n = counts.shape
    net_limited = False
    for w in range(workers):
        net_limited = net_limited or most[NET, w] < np.inf
    left = np.zeros((n, n + 1))
    best_total = excess.sum()
    for _ in range(steps):
        total = excess.sum()
        if total <= 0.0:
            return True
        best_total = min(best_total, total)
        step = plan.steps[0]
        plan.steps[0] += 1
        worst = int(np.argmax(excess))
        # left[i, j]: excess of the worst worker once a task of i has left it and one of j has come (j = n: none).
        for i in range(n):
            if counts[worst, i] > 0:
                for j in range(n + 1):
                    if j != i:
                        into = -1 if j == n else j
                        left[i, j] = _excess_after(
                            worst,
                            i,
                            into,
                            tasks,
                            loads,
                            upstream,
                            downstream,
                            edge_load,
                            forward,
                            most,
                            weight,
                            counts,
                            load,
                            net_limited,
                            np.inf,
                        )
        best, chosen_worker, chosen_out, chosen_in, ties = np.inf, -1, -1, -1, 0
        for w in range(workers):
            if w == worst:
                continue
            for i in range(n):
                if counts[worst, i] == 0:
                    continue
                for j in range(n + 1):
                    if j == i or (free[w] == 0 if j == n else counts[w, j] == 0):
                        continue
                    out = -1 if j == n else j
                    base = left[i, j] - excess[worst] - excess[w]
                    if base > best + NEGLIGIBLE:
                        continue
                    gain = base + _excess_after(
                        w,
                        out,
                        i,
                        tasks,
                        loads,
                        upstream,
                        downstream,
                        edge_load,
                        forward,
                        most,
                        weight,
                        counts,
                        load,
                        net_limited,
                        best - base,
                    )
                    if gain > best + NEGLIGIBLE:
                        continue
                    banned = banned_until[w, i] > step or (j < n and banned_until[worst, j] > step)
                    if banned and total + gain >= best_total - NEGLIGIBLE:
                        continue
                    if gain < best - NEGLIGIBLE:
                        ties = 0
                    ties += 1
                    if _random(random, ties) == 0:
                        best, chosen_worker, chosen_out, chosen_in = gain, w, i, j
        if chosen_worker < 0:
            continue
        w, i, j = int(chosen_worker), chosen_out, chosen_in
        until = step + SHORTEST_BAN + _random(random, BAN_SPREAD)
        counts[worst, i] -= 1
        counts[w, i] += 1
        banned_until[worst, i] = until
        if j < n:
            counts[w, j] -= 1
            counts[worst, j] += 1
            banned_until[w, j] = until
        else:
            free[worst] += 1
            free[w] -= 1
        refresh(shape, plan, worst)
        refresh(shape, plan, w)
    return bool(excess.sum() <= 0.0)


@compiled
def _excess_after(
    w: int, out: int, into: int,
    tasks: Ints, loads: Floats, upstream: Ints, downstream: Ints, edge_load: Floats, forward: Bools,
    most: Floats, weight: Floats, counts: Ints, load: Floats, net_limited: bool, enough: float,
) -> float:  # fmt: skip
    """Excess of worker w after one task went and another came; anything above `enough` once it is sure to be above."""
    excess = 0.0
    for d in (CPU, IO, MEMORY):
        changed = load[d, w]
        if out >= 0:
            changed -= loads[d, out]
        if into >= 0:
            changed += loads[d, into]
        excess += max(0.0, changed - most[d, w]) * weight[d, w]
    if net_limited and excess <= enough + NEGLIGIBLE:
        sent = _network(counts[w], out, into, tasks, upstream, downstream, edge_load, forward)
        excess += max(0.0, sent - most[NET, w]) * weight[NET, w]
    return excess
