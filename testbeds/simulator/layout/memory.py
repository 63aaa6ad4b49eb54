"""A TaskManager's memory for network buffers and for RocksDB's block cache (see also `models.resources.memory`)."""

import math

from models.errors import Infeasible
from models.resources.memory import MANAGED_FRACTION, managed_memory_per_slot_mb
from testbeds.simulator.settings import Flink


def network_memory_mb(memory_mb: float, flink: Flink) -> float:
    """Memory for network buffers of a TaskManager of `memory_mb` MiB in all, MiB.

    Raises:
        Infeasible: managed, network and framework memory leave nothing for the heap of its tasks.
    """
    managed = managed_memory_per_slot_mb(memory_mb, 1)
    total = managed / MANAGED_FRACTION
    network = min(max(flink.network_fraction * total, flink.network_min_mb), flink.network_max_mb)
    heap = total - managed - network - flink.framework_mb
    if heap <= 0:
        raise Infeasible(
            f"a TaskManager of {memory_mb:g} MiB cannot start: its task heap must be above 0, but managed, network and "
            f"framework memory leave {heap:.0f} MiB of the Flink memory of {total:.0f} MiB; give it more memory"
        )
    return network


def write_buffer_mb(managed_mb: float, flink: Flink) -> float:
    """RocksDB's MemTable, MiB: 128 -> 32, 256 -> 64, 512 -> 64 (Justin section 3)."""
    if managed_mb <= 0:
        return 0.0
    return float(min(2.0 ** math.floor(math.log2(managed_mb * flink.write_buffer_share)), flink.write_buffer_mb))


def cache_mb(managed_mb: float, flink: Flink) -> float:
    """Block cache, MiB: managed memory less the write buffer, 128 -> 96, 256 -> 192, 512 -> 448 (Justin section 3)."""
    return max(managed_mb - write_buffer_mb(managed_mb, flink), 0.0)
