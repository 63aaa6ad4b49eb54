"""What one parallelism says of another: bounds that hold for any keys, and are reached by some."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.errors import InvalidInput
from models.keys.bounds import fullest_share
from models.keys.groups import task_counts


@given(st.lists(st.integers(0, 1000), min_size=128, max_size=128), st.integers(1, 40), st.integers(1, 40))
def test_the_true_share_lies_within_the_bounds(records: list[int], seen: int, asked: int) -> None:
    counts = np.array(records) ** 3
    counts[0] += 1
    found = fullest_share([task_counts(counts, seen).tolist()], asked)
    true = task_counts(counts, asked).max() / counts.sum()
    assert found.low - 1e-9 <= true <= found.high + 1e-9


def test_the_same_parallelism_is_known_exactly() -> None:
    found = fullest_share([[30, 50, 20]], 3)
    assert (found.low, found.value, found.high) == pytest.approx((0.5, 0.5, 0.5))


def test_twice_the_tasks_halve_a_task_at_best_and_leave_it_whole_at_worst() -> None:
    found = fullest_share([[0.6, 0.4]], 4)
    assert (found.low, found.value, found.high) == pytest.approx((0.3, 0.3, 0.6))


def test_half_of_the_tasks_are_known_exactly() -> None:
    assert fullest_share([[0.4, 0.3, 0.2, 0.1]], 2).high == pytest.approx(0.7)
    assert fullest_share([[0.4, 0.3, 0.2, 0.1]], 2).low == pytest.approx(0.7)


def test_more_that_was_seen_narrows_the_bounds() -> None:
    one, other = [0.6, 0.4], [0.5, 0.2, 0.3]
    both = fullest_share([one, other], 6)
    for alone in (fullest_share([one], 6), fullest_share([other], 6)):
        assert alone.low <= both.low and both.high <= alone.high


def test_runs_with_as_many_tasks_show_how_shares_vary() -> None:
    found = fullest_share([[0.6, 0.4], [0.3, 0.7], [0.5, 0.5]], 2)
    assert (found.low, found.high) == pytest.approx((0.5, 0.7))


def test_runs_that_contradict_each_other_widen_the_bounds() -> None:
    """With 2 tasks half went to each; with 4 one got 70 %, which then one of 2 must have had."""
    found = fullest_share([[0.5, 0.5], [0.7, 0.1, 0.1, 0.1]], 2)
    assert (found.low, found.high) == pytest.approx((0.5, 0.8))


def test_without_anything_seen_any_share_is_possible() -> None:
    found = fullest_share([], 4)
    assert (found.low, found.high) == (0.25, 1.0)


def test_a_run_with_other_key_groups_says_nothing_unless_the_job_states_them() -> None:
    """Flink gives 2 tasks 128 key groups and 200 tasks 512."""
    assert fullest_share([[0.6, 0.4]], 200).high == 1.0
    assert fullest_share([[0.6, 0.4]], 200, total=512).high == 0.6


def test_shares_that_are_none_are_refused() -> None:
    with pytest.raises(InvalidInput, match="sum above 0"):
        fullest_share([[0.0, 0.0]], 2)
    with pytest.raises(InvalidInput, match="between 1 and the 128 key groups"):
        fullest_share([[1.0]], 129, total=128)
