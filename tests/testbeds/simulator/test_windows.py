"""When windows fire, what they emit, and what operators keyed by a window make of it."""

import numpy as np
import pyarrow.compute as pc
import pytest

from testbeds.protocol import Configuration
from testbeds.simulator import Physics, Simulator


def per_interval(samples, operator, column):
    rows = samples.filter(pc.field("operator") == operator).to_pandas()
    return rows.groupby("time_s")[column].sum().to_numpy()


def counting(window, **more):
    return {"name": "count", "cpu_s": 1e-6, "into": "hash", "window": window, **more}


@pytest.mark.parametrize(
    "window",
    [
        {"kind": "tumbling", "length_s": 10},
        {"kind": "sliding", "length_s": 10, "slide_s": 2, "fire_share": 0.5},
        {"kind": "session", "length_s": 10},
    ],
    ids=["tumbling", "sliding", "session"],
)
def test_in_the_long_run_the_output_is_selectivity_times_the_input(chain, inject, window):
    measured = inject(chain(counting(window, selectivity=0.4)), rate=20_000, seconds=600, settle_s=60).samples
    ratio = per_interval(measured, "count", "records_out").sum() / per_interval(measured, "count", "records_in").sum()
    assert ratio == pytest.approx(0.4, rel=0.01)


def test_a_tumbling_window_fires_in_bursts(chain, inject):
    measured = inject(
        chain(counting({"kind": "tumbling", "length_s": 10})), rate=1000, seconds=100, settle_s=10
    ).samples
    out = per_interval(measured, "count", "records_out")
    assert np.allclose(sorted(out)[:10], 0) and np.allclose(sorted(out)[10:], 10_000)


def test_a_sliding_window_grows_until_it_is_full(chain, inject):
    window = {"kind": "sliding", "length_s": 20, "slide_s": 5}
    measured = inject(chain(counting(window)), rate=1000, seconds=60, settle_s=0).samples
    out = per_interval(measured, "count", "records_out")
    assert np.allclose(out, [0, 1250, 2500, 3750, 5000, 5000, 5000, 5000, 5000, 5000, 5000, 5000])


def test_a_session_fires_after_its_gap(chain, inject):
    measured = inject(chain(counting({"kind": "session", "length_s": 10})), rate=1000, seconds=40, settle_s=0).samples
    out = per_interval(measured, "count", "records_out")
    assert np.all(out[:2] == 0) and np.allclose(out[3:], 5000)


def test_firing_costs_its_share(chain, inject):
    window = {"kind": "tumbling", "length_s": 5, "fire_share": 0.5}
    measured = inject(chain(counting(window, cpu_s=1e-5)), rate=40_000, seconds=100, settle_s=20).samples
    assert per_interval(measured, "count", "busy_s").sum() / 100 == pytest.approx(0.4, rel=0.01)
    assert per_interval(measured, "count", "cpu_s").sum() / 100 == pytest.approx(0.4, rel=0.01)


@pytest.mark.parametrize(("source_burst_s", "emitted"), [(1.0, 11 / 13), ("all", 1.0)])
def test_sources_that_a_window_holds_up_catch_up_as_much_as_they_may(chain, inject, source_burst_s, emitted):
    """Of x times the rate a window of 10 s is written for 3 x s, 1 s of which is caught up: 10 x = 10 - 3 x + 1."""
    window = {"kind": "tumbling", "length_s": 10, "fire_share": 0.5}
    job = chain(counting(window, cpu_s=1e-4), source={"bytes_out": 10_000.0})  # 10 ms of records in the buffers
    physics = Physics().ideal().model_copy(update={"source_burst_s": source_burst_s})
    measured = inject(job, rate=6000, seconds=100, settle_s=100, physics=physics)
    assert measured.achieved_rate == pytest.approx(emitted * 6000, rel=0.01)


def test_state_lives_as_long_as_its_window(chain, inject):
    """10 s x 10,000/s x 100 B = 10 MB live, for which twice as much cache is needed; there are 76 - 16 - 48 = 12 MiB."""
    state, window = {"bytes_per_record": 100}, {"kind": "sliding", "length_s": 10, "slide_s": 1}
    job = chain(counting(window, state=state, state_read_bytes=100))
    measured = inject(job, rate=10_000, seconds=60, settle_s=60, managed_memory_mb={"count": 76.0}).samples
    hits, misses = (per_interval(measured, "count", c).sum() for c in ("cache_hits", "cache_misses"))
    assert hits / (hits + misses) == pytest.approx(12 * 2**20 / 2 / 10e6, rel=0.1)


def test_state_warms_up(chain, inject):
    """Without expiry the working set outgrows the cache in time, and reads become slow."""
    job = chain(
        {"name": "keep", "cpu_s": 1e-6, "into": "hash", "state_read_bytes": 100, "state": {"bytes_per_record": 100}}
    )
    measured = inject(job, rate=5000, seconds=120, settle_s=0, managed_memory_mb={"keep": 76.0}).samples
    rows = measured.filter(pc.field("operator") == "keep").to_pandas()
    assert rows.state_latency_s.iloc[0] == pytest.approx(2e-6)
    assert rows.state_latency_s.iloc[-1] > 8e-5
    assert (rows.state_latency_s.diff().dropna() >= -1e-12).all()


def keyed_by_window(chain):
    window = {"kind": "tumbling", "length_s": 2}
    keys = {"distinct": 1, "hot_share": 1.0, "hot_period_s": 2.0}
    return chain(
        {"name": "count", "cpu_s": 1e-7, "into": "hash", "window": window},
        {"name": "top", "cpu_s": 1e-5, "into": "hash", "keys": keys},
    )


def test_an_operator_keyed_by_the_window_works_with_one_task_at_a_time(chain, inject):
    """Eight tasks of 100,000/s, but each window goes to one: what scales is only what overlaps in buffers."""
    job = keyed_by_window(chain)
    one = inject(job, rate=45_000, seconds=100)
    eight = inject(job, rate=800_000, seconds=100, parallelism={"top": 8})
    assert one.achieved_rate == pytest.approx(45_000, rel=0.01)
    assert eight.achieved_rate < 200_000
    rows = eight.samples.filter(pc.field("operator") == "top").to_pandas()
    assert rows.groupby("time_s").busy_s.sum().mean() < 2 * 5


def test_hot_keys_make_scaling_sublinear(chain):
    """Hot keys that change slowly beside the buffers hold one task at a time; without them tasks scale."""
    hot = {"distinct": 100, "lifetime_records": 50_000, "hot_share": 0.5, "hot_period_records": 50_000}
    even = {"distinct": 100, "lifetime_records": 50_000}
    physics = Physics().ideal()

    def capacity(keys, tasks):
        job = chain(
            {"name": "count", "cpu_s": 1e-4, "bytes_out": 10, "into": "hash", "keys": keys}, source={"bytes_out": 1000}
        )
        parallelism = {"source": 1, "count": tasks, "sink": 1}
        with Simulator(physics=physics).deploy(job, Configuration(parallelism, 65536), run="r", seed=1) as run:
            run.inject(1e7, 60, "warmup")
            return run.inject(1e7, 300, "observe").achieved_rate

    assert capacity(even, 16) == pytest.approx(160_000, rel=0.01)
    assert capacity(hot, 1) == pytest.approx(10_000, rel=0.01)
    assert capacity(hot, 2) < 18_000
    assert 15_000 < capacity(hot, 16) < 40_000
