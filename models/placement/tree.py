"""The search tree of CAPS (CAPSys section 4.3-4.4), walked depth first by one compiled loop.

A layer of the outer search is an operator k, in exploration order; within it the inner search goes through the workers
w and tries how many tasks of k go to w, the fewest first. The stack has one level per (k, w), level = k W + w.

- Duplicate elimination: among workers of one type that hold the same tasks so far ("twins"), a worker gets no more
  tasks than the one before it. Every plan is met once, as the one whose workers do not increase within their type.
- Threshold pruning: a level is left as soon as a worker must break a limit. cpu, io and memory only grow. What leaves a
  worker over edge (u, v) is at least c x_u (1 - min(p_v, x_v + free slots) / p_v) while v is not placed, and is counted
  once u is; where the edge is forward, c max(0, x_u - min(p_v, free slots)).
- Slack pruning: in cpu, io and memory, what the workers can still take, each no more than the heaviest tasks left that
  fill its free slots, must cover the load not yet placed.

The walk stops after a number of steps and can be resumed, so that whoever drives it can look at the clock.
"""

from typing import Final, NamedTuple

import numpy as np

from models.placement.compiled import compiled
from models.placement.problem import Bools, Floats, Ints

EXHAUSTED: Final = 0
"""The whole tree has been walked."""
PAUSED: Final = 1
"""The steps are used up."""
FULL: Final = 2
"""The buffer is full of plans."""

LEVEL: Final = 0
NODES: Final = 1
PLANS: Final = 2


class Tree(NamedTuple):
    """What is searched; n operators in exploration order, W workers sorted by type."""

    tasks: Ints
    """(n,)"""
    loads: Floats
    """(3, n): cpu, io and memory of one task."""
    limits: Floats
    """(3, W): the most of each that a worker may hold, with the tolerance; infinite where there is no limit."""
    net_limits: Floats
    """(W,)"""
    net_limited: bool
    slots: Ints
    """(W,)"""
    same_type: Bools
    """(W,): whether worker w is of the type of worker w - 1."""
    heaviest: Floats
    """(n + 1, 3, S + 1): load of the f heaviest tasks of layer k and later, f = 0..S slots."""
    remaining: Floats
    """(n + 1, 3): load of all tasks of layer k and later."""
    upstream: Ints
    downstream: Ints
    edge_load: Floats
    forward: Bools


class Walk(NamedTuple):
    """Where the walk stands; L = n W levels."""

    position: Ints
    """(3,): level, nodes visited, plans met."""
    counts: Ints
    """(W, n): tasks placed so far."""
    free: Ints
    """(W,): free slots."""
    load: Floats
    """(3, W)"""
    value: Ints
    """(L,): tasks tried at each level"""
    last: Ints
    """(L,): most tasks to try"""
    left: Ints
    """(L,): tasks of the operator not placed on earlier workers"""
    before: Floats
    """(L, 3): load of the worker before the level; kept, so that undoing leaves no rounding error"""
    taken: Floats
    """(L, 3): what workers up to the level's own can still take of later layers"""
    twin: Bools
    """(n + 1, W): worker w holds the same tasks as w - 1 of all earlier layers"""
    run_end: Ints
    """(n, W): last worker of the twins that w belongs to"""
    most: Ints
    """(n, W): most tasks of layer k that w can take"""
    most_after: Ints
    """(n, W + 1): sum of `most` over w and later workers"""
    room_after: Floats
    """(n, 3, W + 1): what w and later workers can still take of layer k and later"""


def start(tree: Tree) -> Walk:
    """A walk that stands before the root."""
    n, workers = len(tree.tasks), len(tree.slots)
    levels = n * workers
    walk = Walk(
        position=np.zeros(3, dtype=np.int64),
        counts=np.zeros((workers, n), dtype=np.int64),
        free=tree.slots.copy(),
        load=np.zeros((3, workers)),
        value=np.zeros(levels, dtype=np.int64),
        last=np.zeros(levels, dtype=np.int64),
        left=np.zeros(levels, dtype=np.int64),
        before=np.zeros((levels, 3)),
        taken=np.zeros((levels, 3)),
        twin=np.zeros((n + 1, workers), dtype=np.bool_),
        run_end=np.zeros((n, workers), dtype=np.int64),
        most=np.zeros((n, workers), dtype=np.int64),
        most_after=np.zeros((n, workers + 1), dtype=np.int64),
        room_after=np.zeros((n, 3, workers + 1)),
    )
    walk.twin[0] = tree.same_type
    _enter_layer(tree, walk, 0)
    return walk


