"""All count vectors of one worker, and prices over them.

A walk goes through the operators in the order given. A branch is pruned when the tasks placed so far, with the fewest of
the rest, break a limit, or with the most of the rest cannot reach a lower bound. Network traffic is bounded as in
`models.placement.kernels.tree`.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from models.compiled import compiled
from models.placement.kernels.network import network_floor
from models.placement.kernels.problem import ADDITIVE, CPU, IO, NET, ROWS, CompiledProblem, Floats, Ints

Counts = npt.NDArray[np.int16]

ALL: Final = 0
"""All patterns were walked through."""
NO_ROOM: Final = 1
"""The buffer is full."""
TOO_MANY: Final = 2
"""The tries are used up, or would not suffice."""
PROBE: Final = 2_000_000
"""Tries between checks of the share of the tree walked so far."""
IN_SIGHT: Final = 0.05
"""Give up if progress is below this share of the expected; the first branches are the largest, so the walk speeds up."""


class WorkerSpace(NamedTuple):
    """What one worker may hold; n operators in exploration order."""

    problem: CompiledProblem
    lowest: Ints
    """(n,): fewest tasks of each operator."""
    highest: Ints
    """(n,): most tasks of each."""
    fewest: int
    """Fewest tasks of all operators together."""
    slots: int
    least: Floats
    """(4,): least load of the worker; 0 for the network."""
    most: Floats
    """(4,): largest load of the worker; infinite where there is no limit."""


class Scale(NamedTuple):
    """How the loads of a worker become its t on a ray; each (3,): cpu, io and net."""

    capacity: Floats
    balanced: Floats
    """L^min + base (L^max - L^min): the load at t = 0."""
    same: Floats
    """A load above `balanced` by no more than this costs nothing."""
    per_t: Floats
    """slope (L^max - L^min): load for each unit of t; 0 where t does not move the dimension."""


@compiled
def _reach(load: Floats, sent: float, scale: Scale) -> float:
    """The smallest t whose limits a worker with these loads keeps."""
    t = 0.0
    for d in (CPU, IO, NET):
        if scale.per_t[d] > 0.0 and scale.capacity[d] < np.inf:
            above = (sent if d == NET else load[d]) / scale.capacity[d] - scale.balanced[d]
            if above > scale.same[d]:
                t = max(t, above / scale.per_t[d])
    return t


class Sink(NamedTuple):
    """What is done with the patterns: those with a t of at least `from_t` are written, or, where there is no room to
    write, those with a t below `below_t` are priced."""

    patterns: Counts
    """(N, n) buffer; N = 0 prices only."""
    reach: Floats
    """(N,) buffer for their t."""
    from_t: float
    price: Floats
    """(n,) of a task."""
    below_t: float
    best: Floats
    """(B,): highest price of a pattern in each of B equal ranges of t from 0 to `below_t`, raised in place."""


class Rest(NamedTuple):
    """Load that operators k and later can add; rows k = 0..n."""

    fewest: Ints
    """(n + 1,): fewest tasks."""
    most: Ints
    """(n + 1,): most tasks."""
    least_load: Floats
    """(n + 1, 4)"""
    most_load: Floats
    """(n + 1, 4)"""
    heaviest: Floats
    """(n + 1, 4): load of the heaviest task."""


@compiled
def _rest_of(room: WorkerSpace) -> Rest:
    n = len(room.lowest)
    rest = Rest(
        np.zeros(n + 1, dtype=np.int64),
        np.zeros(n + 1, dtype=np.int64),
        np.zeros((n + 1, ROWS)),
        np.zeros((n + 1, ROWS)),
        np.zeros((n + 1, ROWS)),
    )
    for k in range(n - 1, -1, -1):
        rest.fewest[k] = rest.fewest[k + 1] + room.lowest[k]
        rest.most[k] = rest.most[k + 1] + room.highest[k]
        for d in ADDITIVE:
            each = room.problem.loads[d, k]
            rest.least_load[k, d] = rest.least_load[k + 1, d] + room.lowest[k] * each
            rest.most_load[k, d] = rest.most_load[k + 1, d] + room.highest[k] * each
            rest.heaviest[k, d] = max(rest.heaviest[k + 1, d], each)
    return rest


@compiled
def _range(k: int, placed: int, load: Floats, room: WorkerSpace, rest: Rest) -> tuple[int, int]:
    """Fewest and most tasks of operator k, by slots and by the limits of cpu, io and memory."""
    first = max(room.lowest[k], room.fewest - placed - rest.most[k + 1])
    last = min(room.highest[k], room.slots - placed - rest.fewest[k + 1])
    for d in ADDITIVE:
        each = room.problem.loads[d, k]
        if each > 0.0 and room.most[d] < np.inf:
            slack = room.most[d] - load[d] - rest.least_load[k + 1, d]
            last = min(last, int(np.floor(slack / each))) if slack >= 0.0 else -1
    return first, last


@compiled
def _raise_best(row: Ints, t: float, price: Floats, below_t: float, best: Floats) -> None:
    """Price a pattern, if its t is below `below_t`."""
    if t < below_t:
        value = 0.0
        for i in range(len(row)):
            value += price[i] * row[i]
        b = int(t / below_t * len(best))
        best[b] = max(best[b], value)


@compiled
def _share_walked(k: int, row: Ints, first: Ints, last: Ints) -> float:
    """Share of the tree before the branch at level k, if all branches of a level were alike."""
    share, width = 0.0, 1.0
    for i in range(k + 1):
        width /= last[i] - first[i] + 1
        share += (row[i] - first[i]) * width
    return share


@compiled
def _load(k: int, number: int, free: int, load: Floats, loads: Floats, least: Floats, rest: Rest) -> bool:
    """Put `tasks` of operator k on the worker; return whether the rest can still reach its least load."""
    enough = True
    for d in ADDITIVE:
        load[k + 1, d] = load[k, d] + number * loads[d, k]
        more = min(rest.most_load[k + 1, d], free * rest.heaviest[k + 1, d])
        enough = enough and load[k + 1, d] + more >= least[d]
    return enough


@compiled
def enumerate_patterns(room: WorkerSpace, scale: Scale, sink: Sink, tries: int) -> tuple[int, int]:
    """Walk through all patterns of a worker.

    Args:
        tries: most tries; it gives up earlier if they would not be enough.

    Returns:
        how many were written, and ALL, NO_ROOM or TOO_MANY.
    """
    tasks, loads, upstream, downstream, edge_load, forward = room.problem
    n, least, slots, net_most = len(tasks), room.least, room.slots, room.most[NET]
    patterns, reach, from_t, price, below_t, best = sink
    rest = _rest_of(room)
    row, first, last = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    load, placed = np.zeros((n + 1, ROWS)), np.zeros(n + 1, dtype=np.int64)
    kept, k, sent = 0, 0, 0.0
    first[0], last[0] = _range(0, 0, load[0], room, rest)
    row[0] = first[0] - 1
    for tried in range(tries):
        if tried == PROBE and _share_walked(k, row, first, last) * tries < PROBE * IN_SIGHT:
            break
        row[k] += 1
        if row[k] > last[k]:
            row[k] = 0
            k -= 1
            if k < 0:
                return kept, ALL
            continue
        placed[k + 1] = placed[k] + row[k]
        free = slots - placed[k + 1]
        fits = _load(k, row[k], free, load, loads, least, rest)
        if fits and (net_most < np.inf or k == n - 1):
            sent = network_floor(k, row, free, tasks, upstream, downstream, edge_load, forward)
            fits = sent <= net_most
        if not fits:
            continue
        if k < n - 1:
            k += 1
            first[k], last[k] = _range(k, placed[k], load[k], room, rest)
            row[k] = first[k] - 1
            continue
        t = _reach(load[n], sent, scale)
        if len(patterns) == 0:
            _raise_best(row, t, price, below_t, best)
        elif t >= from_t:
            if kept == len(patterns):
                return kept, NO_ROOM
            for i in range(n):
                patterns[kept, i] = row[i]
            reach[kept] = t
            kept += 1
    return kept, TOO_MANY


@compiled
def best_of_blocks(patterns: Counts, kind: Ints, price: Floats, offset: Floats, blocks: int) -> tuple[Ints, Floats]:
    """The pattern with the highest price in each block of rows: index and price.

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
    """Number of rows after which workers that each hold their highest-priced pattern reach the price asked; N + 1 if never.

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
