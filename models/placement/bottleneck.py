"""Dimensions that cannot become a bottleneck, wherever the tasks are placed.

L_d^max (CAPSys Eq. 7) is the load of a worker whose slots hold the heaviest tasks there are, as a share of its
capacity; no placement loads a worker more. Where that is below a half, twice the rate would still fit, and balance in
that dimension is worth nothing.

The tuning of section 5.2 relaxes all thresholds by one factor. A dimension whose least cost is near 0, as the network's
is where few tasks nearly fit on one worker, makes that factor large and so loosens the thresholds of the others, even
where it cannot be short itself. So it gets no say. That needs to know the capacities; where no worker states one, loads
may be in any unit, and the paper's rule stands.
"""

from typing import Final

import numpy as np

from models.cluster import Cluster
from models.dataflow import Dataflow
from models.placement.problem import DIMENSIONS, capacities, dimension_loads, worst_loads

IDLE_SHARE: Final = 0.5
"""Of a worker's capacity; a dimension that no placement brings so far cannot become a bottleneck."""


def idle_dimensions(dataflow: Dataflow, cluster: Cluster, share: float = IDLE_SHARE) -> dict[str, float]:
    """Dimension -> load of the worst worker there can be, as a share of its capacity: those where that is below
    `share`, and some worker states its capacity."""
    slots = np.array([w.slots for w in cluster.workers], dtype=np.int64)
    parallelism = np.array([o.parallelism for o in dataflow.operators], dtype=np.int64)
    stated, capacity = capacities(cluster)
    worst = worst_loads(dimension_loads(dataflow), parallelism, slots, capacity)
    return {name: float(worst[d]) for d, name in enumerate(DIMENSIONS) if stated[d] and worst[d] < share}
