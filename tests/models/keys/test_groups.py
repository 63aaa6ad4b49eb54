"""Key groups and tasks, by the formulas of Flink's KeyGroupRangeAssignment."""

import numpy as np
import pytest

from models.errors import InvalidInput
from models.keys.groups import folded, group_of, key_groups, task_counts


@pytest.mark.parametrize(("tasks", "groups"), [(1, 128), (85, 128), (86, 256), (944, 2048), (30000, 32768)])
def test_key_groups_as_flink_chooses_them(tasks: int, groups: int) -> None:
    assert key_groups(tasks) == groups


@pytest.mark.parametrize("total", [1, 7, 128, 1000])
def test_each_key_group_goes_to_its_task(total: int) -> None:
    records = np.random.default_rng(total).integers(0, 100, total)
    for parallelism in range(1, min(total, 140) + 1):
        expected = [0] * parallelism
        for group, count in enumerate(records):
            expected[group * parallelism // total] += int(count)
        assert task_counts(records, parallelism).tolist() == expected


def test_groups_go_to_tasks_in_ranges_and_in_every_window() -> None:
    tasks = task_counts(np.ones((2, 128), np.int64), 35)
    assert tasks.shape == (2, 35) and set(tasks.ravel().tolist()) == {3, 4}


def test_fewer_groups_are_counted_from_more() -> None:
    hashes = np.random.default_rng(1).integers(0, 2**32, 10_000).astype(np.uint32)
    many = np.bincount(group_of(hashes, 32768), minlength=32768)
    for total in (128, 4096, 32768):
        assert np.array_equal(folded(many, total), np.bincount(group_of(hashes, total), minlength=total))
    with pytest.raises(InvalidInput, match="a multiple of 100"):
        folded(many, 100)


def test_the_hash_without_an_absolute_value_goes_to_the_first_group() -> None:
    """Java has no positive number for -2^31, which murmur makes of one hash code; 2^31 mod 1000 would be 648."""
    assert group_of(np.array([preimage(2**31)], np.uint32), 1000).tolist() == [0]


def test_tasks_without_a_key_group_are_refused() -> None:
    for parallelism in (0, 129):
        with pytest.raises(InvalidInput, match="between 1 and the 128 key groups"):
            task_counts(np.ones(128), parallelism)


def preimage(spread: int) -> int:
    """The word whose MurmurHash3 with seed 0 is `spread`: each step of it, backwards."""
    word = 2**32
    h = spread
    h ^= h >> 16
    h = h * pow(0xC2B2AE35, -1, word) % word
    h ^= (h >> 13) ^ (h >> 26)
    h = h * pow(0x85EBCA6B, -1, word) % word
    h ^= h >> 16
    h ^= 4
    h = (h - 0xE6546B64) * pow(5, -1, word) % word
    h = _rotated(h, 19)
    h = h * pow(0x1B873593, -1, word) % word
    h = _rotated(h, 17)
    return h * pow(0xCC9E2D51, -1, word) % word


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) % 2**32
