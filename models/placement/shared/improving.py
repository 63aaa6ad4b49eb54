"""Better mixes by moving single tasks between slots.

A task of vertex v may move to any worker that has a slot of its group without a task of v. With x_wv the tasks of v on w
and a_wg the slots of group g there, that is x_wv < a_wg. The slots stay where they are.
"""

from collections.abc import Callable
from typing import Final

import numpy as np

from models.placement.cost import costs
from models.placement.kernels.problem import Floats, Ints
from models.placement.problem import Problem

MOST_MOVES: Final = 200
MOST_TRIED: Final = 20_000
"""Plans that are compared for one move; with more, only moves from the workers with the most load are tried."""
Rank = Callable[[Floats], tuple[float, ...]]
"""Of a cost (3,); the least is the best."""


def improve(problem: Problem, counts: Ints, slots: Ints, rank: Rank) -> Ints:
    """A plan (W, V) that no move of a single task improves, or the best of MOST_MOVES moves.

    Args:
        slots: (W, V), slots on each worker of the group that each vertex is in.
    """
    best, least = counts, rank(costs(problem, counts))
    for _ in range(MOST_MOVES):
        plans = _neighbours(problem, best, slots)
        if not len(plans):
            break
        ranks = [rank(cost) for cost in costs(problem, plans)]
        first = min(range(len(ranks)), key=ranks.__getitem__)
        if ranks[first] >= least:
            break
        best, least = plans[first], ranks[first]
    return best


def _neighbours(problem: Problem, counts: Ints, slots: Ints) -> Ints:
    """(N, W, V): the plans that differ from `counts` by one move."""
    workers, vertices = counts.shape
    moves = [
        (v, w, other)
        for v in range(vertices)
        for other in np.flatnonzero(counts[:, v] < slots[:, v])
        for w in _senders(problem, counts, v, workers * workers * vertices > MOST_TRIED)
        if w != other
    ]
    plans = np.repeat(counts[None], len(moves), axis=0)
    for i, (v, w, other) in enumerate(moves):
        plans[i, w, v] -= 1
        plans[i, other, v] += 1
    return plans


def _senders(problem: Problem, counts: Ints, v: int, many: bool) -> Ints:
    """Workers that a task of v may leave; of many, those with the most load of each kind."""
    senders = np.flatnonzero(counts[:, v])
    if not many or not len(senders):
        return senders
    loads = (counts[senders] @ problem.loads[:3].T) / problem.capacity[:3, senders].T
    return np.unique(senders[np.argmax(loads, axis=0)])
