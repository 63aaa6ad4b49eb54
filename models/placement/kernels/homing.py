"""Tabu search that returns tasks to the workers that run them, within the limits.

The objective is moves + price x excess: a move is a task on a worker that did not run it, the excess how far workers
lie above their limits, in units of cost. The price rises while the plan is outside the limits and falls while it is
within (strategic oscillation), so the steps cross the border repeatedly; the best plan within is kept.
"""

from typing import Final, NamedTuple

import numpy as np

from models.compiled import compiled
from models.placement.kernels.network import network_load
from models.placement.kernels.problem import ADDITIVE, NET, CompiledProblem, Floats, Ints
from models.placement.kernels.random import draw

SHORTEST_BAN: Final = 4
"""Steps for which a task may not go back, at least; a random number below `BAN_SPREAD` is added."""
BAN_SPREAD: Final = 8
FIRST_PRICE: Final = 20.0
"""Initial price of one unit of excess cost, in moves."""
PRICE_STEP: Final = 1.3
NEGLIGIBLE: Final = 1e-13
"""Excess up to this counts as rounding."""


class Setting(NamedTuple):
    """The constant inputs of the search."""

    problem: CompiledProblem
    running: Ints
    """(W, n): tasks that run now."""
    slots: Ints
    """(W,)"""
    most: Floats
    """(4, W): the most that a worker may hold; infinite where there is no limit."""
    weight: Floats
    """(4, W): cost per unit of load beyond that."""


@compiled
def excess_after(s: Setting, counts: Ints, w: int, out: int, into: int, enough: float) -> float:
    """How far worker w exceeds its limits after a task of `out` leaves and a task of `into` arrives (-1: none).

    The rest is skipped once `enough` is reached.
    """
    n = len(s.problem.tasks)
    total = 0.0
    for d in ADDITIVE:
        if s.most[d, w] < np.inf:
            load = 0.0
            for i in range(n):
                load += s.problem.loads[d, i] * (counts[w, i] - (i == out) + (i == into))
            total += max(0.0, load - s.most[d, w]) * s.weight[d, w]
    if total < enough and s.most[NET, w] < np.inf:
        p = s.problem
        load = network_load(counts[w], out, into, p.tasks, p.upstream, p.downstream, p.edge_load, p.forward)
        total += max(0.0, load - s.most[NET, w]) * s.weight[NET, w]
    return total


@compiled
def _change(s: Setting, counts: Ints, a: int, b: int, i: int) -> int:
    """Change of the number of moves when one task of i goes from worker a to b."""
    if i < 0:
        return 0
    saved = 1 if counts[a, i] > s.running[a, i] else 0
    added = 1 if counts[b, i] >= s.running[b, i] else 0
    return added - saved


@compiled
def _choose(s: Setting, counts: Ints, excess: Floats, random: Ints) -> int:
    """The worker furthest above its limits, else any that does not run its former tasks; -1 if there is none."""
    workers, n = counts.shape
    worst = int(np.argmax(excess))
    if excess[worst] > NEGLIGIBLE:
        return worst
    start = draw(random, workers)
    for k in range(workers):
        w = (start + k) % workers
        for i in range(n):
            if counts[w, i] != s.running[w, i]:
                return int(w)
    return -1


@compiled
def bring_home(s: Setting, start: Ints, least: int, steps: int, patience: int, seed: int) -> tuple[int, Ints]:
    """Take steps from the plan `start` (W, n).

    Args:
        least: moves that no plan can go below; reaching them ends it.
        patience: steps without a better plan after which it ends.

    Returns:
        the fewest moves of a plan within the limits, -1 if none was met, and that plan.
    """
    counts = start.copy()
    workers, n = counts.shape
    taken = counts.sum(axis=1)
    banned = np.zeros((workers, n), dtype=np.int64)
    random = np.array([1 + seed % (2**31 - 3)], dtype=np.int64)
    excess = np.zeros(workers)
    for w in range(workers):
        excess[w] = excess_after(s, counts, w, -1, -1, np.inf)
    moves = int(np.maximum(counts - s.running, 0).sum())
    total = excess.sum()
    best, best_moves, since, price = counts.copy(), -1, 0, FIRST_PRICE
    for step in range(1, steps + 1):
        if total <= NEGLIGIBLE and (best_moves < 0 or moves < best_moves):
            best[:], best_moves, since = counts, moves, 0
        since += 1
        if (best_moves >= 0 and best_moves <= least) or since > patience:
            break
        price = max(1e-3, price / PRICE_STEP) if total <= NEGLIGIBLE else min(1e9, price * PRICE_STEP)
        a = _choose(s, counts, excess, random)
        if a < 0:
            break
        found, to, out, into = np.inf, -1, -1, -1
        for b in range(workers):
            if b == a:
                continue
            for i in range(-1, n):
                if (i < 0 and taken[a] >= s.slots[a]) or (i >= 0 and counts[a, i] == 0):
                    continue
                for j in range(-1, n):
                    if i == j or (j < 0 and taken[b] >= s.slots[b]) or (j >= 0 and counts[b, j] == 0):
                        continue
                    by_moves = _change(s, counts, a, b, i) + _change(s, counts, b, a, j)
                    before = excess[a] + excess[b]
                    free = (i < 0 or banned[b, i] <= step) and (j < 0 or banned[a, j] <= step)
                    if not free and not (0 <= moves + by_moves < best_moves and total - before <= NEGLIGIBLE):
                        continue
                    enough = (found - by_moves) / price + before
                    if enough <= 0.0:
                        continue
                    after = excess_after(s, counts, a, i, j, enough)
                    if after < enough:
                        after += excess_after(s, counts, b, j, i, enough - after)
                    value = by_moves + price * (after - before)
                    if value < found:
                        found, to, out, into = value, b, i, j
        if to < 0:
            continue
        moves += _change(s, counts, a, to, out) + _change(s, counts, to, a, into)
        if out >= 0:
            counts[a, out] -= 1
            counts[to, out] += 1
            banned[a, out] = step + SHORTEST_BAN + draw(random, BAN_SPREAD)
        if into >= 0:
            counts[to, into] -= 1
            counts[a, into] += 1
            banned[to, into] = step + SHORTEST_BAN + draw(random, BAN_SPREAD)
        for w in (a, to):
            taken[w] = counts[w].sum()
            excess[w] = excess_after(s, counts, w, -1, -1, np.inf)
        total = excess.sum()
    return best_moves, best