@compiled
def _enter_layer(tree: Tree, walk: Walk, k: int) -> None:
    """Prepare layer k, whose earlier layers are all placed, and open its first level."""
    workers = len(tree.slots)
    walk.most_after[k, workers] = 0
    for d in range(3):
        walk.room_after[k, d, workers] = 0.0
    for w in range(workers - 1, -1, -1):
        most = min(walk.free[w], tree.tasks[k])
        for d in range(3):
            slack = tree.limits[d, w] - walk.load[d, w]
            if tree.loads[d, k] > 0.0 and most * tree.loads[d, k] > slack:
                most = max(0, int(np.floor(slack / tree.loads[d, k])))
            room = min(max(slack, 0.0), tree.heaviest[k, d, walk.free[w]])
            walk.room_after[k, d, w] = walk.room_after[k, d, w + 1] + room
        walk.most[k, w] = most
        walk.most_after[k, w] = walk.most_after[k, w + 1] + most
        joined = w + 1 < workers and walk.twin[k, w + 1]
        walk.run_end[k, w] = walk.run_end[k, w + 1] if joined else w
    _open_level(tree, walk, k, 0, tree.tasks[k])


@compiled
def _open_level(tree: Tree, walk: Walk, k: int, w: int, left: int) -> None:
    """Set the range of tasks to try on worker w, of `left` tasks that w and later workers must take."""
    level = k * len(tree.slots) + w
    end = walk.run_end[k, w]
    most = min(walk.most[k, w], left)
    if walk.twin[k, w]:
        most = min(most, walk.counts[w - 1, k])
    least = max(0, left - walk.most_after[k, w + 1])
    beyond_run = left - walk.most_after[k, end + 1]
    twins = end - w + 1
    least = max(least, (beyond_run + twins - 1) // twins)
    walk.left[level] = left
    walk.value[level] = least
    walk.last[level] = most
    for d in range(3):
        walk.before[level, d] = walk.load[d, w]


@compiled
def _net_floor(tree: Tree, walk: Walk, k: int, w: int) -> float:
    """The least that can leave worker w, with layers 0..k placed on it."""
    total = 0.0
    for e in range(len(tree.upstream)):
        u, v = tree.upstream[e], tree.downstream[e]
        here = walk.counts[w, u]
        if u > k or here == 0:
            continue
        there = walk.counts[w, v] if v <= k else min(tree.tasks[v], walk.free[w])
        if tree.forward[e]:
            total += tree.edge_load[e] * max(0, here - there)
        else:
            total += tree.edge_load[e] * here * (1.0 - there / tree.tasks[v])
    return total


@compiled
def _fits(tree: Tree, walk: Walk, k: int, w: int, level: int) -> bool:
    """Whether a plan may still follow from what has just been placed on worker w."""
    if tree.net_limited and _net_floor(tree, walk, k, w) > tree.net_limits[w]:
        return False
    unplaced = walk.left[level] - walk.value[level]
    for d in range(3):
        slack = tree.limits[d, w] - walk.load[d, w]
        if slack < 0.0:
            return False
        taken = min(slack, tree.heaviest[k + 1, d, walk.free[w]])
        if w > 0:
            taken += walk.taken[level - 1, d]
        walk.taken[level, d] = taken
        needed = tree.remaining[k + 1, d] + unplaced * tree.loads[d, k]
        if taken + walk.room_after[k, d, w + 1] < needed * (1.0 - 1e-9):
            return False
    return True


@compiled
def advance(tree: Tree, walk: Walk, plans: Ints, steps: int) -> tuple[int, int]:
    """Walk on for at most `steps` tries.

    Args:
        plans: (B, W, n) buffer that plans are written to; B = 0 counts them only.

    Returns:
        why it stopped (EXHAUSTED, PAUSED or FULL), and how many plans the buffer holds.
    """
    n, workers = len(tree.tasks), len(tree.slots)
    kept = 0
    level = walk.position[LEVEL]
    for _ in range(steps):
        if walk.value[level] > walk.last[level]:
            if level == 0:
                walk.position[LEVEL] = 0
                return EXHAUSTED, kept
            level -= 1
            _take_back(walk, level, workers)
            continue
        k, w = level // workers, level % workers
        tasks = walk.value[level]
        walk.counts[w, k] = tasks
        walk.free[w] -= tasks
        for d in range(3):
            walk.load[d, w] = walk.before[level, d] + tasks * tree.loads[d, k]
        if not _fits(tree, walk, k, w, level):
            _take_back(walk, level, workers)
            continue
        walk.position[NODES] += 1
        if level == n * workers - 1:
            walk.position[PLANS] += 1
            if kept < len(plans):
                plans[kept] = walk.counts
                kept += 1
            _take_back(walk, level, workers)
            if kept == len(plans) and kept > 0:
                walk.position[LEVEL] = level
                return FULL, kept
            continue
        level += 1
        if w < workers - 1:
            _open_level(tree, walk, k, w + 1, walk.left[level - 1] - tasks)
        else:
            for x in range(1, workers):
                walk.twin[k + 1, x] = walk.twin[k, x] and walk.counts[x, k] == walk.counts[x - 1, k]
            _enter_layer(tree, walk, k + 1)
    walk.position[LEVEL] = level
    return PAUSED, kept


@compiled
def _take_back(walk: Walk, level: int, workers: int) -> None:
    """Undo the level's tasks, and make the next number of tasks its next try."""
    k, w = level // workers, level % workers
    walk.free[w] += walk.counts[w, k]
    walk.counts[w, k] = 0
    for d in range(3):
        walk.load[d, w] = walk.before[level, d]
    walk.value[level] += 1
