"""Flink's memory model: what a TaskManager's memory leaves to the state of one task.

Total process memory P (MiB) holds the JVM metaspace (256), the JVM overhead (10 % of P, between 192 and 1024) and the
Flink memory F, the rest. Managed memory is 0.4 F, shared evenly by the slots; RocksDB keeps its memtables and its
block cache in it. The figures are the defaults of Flink's `taskmanager.memory.*` options.
"""

import math
from collections.abc import Mapping
from typing import Final

from models.errors import Infeasible

METASPACE_MB: Final = 256.0
OVERHEAD_FRACTION: Final = 0.1
OVERHEAD_MIN_MB: Final = 192.0
OVERHEAD_MAX_MB: Final = 1024.0
MANAGED_FRACTION: Final = 0.4

_ROUNDING_MB: Final = 1e-6
"""Keeps a whole number from being rounded up to the next by its last digit."""

HEAP_MB: Final = 134.0
"""On-heap memory of one task: a slot's share of a TaskManager of 2 GB with 4 slots (Justin section 5)."""
NETWORK_MB: Final = 39.0
"""Its network memory, the same."""
MANAGED_MB: Final = 158.0
"""Its managed memory, the same."""


def managed_memory_per_slot_mb(memory_mb: float, slots: int) -> float:
    """Managed memory of one slot, MiB.

    Args:
        memory_mb: total process memory of the TaskManager, MiB.
        slots: its slots.

    Raises:
        Infeasible: the memory does not even hold the JVM's own share.
    """
    return MANAGED_FRACTION * _flink_memory_mb(memory_mb) / slots


def memory_for_slots_mb(memory_mb: float, slots: int, wanted: int) -> float:
    """Memory of a TaskManager with `wanted` slots, each with at least what one of a TaskManager of `slots` has; whole MiB.

    Fewer slots share the JVM's own part among fewer, so each of them takes more.

    Args:
        memory_mb: total process memory of the TaskManager with `slots` slots, MiB.

    Raises:
        Infeasible: that does not even hold the JVM's own share.
    """
    if wanted == slots:
        return memory_mb
    return float(math.ceil(max(_for_slots_mb(memory_mb, slots, wanted)) - _ROUNDING_MB))


def measured_memory_mb(memory_mb: float, slots: int, measured: int) -> float:
    """Memory of a TaskManager with `measured` slots whose slots have what those of one with `slots` have, MiB.

    The inverse of `memory_for_slots_mb`, but for its rounding.

    Args:
        memory_mb: total process memory of the TaskManager with `slots` slots, MiB.

    Raises:
        Infeasible: that does not even hold the JVM's own share.
    """
    return memory_mb if measured == slots else min(_for_slots_mb(memory_mb, slots, measured))


def _for_slots_mb(memory_mb: float, slots: int, wanted: int) -> tuple[float, float]:
    """Memory of a TaskManager with `wanted` slots, MiB: with as much managed memory for each, and with as much in all."""
    without_overhead = _flink_memory_mb(memory_mb) * wanted / slots + METASPACE_MB
    total = without_overhead / (1 - OVERHEAD_FRACTION)
    return without_overhead + _overhead_mb(total), memory_mb * wanted / slots


def jvm_memory_mb(memory_mb: float) -> float:
    """What the JVM takes for itself of a TaskManager's memory, MiB: metaspace and overhead."""
    return METASPACE_MB + _overhead_mb(memory_mb)


def _overhead_mb(memory_mb: float) -> float:
    return min(max(OVERHEAD_FRACTION * memory_mb, OVERHEAD_MIN_MB), OVERHEAD_MAX_MB)


def _flink_memory_mb(memory_mb: float) -> float:
    """F, the memory without the JVM's own share."""
    own = jvm_memory_mb(memory_mb)
    if memory_mb <= own:
        raise Infeasible(f"a TaskManager needs more than {own:g} MiB for the JVM alone, but got {memory_mb:g} MiB")
    return memory_mb - own


def deployed_memory_mb(parallelism: Mapping[str, int], managed_mb: Mapping[str, float]) -> float:
    """Memory of a deployment, MiB: heap, network and managed memory of its tasks (Justin Figure 5).

    Args:
        parallelism: tasks of the operators that count; the paper leaves out sources.
        managed_mb: managed memory of one task of each, MiB; 0 for an operator that is not named.
    """
    return sum(tasks * (HEAP_MB + NETWORK_MB + managed_mb.get(name, 0.0)) for name, tasks in parallelism.items())
