"""Alignment against the search that it abbreviates."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from models.scaling.flink.alignment import Mode, align
from models.scaling.flink.settings import AdjustMode, AlignmentMode, FormerAlignment

MODES = [*AlignmentMode, *AdjustMode]


def searched(mode: Mode, current: int, target: int, shares: int, lower: int, upper: int) -> int:
    """Step by step: upwards from the target, and with the older modes then downwards."""
    if mode is AlignmentMode.OFF:
        return target
    less_is_enough = mode in (AlignmentMode.BALANCED, AdjustMode.MAXIMIZE_UTILISATION)
    end = min(shares, upper) if target > current else min(current, shares, upper)
    for p in range(target, end + 1):
        if shares % p == 0 or (less_is_enough and shares // p < shares // target):
            return p
    if isinstance(mode, AlignmentMode):
        return target
    p = target
    while p > 0 and shares // p <= shares // target:
        p -= 1
    if p > 0 and shares % p:
        p += 1
    p = max(p, lower)
    keeps_direction = p > current if target > current else p < current
    return p if keeps_direction else current


@given(
    mode=st.sampled_from(MODES),
    current=st.integers(1, 300),
    target=st.integers(1, 300),
    shares=st.one_of(st.integers(1, 300), st.sampled_from([127, 128, 720])),
    lower=st.integers(1, 10),
    room=st.integers(0, 200),
)
def test_it_finds_what_a_search_finds(mode, current, target, shares, lower, room):
    assume(target != current and lower <= min(current, target))
    bounds = (lower, max(current, target) + room)
    assert align(mode, current, target, shares, *bounds) == searched(mode, current, target, shares, *bounds)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (AlignmentMode.OFF, 24),
        (AlignmentMode.BALANCED, 26),  # 128 / 26 = 4 key groups a task, instead of 5
        (AlignmentMode.EVENLY_SPREAD, 32),
        (AdjustMode.MAXIMIZE_UTILISATION, 26),
        (AdjustMode.EVENLY_SPREAD, 32),
    ],
)
def test_24_of_128_key_groups(mode, expected):
    assert align(mode, 16, 24, 128, 1, 1000) == expected


def test_older_modes_keep_the_tasks_if_the_scaling_would_reverse():
    # 25 of at most 30 tasks on 35 partitions: the nearest below is 18, less than what runs.
    assert align(AdjustMode.EVENLY_SPREAD, 22, 25, 35, 1, 30) == 22
    assert align(AlignmentMode.EVENLY_SPREAD, 22, 25, 35, 1, 30) == 25


@pytest.mark.parametrize(
    ("current", "target", "tasks"),
    [(24, 9, 12), (3, 9, 12), (24, 13, 13), (12, 23, 23), (24, 5, 6), (6, 5, 6), (20, 12, 12)],
)
def test_release_1_6_aligns_to_divisors_up_to_half_of_the_key_groups(current, target, tasks):
    """Divisors of 24 up to 12 are 1, 2, 3, 4, 6, 8 and 12; beyond 12 it keeps the target."""
    assert align(FormerAlignment.UP_TO_HALF, current, target, 24, 1, 24) == tasks


def test_release_1_6_keeps_the_target_where_the_limit_is_below_the_next_divisor():
    assert align(FormerAlignment.UP_TO_HALF, 3, 9, 24, 1, 11) == 9
