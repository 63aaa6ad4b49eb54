"""Flink's memory model with the defaults of its `taskmanager.memory.*` options."""

import pytest

from models.errors import Infeasible
from models.memory import managed_memory_per_slot_mb


def test_a_4_gib_taskmanager() -> None:
    # 4096 - 256 metaspace - 409.6 overhead = 3430.4 Flink memory, 0.4 of it managed, for 4 slots.
    assert managed_memory_per_slot_mb(4096, 4) == pytest.approx(0.4 * 3430.4 / 4)


def test_the_overhead_is_bounded() -> None:
    assert managed_memory_per_slot_mb(1024, 1) == pytest.approx(0.4 * (1024 - 256 - 192))
    assert managed_memory_per_slot_mb(65536, 16) == pytest.approx(0.4 * (65536 - 256 - 1024) / 16)


def test_memory_that_the_jvm_alone_takes_is_refused() -> None:
    with pytest.raises(Infeasible, match="more than 448 MiB"):
        managed_memory_per_slot_mb(448, 1)
