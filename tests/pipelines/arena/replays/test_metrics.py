"""Metrics as Flink reports them: means over the last minute, late, and noisy."""

from itertools import pairwise

import numpy as np
import pytest

from models.metrics import Activity
from pipelines.arena.replays.metrics import FlinkMetrics, MetricNoise

EXACT = MetricNoise(records=0.0, time=0.0)


def _activity(records: float, busy_s: float = 2.0, lag: float = 0.0, tasks: int = 1, seconds: float = 5.0) -> Activity:
    """Of an interval of `seconds` in which each task read so many records."""
    values = dict.fromkeys(("cache_hits", "cache_misses", "state_time_s", "input_queue_share", "state_bytes"), 0.0)
    values |= {"records_in": records, "records_out": records, "busy_s": busy_s, "backpressured_s": 0.0}
    values |= {"idle_s": seconds - busy_s, "cpu_s": busy_s, "lag_records": lag}
    arrays = {name: np.full(tasks, value) for name, value in values.items()}
    return Activity(seconds=seconds, keeps_state=False, **arrays)


def _fetches(metrics: FlinkMetrics, records: list[float]):
    """Index of the refresh of each fetch, and its values."""
    found = [metrics.refresh({"map": _activity(n, lag=n)}, n / 5) for n in records]
    return [(i, fetched) for i, fetched in enumerate(found) if fetched is not None]


@pytest.mark.parametrize("seed", range(8))
def test_values_are_fetched_every_ten_seconds_and_are_means_over_the_last_minute(seed):
    records = [float(n) for n in np.random.default_rng(seed).integers(0, 1000, 60)]
    fetches = _fetches(FlinkMetrics(seed, EXACT), records)
    assert {second - first for (first, _), (second, _) in pairwise(fetches)} == {2}
    for i, fetched in fetches:
        done = fetched.activity["map"]
        # Refreshed at the fetch, or one refresh before it.
        windows = [records[max(end - 12, 0) : end] for end in (i, i + 1)]
        (window,) = [w for w in windows if sum(w) == pytest.approx(done.records_in[0]) and len(w) * 5 == done.seconds]
        assert fetched.arrival_rate == pytest.approx(sum(window) / done.seconds)
        assert done.lag_records[0] == window[-1]
        assert done.busy_s[0] + done.idle_s[0] == pytest.approx(done.seconds)


def test_values_are_up_to_ten_seconds_old():
    """Of a rate that rises at a known time, over many starts: the age is that of the refresh and of the fetch."""
    ages = set()
    for seed in range(40):
        metrics = FlinkMetrics(seed, EXACT)
        for i in range(40):
            metrics.refresh({"map": _activity(1.0, lag=5.0 * (i + 1))}, 0.2)
            if i >= 20 and metrics.latest is not None:
                ages.add(5.0 * (i + 1) - float(metrics.latest.activity["map"].lag_records[0]))
    assert ages == {0, 5, 10}


def test_a_restart_begins_new_meters():
    metrics = FlinkMetrics(1, EXACT)
    _fetches(metrics, [1000.0] * 20)
    metrics.restart()
    assert metrics.latest is None
    fetches = _fetches(metrics, [10.0] * 6)
    assert fetches[0][1].activity["map"].records_in[0] == 10 * fetches[0][1].activity["map"].seconds / 5
    assert fetches[0][1].activity["map"].seconds <= 10


def test_nothing_is_refreshed_while_the_job_is_down():
    metrics = FlinkMetrics(1, EXACT)
    assert [metrics.refresh({}, 5.0) for _ in range(10)] == [None] * 10
    assert metrics.latest is None


def test_noise_has_the_documented_sizes_and_no_bias_and_repeats_with_its_seed():
    metrics = FlinkMetrics(3)
    fetched = [f for _ in range(800) if (f := metrics.refresh({"map": _activity(1000.0, tasks=4)}, 200.0))][10:]
    records = np.log(np.concatenate([f.activity["map"].records_in for f in fetched]) / 12_000)
    busy = np.log(np.concatenate([f.activity["map"].busy_s for f in fetched]) / 24)
    # 4 tasks in 390 fetches: the standard error of a deviation is 1.8 % of it, of a mean a 39th of it.
    assert np.std(records) == pytest.approx(0.01, rel=0.1) and abs(np.mean(records)) < 4 * 0.01 / 39
    assert np.std(busy) == pytest.approx(0.03, rel=0.1) and abs(np.mean(busy)) < 4 * 0.03 / 39
    again = FlinkMetrics(3)
    repeated = [f for _ in range(800) if (f := again.refresh({"map": _activity(1000.0, tasks=4)}, 200.0))][10:]
    assert all(
        np.array_equal(a.activity["map"].busy_s, b.activity["map"].busy_s)
        for a, b in zip(fetched, repeated, strict=True)
    )


def test_a_task_is_busy_for_no_longer_than_the_window():
    metrics = FlinkMetrics(5, MetricNoise(records=0.0, time=0.3))
    for _ in range(100):
        fetched = metrics.refresh({"map": _activity(10.0, busy_s=5.0, tasks=3)}, 2.0)
        if fetched is not None:
            done = fetched.activity["map"]
            assert np.all(done.busy_s <= done.seconds) and np.all(done.idle_s >= 0)
