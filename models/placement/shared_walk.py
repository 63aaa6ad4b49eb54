"""Several threads on one search tree (CAPSys section 5.1: "parallelizes the search by leveraging a thread pool").

A walk of `models.placement.tree` holds no interpreter lock. A thread that has nothing left waits, and one that is at
work, when it next looks up, gives away the later half of the branches that are open nearest to its root: mostly large
parts, so this happens seldom. Every node is visited by one thread, so that a tree walked to its end has the same nodes
and plans whatever the number of threads. The first plan ends the work of all; which one that is depends on the machine.
"""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import numpy as np

from models.placement.budget import Budget
from models.placement.problem import Ints
from models.placement.tree import BASE, EXHAUSTED, FULL, LEVEL, NODES, PLANS, Tree, Walk, advance, start

STEPS_BETWEEN_LOOKS: Final = 1_000_000
"""Tries between two looks at the clock, 20-50 ms."""
STEPS_OF_MANY: Final = 200_000
"""Where threads look for each other, too."""


@dataclass
class _Shift:
    """One call of `SharedWalk.walk`: what all its threads look at, under one lock."""

    budget: Budget
    threads: int
    most_plans: int
    steps_left: int | None
    idle: int = 0
    over: bool = False

    def take_steps(self) -> int:
        """How many tries a thread may make before it looks up again."""
        steps = STEPS_BETWEEN_LOOKS if self.threads == 1 else STEPS_OF_MANY
        if self.steps_left is None:
            return steps
        steps = min(steps, self.steps_left)
        self.steps_left -= steps
        return steps


class SharedWalk:
    """A search tree that is being walked, in one part or several."""

    def __init__(self, tree: Tree) -> None:
        self.nodes = 0
        """Visited by all threads."""
        self.plans = 0
        """Distinct plans met."""
        self._tree = tree
        self._open = [start(tree)]
        self._changed = threading.Condition()

    @property
    def ended(self) -> bool:
        """Whether the whole tree has been walked."""
        return not self._open

    def walk(self, most_plans: int, budget: Budget, most_steps: int | None = None, threads: int = 1) -> Ints:
        """Walk on until a thread has met `most_plans` plans (0: count them only), or tree, budget or steps end.

        Returns:
            (B, W, n): the plans met, up to `most_plans` of each thread.
        """
        shift = _Shift(budget, threads, most_plans, most_steps)
        if threads == 1:
            return self._work(shift)
        with ThreadPoolExecutor(threads) as pool:
            try:
                work = [pool.submit(self._work, shift) for _ in range(threads)]
                return np.concatenate([thread.result() for thread in work])
            finally:
                self._end(shift)

    def _work(self, shift: _Shift) -> Ints:
        """What one thread does."""
        workers, n = len(self._tree.slots), len(self._tree.tasks)
        buffer, kept = np.zeros((shift.most_plans, workers, n), dtype=np.int64), 0
        try:
            while (walk := self._next(shift)) is not None:
                more = True
                while more:
                    with self._changed:
                        steps = shift.take_steps()
                    reason, found = advance(self._tree, walk, buffer[kept:] if len(buffer) else buffer, steps)
                    kept += found
                    more = self._look_up(shift, walk, reason)
        except BaseException:
            self._end(shift)
            raise
        return buffer[:kept]

    def _next(self, shift: _Shift) -> Walk | None:
        """A part of the tree that nobody walks; None when there is nothing left to do."""
        with self._changed:
            shift.idle += 1
            while not self._open and not shift.over and shift.idle < shift.threads:
                self._changed.wait()
            if shift.over or not self._open:
                shift.over = True
                self._changed.notify_all()
                return None
            shift.idle -= 1
            return self._open.pop()

    def _look_up(self, shift: _Shift, walk: Walk, reason: int) -> bool:
        """Count what was done, hand over work to those who wait, and say whether to go on."""
        with self._changed:
            shift.budget.nodes += int(walk.position[NODES])
            self.nodes += int(walk.position[NODES])
            self.plans += int(walk.position[PLANS])
            walk.position[[NODES, PLANS]] = 0
            if reason == EXHAUSTED:
                return False
            if reason == FULL or shift.steps_left == 0 or shift.budget.spent:
                shift.over = True
            if shift.over:
                self._open.append(walk)
                self._changed.notify_all()
            elif shift.idle > len(self._open) and (part := split(self._tree, walk)) is not None:
                self._open.append(part)
                self._changed.notify()
            return not shift.over

    def _end(self, shift: _Shift) -> None:
        with self._changed:
            shift.over = True
            self._changed.notify_all()


def split(tree: Tree, walk: Walk) -> Walk | None:
    """Take the later half of the branches that are open nearest to the root of a walk, as a walk of its own.

    Returns:
        None where every level is at its last branch.
    """
    level, base = int(walk.position[LEVEL]), int(walk.position[BASE])
    branches = np.flatnonzero(walk.value[base : level + 1] < walk.last[base : level + 1])
    if not len(branches):
        return None
    root = base + int(branches[0])
    part = walk._replace(**{name: array.copy() for name, array in walk._asdict().items()})
    for above in range(level - 1, root - 1, -1):
        k, w = divmod(above, len(tree.slots))
        part.free[w] += part.counts[w, k]
        part.counts[w, k] = 0
        part.load[:, w] = part.before[above]
    middle = (int(walk.value[root]) + int(walk.last[root])) // 2
    part.value[root], walk.last[root] = middle + 1, middle
    part.position[:] = 0
    part.position[[LEVEL, BASE]] = root
    return part
