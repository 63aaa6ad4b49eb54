"""All placements of shared slots of a small job, listed without the search that is tested."""

from itertools import product

import numpy as np

from models.cluster import Cluster
from models.placement.kernels.problem import Ints
from models.placement.shared.sharing import SharedDataflow


def every_plan(shared: SharedDataflow, cluster: Cluster) -> Ints:
    """(N, W, V): all placements that some mix has: each vertex has its tasks, no group more slots than its widest vertex,
    no worker more than it has."""
    vertices, slots = list(shared.parallelism), [w.slots for w in cluster.workers]
    groups = [[vertices.index(v) for v in names] for names in shared.groups.values()]
    columns = [
        [c for c in product(*(range(min(p, s) + 1) for s in slots)) if sum(c) == p] for p in shared.parallelism.values()
    ]
    plans = [np.array(chosen).T for chosen in product(*columns)]
    return np.array([x for x in plans if _fits(x, groups, slots, shared.slots)])


def _fits(x: Ints, groups: list[list[int]], slots: list[int], most: int) -> bool:
    taken = sum(x[:, names].max(axis=1) for names in groups)
    return bool((taken <= slots).all() and taken.sum() <= most)
