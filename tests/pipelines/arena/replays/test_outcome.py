"""Metrics of section 5.1 that are counted, by hand."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.arena.replays.cell import RescaleRecord
from pipelines.arena.replays.outcome import convergences, outcome
from pipelines.arena.replays.replay import Trace
from pipelines.arena.replays.workloads import Pattern, Workload, pattern


def _rescale(time_s: float) -> RescaleRecord:
    return RescaleRecord(
        time_s=time_s, downtime_s=30, state_mb=0, tasks=1, parallelism={"a": 1}, memory_mb={}, reason="because"
    )


def test_convergence_is_the_time_until_the_tasks_stay():
    # Lasting changes at 600, 3000 and 5400 s, the end at 8400 s.
    steps = pattern(Pattern.STEPS, 1000)
    done = [_rescale(s) for s in (300, 660, 900, 3120, 4700, 4790)]
    first, second, third = convergences(done, steps)
    assert (first.change_s, first.rate, first.seconds, first.steps) == (600, 500, 330, 2)
    # The last rescale of the second round ends at 4820 s, less than 10 minutes before the next change.
    assert (second.change_s, second.rate, second.seconds, second.steps) == (3000, 1000, None, 3)
    assert (third.change_s, third.rate, third.seconds, third.steps) == (5400, 500, 0, 0)


def test_without_lasting_changes_there_is_nothing_to_converge_to():
    assert convergences([_rescale(60)], pattern(Pattern.COSINE, 1000)) == ()


RATES = st.lists(st.integers(0, 1000), min_size=2, max_size=30)
SHARES = st.integers(0, 100).map(lambda percent: percent / 100)


@given(rates=RATES, shares=st.lists(SHARES, min_size=30, max_size=30), data=st.data())
def test_shares_are_ordered_and_task_hours_add_up_over_deployments(rates, shares, data):
    intervals = len(rates)
    skipped = data.draw(st.integers(0, intervals - 1))
    begins = sorted(data.draw(st.sets(st.integers(1, intervals - 1), max_size=4)) | {0})
    tasks = data.draw(st.lists(st.integers(1, 50), min_size=len(begins), max_size=len(begins)))
    read, lag = _read(rates, shares)
    trace = Trace(
        rate=np.array(rates) / 5.0,
        read=read,
        lag=lag,
        running_s=np.full(intervals, 5.0),
        capacity=np.full(intervals, np.nan),
        deployed=tuple((first, {"a": n}, 1024.0 * n) for first, n in zip(begins, tasks, strict=True)),
        rescales=(),
    )
    workload = Workload(name="w", step_s=5, rates=tuple(rates))
    found = outcome(trace, workload, 5.0 * skipped)
    if sum(rates[skipped:]) == 0:
        assert (found.within_1_s, found.within_10_s, found.within_60_s, found.latency_p95_s) == (None,) * 4
    else:
        assert 0 <= found.within_1_s <= found.within_10_s <= found.within_60_s <= 1
        assert (found.within_60_s >= 0.95) or found.latency_p95_s > 60 - 1e-6
    lasted = [max(end - max(first, skipped), 0) for first, end in pairwise([*begins, intervals])]
    by_hand = sum(n * intervals_of for n, intervals_of in zip(tasks, lasted, strict=True)) * 5 / 3600
    assert found.task_hours == pytest.approx(by_hand)
    assert found.memory_gib_hours == pytest.approx(by_hand)  # 1 GiB a task


def _read(rates, shares):
    """Records read in each interval, a share of those that wait, and the lag at its end."""
    read, lag, waits = [], [], 0.0
    for rate, share in zip(rates, shares, strict=False):
        read.append((waits + rate) * share)
        waits += rate - read[-1]
        lag.append(waits)
    return np.array(read), np.array(lag)


def test_what_happens_before_the_end_of_the_burn_in_does_not_count():
    # Down for the first 10 s of 20, with a rescale decided at 0 s and one, refused, at 10 s.
    early, late = _rescale(0), _rescale(10).model_copy(update={"refused": True, "downtime_s": 0})
    trace = Trace(
        rate=np.full(4, 10.0),
        read=np.array([0.0, 0, 150, 50]),
        lag=np.array([50.0, 100, 0, 0]),
        running_s=np.array([0.0, 0, 5, 5]),
        capacity=np.full(4, np.nan),
        deployed=((0, {"a": 1}, 1.0),),
        rescales=(early, late),
        held_back=(5.0, 15.0),
    )
    workload = Workload(name="w", step_s=5, rates=(10,) * 4)
    whole, scored = outcome(trace, workload), outcome(trace, workload, 10.0)
    assert (whole.rescales, whole.refusals, whole.held_back, whole.downtime_s, whole.most_lag) == (1, 1, 2, 10, 100)
    assert (scored.rescales, scored.refusals, scored.held_back, scored.downtime_s, scored.most_lag) == (0, 1, 1, 0, 0)
    assert (scored.input_rate, scored.task_hours) == pytest.approx((10, 10 / 3600))
