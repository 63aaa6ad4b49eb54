"""The operator's memory tuning: a TaskManager with the memory that it uses, plus a margin.

The TaskManager's memory before tuning is divided in this order: what is not tuned (framework off-heap memory, JVM
overhead), the buffers of all channels that its tasks can have, metaspace and heap as used plus a margin, and managed
memory: as before, or all that is left if it is to be maximised; none if none is used. If there will be fewer
TaskManagers, the heap grows so that their total stays the same. If the memory is not enough, the last parts are cut.

All sizes are bytes. Fractions of a size are Flink's: 32-bit numbers, the product cut to whole bytes.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import Final

import numpy as np

from models.errors import InvalidInput
from models.scaling.flink.quantities import memory_size
from models.scaling.flink.settings import FlinkSettings

MIB: Final = 1 << 20

# Flink's defaults, by the options that set them.
_FRAMEWORK_OFF_HEAP: Final = 128 * MIB  # taskmanager.memory.framework.off-heap.size
_METASPACE: Final = 256 * MIB  # taskmanager.memory.jvm-metaspace.size
_OVERHEAD: Final = (0.1, 192 * MIB, 1024 * MIB)  # taskmanager.memory.jvm-overhead.{fraction,min,max}
_MANAGED_FRACTION: Final = 0.4  # taskmanager.memory.managed.fraction
_SEGMENT: Final = 32 << 10  # taskmanager.memory.segment-size
_BUFFERS_PER_CHANNEL: Final = 2  # taskmanager.network.memory.buffers-per-channel
_FLOATING_BUFFERS: Final = 8  # taskmanager.network.memory.floating-buffers-per-gate


@dataclass(frozen=True)
class MemoryUse:
    """Mean memory use of a TaskManager; bytes."""

    heap: int
    metaspace: int
    managed: int
    """Only whether it is 0 matters: a state backend uses all the memory it gets."""


@dataclass(frozen=True)
class Channels:
    """An edge between operators."""

    upstream: str
    downstream: str
    pointwise: bool = False
    """Whether a task sends to some tasks only (forward, rescale) rather than to all."""


@dataclass(frozen=True)
class TunedMemory:
    """The memory of one TaskManager; bytes."""

    process: int
    heap: int
    managed: int
    network: int
    metaspace: int
    overhead: int
    flink: int
    """Heap, managed, network and off-heap memory together."""

    @property
    def managed_fraction(self) -> float:
        return _fraction(self.managed, self.flink)

    @property
    def overhead_fraction(self) -> float:
        return _fraction(self.overhead, self.process)

    def options(self) -> dict[str, str]:
        """Flink options to set. Absolute sizes of total Flink, task heap and managed memory must be removed."""
        return {
            "taskmanager.memory.process.size": memory_size(self.process),
            "taskmanager.memory.framework.heap.size": "0 bytes",
            "taskmanager.memory.managed.fraction": str(self.managed_fraction),
            "taskmanager.memory.network.min": memory_size(self.network),
            "taskmanager.memory.network.max": memory_size(self.network),
            "taskmanager.memory.jvm-metaspace.size": memory_size(self.metaspace),
            "taskmanager.memory.jvm-overhead.fraction": str(self.overhead_fraction),
        }


class MemoryBudget:
    """Memory that is allocated until none is left."""

    def __init__(self, size: int) -> None:
        self.remaining = size

    def take(self, size: int) -> int:
        """Allocate up to `wanted`, as far as memory is left."""
        taken = min(size, self.remaining)
        self.remaining -= taken
        return taken


def tune(
    use: MemoryUse,
    edges: Iterable[Channels],
    before: Mapping[str, int],
    after: Mapping[str, int],
    slots_used: int,
    settings: FlinkSettings,
) -> TunedMemory:
    """The memory of a TaskManager once the job is rescaled.

    Args:
        before: tasks of each operator now.
        after: tasks of each operator once it is rescaled.
        slots_used: by the tasks now.

    Raises:
        InvalidInput: the size before tuning leaves nothing for Flink to share out.
    """
    overhead = _share_of(settings.process_memory, *_OVERHEAD)
    flink_before = settings.process_memory - overhead - _METASPACE
    if flink_before <= _FRAMEWORK_OFF_HEAP:
        raise InvalidInput(
            f"taskmanager.memory.process.size must hold more than {overhead + _METASPACE + _FRAMEWORK_OFF_HEAP:,} bytes of "
            f"overhead, metaspace and framework memory, but got {settings.process_memory:,}; raise it"
        )
    managed_before = _times(flink_before, _MANAGED_FRACTION)
    budget = MemoryBudget(settings.process_memory)
    budget.take(_FRAMEWORK_OFF_HEAP)
    budget.take(overhead)
    network = budget.take(_network(edges, after) * settings.task_slots)
    metaspace = budget.take(_with_room(use.metaspace, settings))
    heap = budget.take(_with_room(use.heap, settings))
    managed = 0
    if use.managed > 0:
        managed = budget.take(budget.remaining if settings.maximizes_managed_memory else managed_before)
    if settings.compensates_scale_down:
        heap += budget.take(int(_fewer(before, after, slots_used, settings.task_slots) * heap) - heap)
    return TunedMemory(
        process=settings.process_memory - budget.remaining,
        heap=heap,
        managed=managed,
        network=network,
        metaspace=metaspace,
        overhead=overhead,
        flink=heap + managed + network + _FRAMEWORK_OFF_HEAP,
    )


def buffers(tasks: int, connected: int, pointwise: bool) -> int:
    """Network buffers of one task towards the `connected` tasks of a neighbouring operator."""
    channels = math.ceil(connected / tasks) if pointwise else connected
    return channels * _BUFFERS_PER_CHANNEL + _FLOATING_BUFFERS


def _network(edges: Iterable[Channels], tasks: Mapping[str, int]) -> int:
    """Bytes of one task of every operator, the most that a slot holds."""
    counts = ((tasks[e.upstream], tasks[e.downstream], e.pointwise) for e in edges)
    return sum(buffers(a, b, pointwise) + buffers(b, a, pointwise) for a, b, pointwise in counts) * _SEGMENT


def _with_room(size: int, settings: FlinkSettings) -> int:
    return int(size * (1 + settings.memory_overhead))


def _fewer(before: Mapping[str, int], after: Mapping[str, int], slots_used: int, slots: int) -> float:
    """TaskManagers before over those after, at least 1. If the widest operator fills all slots, tasks share them."""
    shared = max(before.values()) == slots_used
    slots_after = max(after.values()) if shared else sum(after.values())
    return max(1.0, math.ceil(slots_used / slots) / math.ceil(slots_after / slots))


def _share_of(size: int, fraction: float, smallest: int, largest: int) -> int:
    return min(max(_times(size, fraction), smallest), largest)


def _times(size: int, fraction: float) -> int:
    return int(size * Decimal(repr(float(np.float32(fraction)))))


def _fraction(part: int, whole: int) -> float:
    """Rounded up to thousandths."""
    return float(Decimal(repr(part / whole)).quantize(Decimal("0.001"), ROUND_CEILING))
