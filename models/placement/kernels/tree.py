"""The search tree of CAPS (CAPSys section 4.3-4.4), walked depth first by one compiled loop.

A layer of the outer search is an operator k, in exploration order; within it the inner search goes through the workers
w and tries how many tasks of k go to w, the fewest first. The stack has one level per (k, w), level = k W + w.

- Duplicate elimination: among workers of one type that hold the same tasks so far ("twins"), a worker gets no more
  tasks than the one before it. Every plan is met once, as the one whose workers do not increase within their type.
- Threshold pruning: a level is pruned as soon as a worker must break a limit. cpu, io and memory only grow. Outbound
  traffic over edge (u, v) is at least c x_u (1 - min(p_v, x_v + free slots) / p_v) while v is not placed, and is counted
  once u is; where the edge is forward, c max(0, x_u - min(p_v, free slots)).
- Slack pruning: in cpu, io and memory, what the workers can still take, each no more than the heaviest tasks left that
  fill its free slots, must cover the load not yet placed.

The walk stops after a number of steps and can be resumed, so that the caller can check the clock.
"""

from typing import Final, NamedTuple

import numpy as np

from models.compiled import compiled
from models.placement.kernels.network import network_floor
from models.placement.kernels.problem import ADDITIVE, NET, ROWS, Bools, CompiledProblem, Floats, Ints

EXHAUSTED: Final = 0
"""The whole tree has been walked."""
PAUSED: Final = 1
"""The steps are used up."""
FULL: Final = 2
"""The buffer is full of plans."""

LEVEL: Final = 0
NODES: Final = 1
"""Indices of a walk's position."""


class Tree(NamedTuple):
    """What is searched; n operators in exploration order, W workers sorted by type."""

    problem: CompiledProblem
    most: Floats
    """(4, W): the most that a worker may hold, with the tolerance; infinite where there is no limit."""
    limited: Bools
    """(4,): whether any worker has a limit; False for the network"""
    net_limited: bool
    """whether any worker has a limit for its outbound traffic"""
    slots: Ints
    """(W,)"""
    same_type: Bools
    """(W,): whether worker w is of the type of worker w - 1."""
    heaviest: Floats
    """(n + 1, 4, S + 1): load of the f heaviest tasks of layer k and later, f = 0..S slots."""
    remaining: Floats
    """(n + 1, 4): load of all tasks of layer k and later."""


class Walk(NamedTuple):
    """State of a walk; L = n W levels."""

    position: Ints
    """(2,): level, and nodes visited."""
    counts: Ints
    """(W, n): tasks placed so far."""
    free: Ints
    """(W,): free slots."""
    load: Floats
    """(4, W)"""
    value: Ints
    """(L,): tasks tried at each level"""
    last: Ints
    """(L,): most tasks to try"""
    left: Ints
    """(L,): tasks of the operator not placed on earlier workers"""
    before: Floats
    """(L, 4): load of the worker before the level; kept, so that undoing leaves no rounding error"""
    taken: Floats
    """(L, 4): what workers up to the level's own can still take of later layers"""
    twin: Bools
    """(n + 1, W): worker w holds the same tasks as w - 1 of all earlier layers"""
    run_end: Ints
    """(n, W): last worker of the twins that w belongs to"""
    most: Ints
    """(n, W): most tasks of layer k that w can take"""
    most_after: Ints
    """(n, W + 1): sum of `most` over w and later workers"""
    room_after: Floats
    """(n, 4, W + 1): what w and later workers can still take of layer k and later"""


def start(tree: Tree) -> Walk:
    """A walk before its first step."""
    n, workers = len(tree.problem.tasks), len(tree.slots)
    levels = n * workers
    walk = Walk(
        position=np.zeros(2, dtype=np.int64),
        counts=np.zeros((workers, n), dtype=np.int64),
        free=tree.slots.copy(),
        load=np.zeros((ROWS, workers)),
        value=np.zeros(levels, dtype=np.int64),
        last=np.zeros(levels, dtype=np.int64),
        left=np.zeros(levels, dtype=np.int64),
        before=np.zeros((levels, ROWS)),
        taken=np.zeros((levels, ROWS)),
        twin=np.zeros((n + 1, workers), dtype=np.bool_),
        run_end=np.zeros((n, workers), dtype=np.int64),
        most=np.zeros((n, workers), dtype=np.int64),
        most_after=np.zeros((n, workers + 1), dtype=np.int64),
        room_after=np.zeros((n, ROWS, workers + 1)),
    )
    walk.twin[0] = tree.same_type
    walk.value[0], walk.last[0] = _enter_layer(tree, walk, 0)
    walk.left[0] = tree.problem.tasks[0]
    return walk


