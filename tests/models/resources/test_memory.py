"""Flink's memory model with the defaults of its `taskmanager.memory.*` options."""

import pytest

from models.errors import Infeasible
from models.resources.memory import managed_memory_per_slot_mb, measured_memory_mb, memory_for_slots_mb


def test_a_4_gib_taskmanager() -> None:
    # 4096 - 256 metaspace - 409.6 overhead = 3430.4 Flink memory, 0.4 of it managed, for 4 slots.
    assert managed_memory_per_slot_mb(4096, 4) == pytest.approx(0.4 * 3430.4 / 4)


def test_the_overhead_is_bounded() -> None:
    assert managed_memory_per_slot_mb(1024, 1) == pytest.approx(0.4 * (1024 - 256 - 192))
    assert managed_memory_per_slot_mb(65536, 16) == pytest.approx(0.4 * (65536 - 256 - 1024) / 16)


def test_memory_that_the_jvm_alone_takes_is_refused() -> None:
    with pytest.raises(Infeasible, match="more than 448 MiB"):
        managed_memory_per_slot_mb(448, 1)


@pytest.mark.parametrize(("memory_mb", "slots"), [(1024.0, 1), (2048.0, 4), (4096.0, 4), (32768.0, 8), (65536.0, 16)])
@pytest.mark.parametrize("wanted", [1, 2, 3, 5, 8, 16, 32])
def test_a_slot_keeps_its_memory_in_a_task_manager_of_more_or_fewer(memory_mb: float, slots: int, wanted: int) -> None:
    whole = memory_for_slots_mb(memory_mb, slots, wanted)
    assert managed_memory_per_slot_mb(whole, wanted) >= managed_memory_per_slot_mb(memory_mb, slots) - 1e-6
    assert whole >= memory_mb * wanted / slots
    if wanted < slots:  # and no more than that takes
        assert managed_memory_per_slot_mb(whole - 1, wanted) < managed_memory_per_slot_mb(memory_mb, slots)


@pytest.mark.parametrize(("memory_mb", "slots"), [(1024.0, 1), (4096.0, 4), (65536.0, 16)])
@pytest.mark.parametrize("other", [1, 2, 4, 8, 16, 32])
def test_the_memory_that_was_measured_is_found_again(memory_mb: float, slots: int, other: int) -> None:
    """But for what rounding to whole MiB adds, once for each of the other TaskManagers that its slots take."""
    found = measured_memory_mb(memory_for_slots_mb(memory_mb, slots, other), other, slots)
    assert memory_mb - 1e-6 <= found <= memory_mb + 1.12 * slots / other


def test_memory_of_a_worker_of_fewer_slots_as_it_would_have_been_measured() -> None:
    # Flink memory 17,344 - 256 - 1,024 = 16,064 for 4 slots; 64,256 + 256 + 1,024 for 16.
    assert measured_memory_mb(17344, 4, 16) == 65536
    # The same worker with only 16,384 MiB: 4 x (16,384 - 1,280) + 1,280.
    assert measured_memory_mb(16384, 4, 16) == 61696
