"""The least share of an operator's records that the fullest of its tasks gets: key groups are not divisible.

A task of p gets at least ceil(G / p) of G key groups if they are even. Hot keys are left out where they may even it out: of
the records that are not hot, a share 1 - h, the fullest task gets its share s; so it gets max(1 / p, (1 - h) s) or more.
"""

import zlib

import numpy as np

from models.dataflow import Partitioning
from models.job import Job
from models.keys.groups import key_groups
from testbeds.simulator.layout.keys import shares


def fullest_shares(job: Job, slots: int) -> dict[str, np.ndarray]:
    """m(p) for p = 1 ... slots, by operator."""
    found = {}
    for o in job.operators:
        even = 1.0 / np.arange(1, slots + 1)
        edges = job.upstream_edges(o.name)
        if any(e.partitioning is Partitioning.BROADCAST for e in edges):
            continue
        if edges and all(e.partitioning is Partitioning.HASH for e in edges):
            hot = o.keys.hot_share if o.keys is not None else 0.0
            seed = zlib.crc32(f"{job.name}/{o.name}".encode())
            for p in range(1, slots + 1):
                total = job.key_groups or key_groups(p)
                if p <= total:
                    even[p - 1] = max(even[p - 1], (1 - hot) * float(np.max(shares(o.keys, p, total, seed))))
        found[o.name] = even
    return found
