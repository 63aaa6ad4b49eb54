"""The pattern of a worker with the highest price, by branch and bound: a bounded knapsack with several limits.

Operators are taken in the order given; in topological order, network loads are known early. A branch is pruned when its
price, plus the best fractional filling of the free slots or of the remaining cpu, io, memory or network, does not exceed
the best so far.
"""

from typing import Final

import numpy as np

from models.compiled import compiled
from models.placement.kernels.network import network_floor, network_load
from models.placement.kernels.patterns import WorkerSpace
from models.placement.kernels.problem import ADDITIVE, NET, Floats, Ints

SLOTS: Final = 4
"""Row of the weights, after those of the loads."""


@compiled
def climb(room: WorkerSpace, price: Floats, row: Ints) -> float:
    """Raise the price of a pattern (n,) by single additions and exchanges of tasks until none helps; its price."""
    n = len(price)
    tasks, loads, upstream, downstream, edge_load, forward = room.problem
    most, highest = room.most, room.highest
    free = room.slots - row.sum()
    while True:
        gain, chosen_out, chosen_in = 0.0, -1, -1
        for out in range(-1, n):
            for into in range(-1, n):
                if into == out or (out >= 0 and row[out] == 0) or (into >= 0 and row[into] == highest[into]):
                    continue
                if out < 0 and free == 0:
                    continue
                more = (price[into] if into >= 0 else 0.0) - (price[out] if out >= 0 else 0.0)
                if more <= gain + 1e-12:
                    continue
                fits = network_load(row, out, into, tasks, upstream, downstream, edge_load, forward) <= most[NET]
                _exchange(row, out, into)
                for d in ADDITIVE:
                    fits = fits and (loads[d] * row).sum() <= most[d]
                _exchange(row, into, out)
                if fits:
                    gain, chosen_out, chosen_in = more, out, into
        if gain == 0.0:
            return float((price * row).sum())
        _exchange(row, chosen_out, chosen_in)
        free += (chosen_out >= 0) - (chosen_in >= 0)


@compiled
def _exchange(row: Ints, out: int, into: int) -> None:
    if out >= 0:
        row[out] -= 1
    if into >= 0:
        row[into] += 1


@compiled
def _most_of_rest(
    k: int, free: int, slack: Floats, highest: Ints, price: Floats, weights: Floats, by_density: Ints
) -> float:
    """An upper bound of what operators k and later can add to the price."""
    best = np.inf
    for d in range(len(slack)):
        if slack[d] == np.inf:
            continue
        value, left = 0.0, slack[d]
        for position in range(len(price)):
            i = by_density[d, position]
            if i < k or price[i] <= 0.0:
                continue
            number, each = float(min(free, highest[i])), weights[d, i]
            if each > 0.0:
                number = min(number, left / each)
            value += number * price[i]
            left -= number * each
            if left <= 0.0 or value >= best:
                break
        best = min(best, value)
    return best


@compiled
def dearest(
    room: WorkerSpace,
    price: Floats,
    weights: Floats,
    by_density: Ints,
    least: float,
    found: Ints,
    soon: int,
    tries: int,
) -> tuple[int, float]:
    """Patterns of a worker with prices above `least`, rising.

    Args:
        room: its lower bounds are ignored.
        weights: (5, n): cpu and io of a task, the least that it sends over the network, its memory, and the slot it takes.
        by_density: (5, n): operators by falling price for each unit of these.
        found: (B, n) buffer, for the last B of them, in turn.
        soon: tries after which it stops if a pattern was found.
        tries: most tries.

    Returns:
        how many there were, and a price that no pattern exceeds, at least `least`.
    """
    n = len(price)
    tasks, _, upstream, downstream, edge_load, forward = room.problem
    highest, net_most = room.highest, room.most[NET]
    row, free, slack, value, rest = _root(room, price, weights, by_density)
    best, number, k = least, 0, 0
    for tried in range(tries):
        if tried >= soon and number > 0:
            break
        row[k] -= 1
        if row[k] < 0:
            row[k] = 0
            k -= 1
            if k < 0:
                return number, best
            continue
        free[k + 1] = free[k] - row[k]
        fits = _take(k, row[k], weights, slack)
        if fits and net_most < np.inf:
            slack[k + 1, NET] = net_most - network_floor(
                k, row, free[k + 1], tasks, upstream, downstream, edge_load, forward
            )
            fits = slack[k + 1, NET] >= 0.0
        if not fits:
            continue
        value[k + 1] = value[k] + row[k] * price[k]
        rest[k + 1] = _most_of_rest(k + 1, free[k + 1], slack[k + 1], highest, price, weights, by_density)
        if value[k + 1] + rest[k + 1] <= best:
            continue
        if k == n - 1:
            best = value[n]
            found[number % len(found)] = row
            number += 1
        else:
            k += 1
            row[k] = min(highest[k], free[k]) + 1
    return number, max(best, (value + rest)[: k + 1].max())


@compiled
def _root(
    room: WorkerSpace, price: Floats, weights: Floats, by_density: Ints
) -> tuple[Ints, Ints, Floats, Floats, Floats]:
    """Where the walk starts, one level for each operator placed: the tasks (n,) to try less one, and at each level the
    free slots (n + 1,), what is left of each weight (n + 1, 5), the price (n + 1,), and what the rest can add (n + 1,).
    """
    n = len(price)
    row, free = np.zeros(n, dtype=np.int64), np.zeros(n + 1, dtype=np.int64)
    slack, value, rest = np.full((n + 1, len(weights)), np.inf), np.zeros(n + 1), np.zeros(n + 1)
    row[0], free[0] = min(room.highest[0], room.slots) + 1, room.slots
    slack[0, :SLOTS], slack[0, SLOTS] = room.most, room.slots
    rest[0] = _most_of_rest(0, room.slots, slack[0], room.highest, price, weights, by_density)
    return row, free, slack, value, rest


@compiled
def _take(k: int, number: int, weights: Floats, slack: Floats) -> bool:
    """Subtract the weights of `tasks` of operator k, the network aside; return whether enough was left."""
    fits = True
    for d in range(len(weights)):
        if d != NET:
            slack[k + 1, d] = slack[k, d] - number * weights[d, k]
            fits = fits and slack[k + 1, d] >= 0.0
    return fits