@compiled
def _enter_layer(tree: Tree, walk: Walk, k: int) -> tuple[int, int]:
    """Prepare layer k, whose earlier layers are all placed; the range of tasks to try on its first worker."""
    workers = len(tree.slots)
    free, load, limits, twin = walk.free, walk.load, tree.most, walk.twin
    most_of, most_after, room_after = walk.most[k], walk.most_after[k], walk.room_after[k]
    run_end, heaviest, loads, limited = walk.run_end[k], tree.heaviest[k], tree.problem.loads, tree.limited
    tasks = tree.problem.tasks[k]
    most_after[workers] = 0
    for d in ADDITIVE:
        room_after[d, workers] = 0.0
    for w in range(workers - 1, -1, -1):
        most = min(free[w], tasks)
        for d in ADDITIVE:
            if not limited[d]:
                continue
            slack = limits[d, w] - load[d, w]
            if loads[d, k] > 0.0 and most * loads[d, k] > slack:
                most = max(0, int(np.floor(slack / loads[d, k])))
            room_after[d, w] = room_after[d, w + 1] + min(max(slack, 0.0), heaviest[d, free[w]])
        most_of[w] = most
        most_after[w] = most_after[w + 1] + most
        run_end[w] = run_end[w + 1] if w + 1 < workers and twin[k, w + 1] else w
    return _least(tasks, 0, most_after, run_end), min(most_of[0], tasks)


@compiled
def _least(left: int, w: int, most_after: Ints, run_end: Ints) -> int:
    """The fewest of `left` tasks that worker w must take, so that later workers can take the rest."""
    end = run_end[w]
    twins = end - w + 1
    share_of_twins = (left - most_after[end + 1] + twins - 1) // twins
    return int(max(0, left - most_after[w + 1], share_of_twins))


@compiled
def advance(tree: Tree, walk: Walk, plans: Ints, steps: int) -> tuple[int, int]:
    """Walk on for at most `steps` tries.

    Args:
        plans: (B, W, n) buffer that plans are written to, B > 0.

    Returns:
        why it stopped (EXHAUSTED, PAUSED or FULL), and how many plans the buffer holds.
    """
    # One long loop, with tuples unpacked once: a call with arrays, or an access to a tuple, counts references
    # each time, which makes the walk a sixth slower.
    tasks, loads, upstream, downstream, edge_load, forward = tree.problem
    limits, net_limits, remaining = tree.most, tree.most[NET], tree.remaining
    heaviest, limited, net_limited = tree.heaviest, tree.limited, tree.net_limited
    counts, free, load, value, last, left = walk.counts, walk.free, walk.load, walk.value, walk.last, walk.left
    before, taken, twin, run_end = walk.before, walk.taken, walk.twin, walk.run_end
    most, most_after, room_after = walk.most, walk.most_after, walk.room_after
    workers, n = counts.shape
    kept = 0
    nodes = 0
    level = walk.position[LEVEL]
    k, w = level // workers, level % workers
    reason = PAUSED
    for _ in range(steps):
        back = value[level] > last[level]
        if back:
            if level == 0:
                reason = EXHAUSTED
                break
            level -= 1
            w -= 1
            if w < 0:
                k, w = k - 1, workers - 1
        else:
            number = value[level]
            counts[w, k] = number
            free[w] -= number
            for d in ADDITIVE:
                load[d, w] = before[level, d] + number * loads[d, k]
            fits = True
            if net_limited:
                sent = network_floor(k, counts[w], free[w], tasks, upstream, downstream, edge_load, forward)
                fits = sent <= net_limits[w]
            unplaced = left[level] - number
            for d in ADDITIVE:
                if not (limited[d] and fits):
                    continue
                slack = limits[d, w] - load[d, w]
                room = min(slack, heaviest[k + 1, d, free[w]])
                taken[level, d] = room + (taken[level - 1, d] if w > 0 else 0.0)
                needed = remaining[k + 1, d] + unplaced * loads[d, k]
                fits = slack >= 0.0 and taken[level, d] + room_after[k, d, w + 1] >= needed * (1.0 - 1e-9)
            back = not fits
            if fits:
                nodes += 1
                if level == n * workers - 1:
                    plans[kept] = counts
                    kept += 1
                    if kept == len(plans):
                        reason = FULL
                    back = True
        if back:
            free[w] += counts[w, k]
            counts[w, k] = 0
            for d in ADDITIVE:
                load[d, w] = before[level, d]
            value[level] += 1
            if reason == FULL:
                break
            continue
        level += 1
        w += 1
        if w < workers:
            left[level] = unplaced
            value[level] = _least(unplaced, w, most_after[k], run_end[k])
            last[level] = min(most[k, w], unplaced, counts[w - 1, k]) if twin[k, w] else min(most[k, w], unplaced)
        else:
            k, w = k + 1, 0
            for x in range(1, workers):
                twin[k, x] = twin[k - 1, x] and counts[x, k - 1] == counts[x - 1, k - 1]
            left[level] = tasks[k]
            value[level], last[level] = _enter_layer(tree, walk, k)
        for d in ADDITIVE:
            before[level, d] = load[d, w]
    walk.position[LEVEL] = level
    walk.position[NODES] += nodes
    return reason, kept
