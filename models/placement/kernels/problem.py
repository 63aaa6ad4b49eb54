"""A placement problem as the kernels see it: array types, the order of their rows, and the constant inputs."""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

CPU: Final = 0
IO: Final = 1
NET: Final = 2
MEMORY: Final = 3
"""Rows of every array of loads, limits and capacities."""
ROWS: Final = 4
ADDITIVE: Final = (CPU, IO, MEMORY)
"""Rows in which the load of a worker is the sum over its tasks; what it sends depends on where the receivers are."""


class CompiledProblem(NamedTuple):
    """Tasks with their loads, and the edges between them; n operators, E edges."""

    tasks: Ints
    """(n,): p_i"""
    loads: Floats
    """(4, n): of one task; the row of the network is what it would send if all receivers were elsewhere."""
    upstream: Ints
    """(E,)"""
    downstream: Ints
    """(E,)"""
    edge_load: Floats
    """(E,): c_e"""
    forward: Bools
    """(E,)"""
