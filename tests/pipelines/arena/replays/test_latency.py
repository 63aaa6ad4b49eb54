"""Time in the input queue, on curves that can be drawn by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.arena.replays.latency import waiting, waiting_s


def _waiting(arrived, read, skipped=0):
    return waiting(np.array(arrived, dtype=float), np.array(read, dtype=float), 10.0, skipped)


def _quantiles(arrived, read, *shares):
    waited = _waiting(arrived, read)
    return None if waited is None else waited.quantiles(shares)


def test_what_is_read_at_once_does_not_wait():
    assert _quantiles([10, 20, 5], [10, 20, 5], 0.5, 1.0) == pytest.approx([0, 0], abs=1e-9)


def test_without_records_there_is_no_latency():
    assert _quantiles([0, 0], [0, 0], 0.5) is None


def test_a_queue_that_is_read_one_interval_later():
    # 100 records come in evenly in the first 10 s and are read evenly in the next 10 s: each waits 10 s.
    assert _quantiles([100, 0], [0, 100], 0.05, 0.5, 0.95) == pytest.approx([10, 10, 10])


def test_a_queue_that_is_read_twice_as_fast_as_it_came():
    # Record n of 200 comes at n / 10 s and is read at 20 + n / 20 s: it waits 20 - n / 20 s, from 20 down to 10 s.
    assert _quantiles([100, 100, 0], [0, 0, 200], 0.0, 0.5, 0.95) == pytest.approx([10, 15, 19.5], abs=1e-6)


def test_half_at_once_and_half_late():
    # 50 records at 0-10 s are read at once. 50 at 10-20 s are read at 30-40 s: 20 s late.
    arrived, read = [50, 50, 0, 0], [50, 0, 0, 50]
    assert _quantiles(arrived, read, 0.5, 0.51, 0.95) == pytest.approx([0, 20, 20], abs=1e-6)


def test_records_after_a_silence_do_not_wait_for_it():
    # Nothing comes between 10 and 30 s; the curves are level there.
    assert _quantiles([100, 0, 0, 100], [100, 0, 0, 100], 0.95) == pytest.approx([0], abs=1e-9)
    assert _quantiles([100, 0, 0, 100, 0], [100, 0, 0, 0, 100], 0.95) == pytest.approx([10])


def test_what_is_never_read_counts_with_its_time_until_the_end():
    # 100 records come in evenly in the first 10 s of 30 and are never read: the last has waited 20 s, the first 30 s.
    assert _quantiles([100, 0, 0], [0, 0, 0], 0.0, 0.5, 1.0) == pytest.approx([20, 25, 30])


def test_shares_within_a_limit():
    # From 20 s down to 10 s, evenly: half of the records wait at most 15 s.
    waited = _waiting([100, 100, 0], [0, 0, 200])
    assert [waited.share_within(s) for s in (9.9, 10, 12, 15, 20, 60)] == pytest.approx(
        [0, 0, 0.2, 0.5, 1, 1], abs=1e-6
    )
    # Half at once, half 20 s late.
    waited = _waiting([50, 50, 0, 0], [50, 0, 0, 50])
    assert [waited.share_within(s) for s in (0, 19, 20)] == pytest.approx([0.5, 0.5, 1], abs=1e-6)


def test_only_records_that_arrived_after_the_skipped_intervals_count():
    # 100 records that wait 30 s, then 100 that wait 20 s, then 300 that are read at once.
    arrived, read = [100, 100, 0, 0, 300], [0, 0, 0, 200, 300]
    assert _waiting(arrived, read).share_within(1) == pytest.approx(0.6)
    later = _waiting(arrived, read, skipped=1)
    assert later.share_within(1) == pytest.approx(0.75)
    assert later.share_within(60) == 1
    assert _waiting(arrived, read, skipped=2).quantiles([0.99]) == pytest.approx([0], abs=1e-9)
    assert _waiting([5, 0], [5, 0], skipped=1) is None


def test_the_next_record_has_waited_since_it_came():
    # 100 come in the first 10 s; none is read until 20 s, then 50: the next one came at 5 s, 25 s before.
    arrived, read = np.array([100.0, 0, 0, 0]), np.array([0.0, 0, 50, 50])
    assert list(waiting_s(arrived, read, 10.0)) == pytest.approx([10, 20, 25, 0])


@given(
    arrived=st.lists(st.integers(0, 1000), min_size=1, max_size=20),
    shares=st.lists(st.floats(0, 1), min_size=20, max_size=20),
)
def test_latency_is_no_longer_than_the_run_and_its_mean_is_littles(arrived, shares):
    """By Little's law the area between the curves is records times mean latency."""
    came, read, unread = np.array(arrived, dtype=float), [], 0.0
    for records, share in zip(arrived, shares, strict=False):
        read.append((unread + records) * share)
        unread += records - read[-1]
    gone = np.array(read)
    waited = waiting(came, gone, 5.0)
    if waited is None:
        assert sum(arrived) == 0
        return
    many = waited.quantiles([(i + 0.5) / 2000 for i in range(2000)])
    assert 0 <= many[0] <= many[-1] <= 5 * len(arrived) + 1e-9
    within = [waited.share_within(s) for s in (0, 1, 10, 60, 5 * len(arrived))]
    assert within == sorted(within) and within[-1] == 1
    assert waited.share_within(many[1000]) >= 0.5
    lag = np.concatenate([[0], np.cumsum(came) - np.cumsum(gone)])
    area = float(np.sum((lag[1:] + lag[:-1]) / 2 * 5.0))
    assert np.mean(many) * sum(arrived) == pytest.approx(area, rel=0.02, abs=0.01 * sum(arrived))
