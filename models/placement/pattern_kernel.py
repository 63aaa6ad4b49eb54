"""The compiled part of `models.placement.patterns`: all count vectors of one worker, and prices over them.

A walk goes through the operators in the order given; rows of `loads`, `least` and `most` are cpu, io and memory. A
branch is left when what is placed, with the fewest of the rest, breaks a limit, or with the most of the rest cannot
reach a lower bound. What must leave over the network is bounded as in `models.placement.tree`.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from models.placement.compiled import compiled
from models.placement.net_kernel import net_floor
from models.placement.problem import Bools, Floats, Ints

Counts = npt.NDArray[np.int16]

NET: Final = 2
DIMENSIONS: Final = 3


class Room(NamedTuple):
    """What one worker may hold; n operators in exploration order."""

    tasks: Ints
    """(n,): tasks of the operator in all."""
    lowest: Ints
    """(n,): fewest tasks of each operator."""
    highest: Ints
    """(n,): most tasks of each."""
    fewest: int
    """Fewest tasks of all operators together."""
    slots: int
    loads: Floats
    """(3, n): cpu, io and memory of one task."""
    least: Floats
    """(3,): load that the worker must carry at least."""
    most: Floats
    """(3,): and at most; infinite where there is no limit."""
    net_most: float
    upstream: Ints
    downstream: Ints
    edge_load: Floats
    forward: Bools


class Scale(NamedTuple):
    """How the loads of a worker become its t on a ray; each (3,): cpu, io and net."""

    capacity: Floats
    balanced: Floats
    """L^min + base (L^max - L^min): the load at t = 0."""
    same: Floats
    """A load that lies above `balanced` by no more costs nothing."""
    per_t: Floats
    """slope (L^max - L^min): load for each unit of t; 0 where t does not move the dimension."""


@compiled
def _reach(load: Floats, sent: float, scale: Scale) -> float:
    """The smallest t whose limits a worker with these loads keeps."""
    t = 0.0
    for d in range(DIMENSIONS):
        if scale.per_t[d] > 0.0 and scale.capacity[d] < np.inf:
            above = (sent if d == NET else load[d]) / scale.capacity[d] - scale.balanced[d]
            if above > scale.same[d]:
                t = max(t, above / scale.per_t[d])
    return t


@compiled
def _range(k: int, placed: int, load: Floats, room: Room, rest: Floats, rest_tasks: Ints) -> tuple[int, int]:
    """Fewest and most tasks of operator k, by slots and by the limits of cpu, io and memory."""
    first = max(room.lowest[k], room.fewest - placed - rest_tasks[k + 1, 1])
    last = min(room.highest[k], room.slots - placed - rest_tasks[k + 1, 0])
    for d in range(DIMENSIONS):
        each = room.loads[d, k]
        if each > 0.0 and room.most[d] < np.inf:
            slack = room.most[d] - load[d] - rest[k + 1, d]
            last = min(last, int(np.floor(slack / each))) if slack >= 0.0 else -1
    return first, last


@compiled
def enumerate_patterns(
    room: Room,
    scale: Scale,
    from_t: float,
    patterns: Counts,
    reach: Floats,
    price: Floats,
    below_t: float,
    best: Floats,
    tries: int,
) -> tuple[int, bool]:
    """Write every pattern with a t of at least `from_t`, or only price those with a t below `below_t`.

    Args:
        patterns: (N, n) buffer; N = 0 prices only.
        reach: (N,) buffer for their t.
        price: (n,) of a task.
        best: (B,) price of the dearest pattern in each of B equal ranges of t from 0 to `below_t`, raised in place.
        tries: give up after so many.

    Returns:
        how many were written, and whether these, or the prices, are all.
    """
    n = len(room.tasks)
    tasks, loads, least, slots = room.tasks, room.loads, room.least, room.slots
    upstream, downstream, edge_load, forward = room.upstream, room.downstream, room.edge_load, room.forward
    net_most, limited = room.net_most, room.net_most < np.inf
    rest = np.zeros((n + 1, DIMENSIONS))
    heaviest = np.zeros((n + 1, DIMENSIONS))
    most_rest = np.zeros((n + 1, DIMENSIONS))
    rest_tasks = np.zeros((n + 1, 2), dtype=np.int64)
    for k in range(n - 1, -1, -1):
        rest_tasks[k, 0] = rest_tasks[k + 1, 0] + room.lowest[k]
        rest_tasks[k, 1] = rest_tasks[k + 1, 1] + room.highest[k]
        for d in range(DIMENSIONS):
            rest[k, d] = rest[k + 1, d] + room.lowest[k] * loads[d, k]
            most_rest[k, d] = most_rest[k + 1, d] + room.highest[k] * loads[d, k]
            heaviest[k, d] = max(heaviest[k + 1, d], loads[d, k])
    row = np.zeros(n, dtype=np.int64)
    last = np.zeros(n, dtype=np.int64)
    load = np.zeros((n + 1, DIMENSIONS))
    placed = np.zeros(n + 1, dtype=np.int64)
    kept, k = 0, 0
    row[0], last[0] = _range(0, 0, load[0], room, rest, rest_tasks)
    row[0] -= 1
    for _ in range(tries):
        row[k] += 1
        if row[k] > last[k]:
            row[k] = 0
            k -= 1
            if k < 0:
                return kept, True
            continue
        placed[k + 1] = placed[k] + row[k]
        free = slots - placed[k + 1]
        fits = True
        for d in range(DIMENSIONS):
            load[k + 1, d] = load[k, d] + row[k] * loads[d, k]
            fits = fits and load[k + 1, d] + min(most_rest[k + 1, d], free * heaviest[k + 1, d]) >= least[d]
        if not fits:
            continue
        sent = 0.0
        if limited or k == n - 1:
            sent = net_floor(k, row, free, tasks, upstream, downstream, edge_load, forward)
            if sent > net_most:
                continue
        if k == n - 1:
            t = _reach(load[n], sent, scale)
            if len(patterns) == 0:
                if t < below_t:
                    value = 0.0
                    for i in range(n):
                        value += price[i] * row[i]
                    b = int(t / below_t * len(best))
                    best[b] = max(best[b], value)
            elif t >= from_t:
                if kept == len(patterns):
                    return kept, False
                for i in range(n):
                    patterns[kept, i] = row[i]
                reach[kept] = t
                kept += 1
        else:
            k += 1
            row[k], last[k] = _range(k, placed[k], load[k], room, rest, rest_tasks)
            row[k] -= 1
    return kept, False


@compiled
def best_of_blocks(patterns: Counts, kind: Ints, price: Floats, offset: Floats, blocks: int) -> tuple[Ints, Floats]:
    """The dearest pattern of each block of rows: index and price.

    Args:
        patterns: (N, n); kind: (N,) type of worker; price: (n,) of a task; offset: (T,) of a worker.
    """
    size, n = patterns.shape
    index = np.zeros(blocks, dtype=np.int64)
    best = np.full(blocks, -np.inf)
    for b in range(blocks):
        for k in range(b * size // blocks, (b + 1) * size // blocks):
            value = offset[kind[k]]
            for i in range(n):
                value += price[i] * patterns[k, i]
            if value > best[b]:
                index[b], best[b] = k, value
    return index, best


@compiled
def covered_from(patterns: Counts, kind: Ints, price: Floats, workers: Floats, asked: float) -> int:
    """Number of rows after which workers that each hold their dearest pattern reach the price asked; N + 1 if never.

    Args:
        workers: (T,) workers of each type.
        asked: price of all tasks.
    """
    size, n = patterns.shape
    best = np.full(len(workers), -np.inf)
    for k in range(size):
        value = 0.0
        for i in range(n):
            value += price[i] * patterns[k, i]
        if value > best[kind[k]]:
            best[kind[k]] = value
            total = 0.0
            for kind_of in range(len(workers)):
                total += workers[kind_of] * best[kind_of]
            if total >= asked:
                return k + 1
    return int(size) + 1
