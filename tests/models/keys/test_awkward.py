"""Numbers of key groups, by hand."""

import pytest

from models.keys.awkward import awkward_key_groups, divisors, is_awkward, replacements, widest_step


def test_divisors() -> None:
    assert divisors(1) == [1]
    assert divisors(12) == [1, 2, 3, 4, 6, 12]
    assert divisors(49) == [1, 7, 49]
    assert divisors(127) == [1, 127]


@pytest.mark.parametrize(
    ("groups", "step"),
    # Of 98 = 2 x 7 x 7 the divisors are 1, 2, 7, 14, 49, 98.
    [(1, (1, 1)), (128, (1, 2)), (127, (1, 127)), (98, (2, 7)), (121, (1, 11))],
)
def test_the_widest_step(groups: int, step: tuple[int, int]) -> None:
    assert widest_step(groups) == step


@pytest.mark.parametrize("groups", [1, 2, 12, 100, 120, 128, 1000, 32768])
def test_what_doubles_is_not_awkward(groups: int) -> None:
    assert not is_awkward(groups)
    assert awkward_key_groups("key_groups", groups) is None


@pytest.mark.parametrize(
    ("groups", "instead"),
    [
        (127, (120, 128)),  # 120 has 16 divisors, the most of 114 .. 126
        (98, (96, 128)),  # 12 divisors; 90 has as many, and is lower
        (10, (16,)),  # 9 = 3 x 3 is awkward itself
        (32749, (30240, 32768)),  # 96 divisors, and the most key groups that Flink has
    ],
)
def test_what_to_set_instead(groups: int, instead: tuple[int, ...]) -> None:
    assert replacements(groups) == instead
    assert not any(map(is_awkward, instead))


def test_the_warning_says_why_and_what_instead() -> None:
    assert awkward_key_groups("key_groups", None) is None
    assert awkward_key_groups("key_groups", 127) == (
        "key_groups: 127 is prime, so that only 1 or 127 tasks share them evenly; set 120 or 128 (Flink's own default is a "
        "power of two) before the job has state, which Flink restores with the same maximum parallelism only"
    )
    few = awkward_key_groups("key_groups", 98)
    assert few is not None
    assert "has few divisors: no number of tasks between 2 and 7 shares them evenly; set 96 or 128" in few
