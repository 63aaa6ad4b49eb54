"""What a deployment refuses, where tasks go, what they get of the memory, and how keys are shared out."""

import numpy as np
import pytest

from models.errors import Infeasible, InvalidInput, SluiceError
from models.job import Keys
from testbeds.placing import place
from testbeds.protocol import Configuration
from testbeds.simulator import Flink, Simulator, streambed_cluster
from testbeds.simulator.layout.buffers import pool, room_of_edge, room_per_task
from testbeds.simulator.layout.keys import shares
from testbeds.simulator.layout.memory import cache_mb, network_memory_mb


@pytest.fixture
def small(chain):
    return chain(
        {"name": "map", "cpu_s": 1e-5, "max_parallelism": 40}, {"name": "count", "cpu_s": 1e-5, "into": "hash"}
    )


def deploy(job, parallelism=None, memory_mb=65536, testbed=None, **more):
    tasks = {o.name: 1 for o in job.operators} | (parallelism or {})
    return (testbed or Simulator()).deploy(job, Configuration(tasks, memory_mb, **more), run="r", seed=1)


def test_a_missing_or_unknown_operator(small):
    with pytest.raises(InvalidInput, match="'count' is missing"):
        Simulator().deploy(small, Configuration({"source": 1, "map": 1, "sink": 1}, 65536), run="r", seed=1)
    with pytest.raises(InvalidInput, match="'cuont' is unknown"):
        deploy(small, {"cuont": 1})


@pytest.mark.parametrize(("tasks", "message"), [({"map": 0}, "at least 1 task"), ({"map": 41}, "at most 40 tasks")])
def test_impossible_task_counts(small, tasks, message):
    with pytest.raises(InvalidInput, match=message):
        deploy(small, tasks)


def test_more_tasks_than_slots(small):
    with pytest.raises(Infeasible, match="49 tasks need as many slots, but the testbed 'streambed' has 48"):
        deploy(small, {"count": 47})


def test_more_tasks_than_key_groups(small):
    with pytest.raises(InvalidInput, match="17 tasks and 16 key groups"):
        deploy(small.model_copy(update={"key_groups": 16}), {"count": 17})


def test_memory_that_does_not_fit(small):
    with pytest.raises(Infeasible, match="task heap must be above 0"):
        deploy(small, memory_mb=700)
    with pytest.raises(Infeasible, match="has 65536 MiB"):
        deploy(small, memory_mb=131072)
    with pytest.raises(Infeasible, match="60000 MiB of managed memory left for another task"):
        deploy(small, managed_memory_mb={"count": 60000.0})
    with pytest.raises(InvalidInput, match="managed memory is given to 'cuont'"):
        deploy(small, managed_memory_mb={"cuont": 6.0})


@pytest.mark.parametrize(
    ("placement", "error", "message"),
    [
        ({"tm-9": {"map": 1, "count": 1, "sink": 1}}, InvalidInput, "names the worker 'tm-9'"),
        ({"tm-1": {"map": 1, "count": 1}}, InvalidInput, "all 1 tasks of 'sink' once, but it holds 0"),
        ({"tm-1": {"map": 17, "count": 1, "sink": 1}}, Infeasible, "has 16 slots"),
        ({"tm-1": {"map": 1, "count": 1, "sink": 1, "x": 1}}, InvalidInput, "names the operator 'x'"),
    ],
)
def test_placements_that_cannot_be(small, placement, error, message):
    with pytest.raises(error, match=message):
        deploy(small, placement=placement)


def test_tasks_spread_evenly_and_sources_stay_apart(small):
    tasks = {"source": 20, "map": 4, "count": 7, "sink": 1}
    placed = place(small, Configuration(tasks, 65536), streambed_cluster(), [25600.0] * 3)
    assert [w.name for w in placed.workers] == ["tm-1", "tm-2", "tm-3", "injector-1", "injector-2"]
    assert set(placed.task_workers["source"]) == {3, 4}
    per_worker = {name: np.bincount(workers, minlength=3) for name, workers in placed.task_workers.items()}
    assert all(per_worker[name].max() - per_worker[name].min() <= 1 for name in ("map", "count", "sink"))
    assert max(sum(per_worker[n] for n in ("map", "count", "sink"))) == 4


def test_a_placed_source_runs_where_it_was_put(small):
    placement = {"tm-2": {"source": 1, "map": 1, "count": 1, "sink": 1}}
    samples = deploy(small, placement=placement).inject(100, 5, "observe").samples
    assert set(samples["worker"].to_pylist()) == {"tm-2"}


def test_injections_that_cannot_be(small):
    run = deploy(small)
    for rate, seconds in ((0, 5), (float("nan"), 5), (10, 7), (10, 0)):
        with pytest.raises(InvalidInput):
            run.inject(rate, seconds, "observe")
    run.close()
    run.close()
    with pytest.raises(SluiceError, match="closed run"):
        run.inject(10, 5, "observe")


def test_deployment_takes_time_and_samples_follow(small):
    run = deploy(small)
    assert run.elapsed_s == 30
    times = run.inject(100, 10, "warmup").samples["time_s"].unique().to_pylist()
    times += run.inject(100, 5, "observe").samples["time_s"].unique().to_pylist()
    assert times == [35, 40, 45] and run.elapsed_s == 45


def test_what_was_not_emitted_at_one_rate_is_not_owed_at_the_next(small):
    run = deploy(small)
    over = run.inject(1e6, 30, "ramp")
    assert over.pending_records == pytest.approx(30e6 - 30 * over.achieved_rate)
    assert run.inject(1000, 30, "cooldown").pending_records == 0


@pytest.mark.parametrize(("managed", "cache"), [(128, 96), (158, 126), (256, 192), (512, 448), (2048, 1984), (0, 0)])
def test_cache_is_what_the_write_buffer_leaves(managed, cache):
    """Justin section 3 (128, 256, 512)."""
    assert cache_mb(managed, Flink()) == cache


def test_network_memory_is_bounded():
    assert network_memory_mb(65536, Flink()) == 1024
    assert network_memory_mb(4096, Flink()) == pytest.approx(0.1 * (4096 - 256 - 409.6))


def test_network_buffers():
    """Three senders to 35 receivers: 10 buffers of each sender's 78, and 2 x 3 + 8 of the receiver's own."""
    ones, flink = np.ones, Flink()
    assert pool(35, flink) == 78
    assert room_per_task(ones(3), ones(35), 35, 32768, flink) == pytest.approx([3 * 10 + 14] * 35)
    assert room_of_edge(ones(3), ones(35), 32768, flink) == 3 * 78 + 35 * 14


def test_shares_of_keys():
    replaced = shares(Keys(distinct=10, lifetime_records=100), 35, 128, seed=1)
    assert replaced.max() == 4 / 128
    few = shares(Keys(distinct=10), 35, 128, seed=1)
    assert (few == 0).sum() >= 25 and few.sum() == pytest.approx(1)
    assert np.array_equal(few, shares(Keys(distinct=10), 35, 128, seed=1))
    many = shares(Keys(distinct=500_000), 4, 128, seed=1)
    assert np.allclose(many, 0.25, rtol=0.02)
