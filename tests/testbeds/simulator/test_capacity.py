"""Capacities that can be worked out by hand, with noise, cold start and shared clock frequency off."""

import pyarrow.compute as pc
import pytest

from testbeds.simulator import Physics


def total(window, operator, column):
    rows = window.samples.filter(pc.field("operator") == operator)
    return pc.sum(rows[column]).as_py()


def test_one_task_is_bound_by_its_thread(chain, inject):
    window = inject(chain({"name": "map", "cpu_s": 1e-5}))
    assert window.achieved_rate == pytest.approx(100_000, rel=0.005)


def test_below_capacity_all_is_emitted(chain, inject):
    window = inject(chain({"name": "map", "cpu_s": 1e-5}), rate=99_000)
    assert window.achieved_rate == pytest.approx(99_000, rel=1e-9)
    assert window.pending_records == pytest.approx(0, abs=1e-3)


def test_two_tasks_on_one_core_share_it(chain, inject, cluster):
    job = chain({"name": "map", "cpu_s": 1e-5})
    job = job.model_copy(update={"operators": tuple(_free_sink(o) for o in job.operators)})
    window = inject(job, cluster(workers=1, cores=1), parallelism={"map": 2})
    assert window.achieved_rate == pytest.approx(100_000, rel=0.01)


def test_two_tasks_on_two_workers_do_not(chain, inject, cluster):
    job = chain({"name": "map", "cpu_s": 1e-5})
    job = job.model_copy(update={"operators": tuple(_free_sink(o) for o in job.operators)})
    window = inject(job, cluster(workers=2, cores=1), parallelism={"map": 2})
    assert window.achieved_rate == pytest.approx(200_000, rel=0.01)


def _free_sink(operator):
    cost = operator.cost.model_copy(update={"cpu_s": 1e-12})
    return operator.model_copy(update={"cost": cost}) if operator.name == "sink" else operator


CALL = {"name": "call", "cpu_s": 2e-3, "external_wait_s": 8e-3}


def test_a_task_that_waits_outside_the_job_is_busy_and_uses_no_core(chain, inject, cluster):
    """2 ms of CPU time and 8 ms of waiting: 100 records/s a task, which uses 0.2 cores."""
    window = inject(chain(CALL), cluster(workers=1, slots=16, cores=16), parallelism={"call": 10})
    assert window.achieved_rate == pytest.approx(1000, rel=0.005)
    seconds = 60.0
    assert total(window, "call", "busy_s") == pytest.approx(10 * seconds, rel=0.005)
    assert total(window, "call", "cpu_s") == pytest.approx(2.0 * seconds, rel=0.005)
    rows = window.samples.filter(pc.field("operator") == "call")
    assert rows["state_latency_s"].null_count == len(rows)


def test_waiting_tasks_share_a_core_when_they_compute(chain, inject, cluster):
    """Ten tasks ask for 10 x 0.2 = 2 cores of one: 1 / 2 ms = 500 records/s, at which each is busy for 20 ms a record."""
    window = inject(chain(CALL), cluster(workers=1, slots=16, cores=1), parallelism={"call": 10})
    assert window.achieved_rate == pytest.approx(500, rel=0.005)
    assert total(window, "call", "busy_s") == pytest.approx(10 * 60, rel=0.005)
    window = inject(chain(CALL), cluster(workers=1, slots=16, cores=1), rate=250, parallelism={"call": 10})
    assert total(window, "call", "busy_s") == pytest.approx(2.5 * 60, rel=0.005)


def test_a_wait_outside_the_job_is_no_state_access(chain, inject, cluster):
    """A read from memory takes 2 us, however long the task waits outside the job."""
    state = {"state_read_bytes": 10, "keys": {"distinct": 1000}, "state": {"bytes_per_key": 10}, "into": "hash"}
    window = inject(chain({**CALL, **state}), cluster(workers=1, cores=8))
    assert window.achieved_rate == pytest.approx(100, rel=0.005)
    rows = window.samples.filter(pc.field("operator") == "call")
    assert pc.max(rows["state_latency_s"]).as_py() == pytest.approx(2e-6)


def test_threads_that_wait_do_not_slow_the_cores(chain, inject, cluster):
    """16 tasks are busy at 1,500 records/s, and use 3 cores: 2 of the 15 beside the first, which lose 0.1 x 2 / 15."""
    physics = Physics().ideal().model_copy(update={"full_load_slowdown": 0.1})
    window = inject(
        chain(CALL), cluster(workers=1, slots=20, cores=16), physics=physics, parallelism={"call": 16}, rate=1500
    )
    each = total(window, "call", "cpu_s") / total(window, "call", "records_in")
    assert each == pytest.approx(2e-3 / (1 - 0.1 * (3 - 1) / 15), rel=0.002)


def test_a_cheap_task_keeps_its_share_beside_an_expensive_one(chain, inject, cluster):
    """One core: c1 x + c2 x = 1 with c1 = 1e-5, c2 = 2e-5, so x = 33,333/s (the chain moves at one rate)."""
    job = chain({"name": "first", "cpu_s": 1e-5}, {"name": "second", "cpu_s": 2e-5})
    job = job.model_copy(update={"operators": tuple(_free_sink(o) for o in job.operators)})
    window = inject(job, cluster(workers=1, cores=1), settle_s=60)
    assert window.achieved_rate == pytest.approx(1e5 / 3, rel=0.02)


def test_a_worker_that_is_asked_for_a_little_too_much_gives_all_it_has(chain, inject, cluster):
    """At 10,000/s a source, a transform and two inferences want 0.15 + 0.85 + 2 x 0.55 = 2.1 of 2 cores: 95 % pass.

    No other worker is asked for more than 2.
    """
    loads = {"source": 0.15, "transform": 0.85, "compress": 0.3, "inference": 0.55, "sink": 0.05}
    tasks = {"source": 2, "transform": 4, "compress": 3, "inference": 3, "sink": 1}
    costs = {name: load * tasks[name] / 10_000 for name, load in loads.items()}
    middle = [
        {"name": name, "cpu_s": costs[name], "bytes_out": 1000.0} for name in ("transform", "compress", "inference")
    ]
    job = chain(*middle, source={"cpu_s": costs["source"]})
    placement = {
        "tm-1": {"source": 1, "transform": 1, "inference": 2},
        "tm-2": {"source": 1, "transform": 1, "sink": 1},
        "tm-3": {"transform": 2, "compress": 1},
        "tm-4": {"compress": 2, "inference": 1},
    }
    four = cluster(workers=4, slots=4, cores=2)
    window = inject(job, four, rate=10_000, settle_s=120, parallelism=tasks, placement=placement)
    assert window.achieved_rate == pytest.approx(10_000 * 2 / 2.1, rel=0.01)


def test_network_bound(chain, inject, cluster):
    """1000 B a record over 1e8 B/s are 100,000/s where map and sink are on two workers; on one, nothing is sent."""
    job = chain({"name": "map", "cpu_s": 1e-6, "bytes_out": 1000.0})
    two = cluster(workers=2, net=1e8)
    apart = inject(job, two, placement={"tm-1": {"map": 1}, "tm-2": {"sink": 1}})
    together = inject(job, two, placement={"tm-1": {"map": 1, "sink": 1}})
    assert apart.achieved_rate == pytest.approx(100_000, rel=0.01)
    assert total(apart, "map", "backpressured_s") / 60 == pytest.approx(0.9, abs=0.01)
    assert together.achieved_rate == pytest.approx(1e6, rel=0.01)


def test_hash_edges_send_only_the_other_workers_part(chain, inject, cluster):
    """Half of 1000 B a record stays on the worker: 200,000/s over 1e8 B/s."""
    job = chain({"name": "map", "cpu_s": 1e-6, "bytes_out": 1000.0}, {"name": "count", "cpu_s": 1e-7, "into": "hash"})
    placement = {"tm-1": {"map": 1, "count": 1}, "tm-2": {"count": 1, "sink": 1}}
    window = inject(job, cluster(workers=2, net=1e8), parallelism={"count": 2}, placement=placement)
    # count sends its own output of 100 B to the sink, of which tm-1 sends half of all records: 500 + 50 B a record.
    assert window.achieved_rate == pytest.approx(1e8 / 550, rel=0.01)


def test_state_bound_writes(chain, inject, cluster):
    """10,000 B written a record, each twice to a device of 2e8 B/s: 10,000/s, and the waiting counts as busy."""
    job = chain({"name": "count", "cpu_s": 1e-6, "state_write_bytes": 1e4, "into": "hash"})
    window = inject(job, cluster(io=2e8))
    assert window.achieved_rate == pytest.approx(10_000, rel=0.01)
    assert total(window, "count", "busy_s") / 60 == pytest.approx(1, abs=0.01)
    assert total(window, "count", "cpu_s") / 60 == pytest.approx(0.01, rel=0.02)


def test_state_bound_reads(chain, inject, cluster):
    """Keys of 8 x the cache that they need: 7 of 8 reads miss, each two blocks of 100 us beside 10 us of CPU."""
    cache = (100 - 16 - 48) * 2**20
    keys = {"distinct": 4000}
    state = {"bytes_per_key": cache / 4000 * 8 / 2}
    job = chain({"name": "count", "cpu_s": 1e-5, "state_read_bytes": 100, "keys": keys, "state": state, "into": "hash"})
    window = inject(job, cluster(), managed_memory_mb={"count": 100.0})
    assert window.achieved_rate == pytest.approx(1 / (1e-5 + 7 / 8 * 2e-4), rel=0.005)
    hits, misses = total(window, "count", "cache_hits"), total(window, "count", "cache_misses")
    assert hits / (hits + misses) == pytest.approx(1 / 8, rel=1e-6)


def test_more_cache_makes_reads_cheap_and_leaves_writes(chain, inject):
    """Justin's takeaways 2 and 3."""
    keys, state = {"distinct": 10_000}, {"bytes_per_key": 50_000.0}
    base = {"name": "count", "cpu_s": 1e-5, "keys": keys, "state": state, "into": "hash"}
    reading = chain({**base, "state_read_bytes": 1000})
    writing = chain({**base, "state_write_bytes": 1000})
    rates = [
        inject(j, managed_memory_mb={"count": mb}).achieved_rate for j in (reading, writing) for mb in (128.0, 1536.0)
    ]
    assert rates[1] > 5 * rates[0]
    assert rates[3] == pytest.approx(rates[2], rel=1e-6)


def test_the_bottleneck_reaches_the_source(chain, inject):
    job = chain({"name": "first", "cpu_s": 1e-6}, {"name": "middle", "cpu_s": 1e-6}, {"name": "slow", "cpu_s": 2e-5})
    window = inject(job)
    assert window.achieved_rate == pytest.approx(50_000, rel=0.005)
    for name in ("source", "first", "middle"):
        assert total(window, name, "backpressured_s") / 60 > 0.9
    assert total(window, "slow", "busy_s") / 60 == pytest.approx(1, abs=1e-6)
    assert total(window, "sink", "idle_s") / 60 > 0.9


def test_forward_edges_keep_to_their_partner(job, inject, cluster):
    """One of two partners shares its core with a hog: forward holds that pair back alone, rebalance both."""

    def capacity(partitioning):
        made = job(
            {"name": "source", "kind": "source", "cpu_s": 1e-7},
            {"name": "map", "cpu_s": 1e-5},
            {"name": "sink", "kind": "sink", "cpu_s": 1e-12},
            edges=[("source", "map", partitioning), ("map", "sink", "rebalance")],
        )
        workers = cluster(workers=1).model_dump()["workers"]
        slow = {**workers[0], "cores": 0.5}
        two = {"name": "uneven", "workers": [slow, {**workers[0], "name": "tm-2"}]}
        placement = {"tm-1": {"map": 1}, "tm-2": {"map": 1, "sink": 1}}
        return inject(
            made, type(cluster()).model_validate(two), parallelism={"source": 2, "map": 2}, placement=placement
        ).achieved_rate

    assert capacity("forward") == pytest.approx(150_000, rel=0.01)
    assert capacity("rebalance") == pytest.approx(100_000, rel=0.01)


def test_broadcast_sends_a_copy_to_each_task(job, inject):
    made = job(
        {"name": "source", "kind": "source", "cpu_s": 1e-7},
        {"name": "map", "cpu_s": 1e-5},
        {"name": "sink", "kind": "sink", "cpu_s": 1e-8},
        edges=[("source", "map", "broadcast"), ("map", "sink", "rebalance")],
    )
    window = inject(made, parallelism={"map": 4})
    assert window.achieved_rate == pytest.approx(100_000, rel=0.01)
    assert total(window, "map", "records_in") == pytest.approx(4 * total(window, "source", "records_out"), rel=0.01)
    assert total(window, "source", "bytes_out") == pytest.approx(400 * total(window, "source", "records_out"), rel=1e-9)


def test_a_core_slows_down_when_all_are_busy(chain, inject, cluster):
    physics = Physics().ideal().model_copy(update={"full_load_slowdown": 0.3})
    job = chain({"name": "map", "cpu_s": 1e-5})
    job = job.model_copy(update={"operators": tuple(_free_sink(o) for o in job.operators)})
    one = inject(job, cluster(slots=16, cores=8), parallelism={"map": 1}, physics=physics)
    all_busy = inject(job, cluster(slots=16, cores=8), parallelism={"map": 8}, physics=physics)
    assert one.achieved_rate == pytest.approx(100_000, rel=0.01)
    assert all_busy.achieved_rate == pytest.approx(800_000 * 0.7, rel=0.01)


def test_fresh_code_is_slow(chain, inject):
    """Half the speed at first, and the same as ever after five times the decay of 20 s."""
    job, warm = chain({"name": "map", "cpu_s": 1e-5}), Physics().ideal().model_copy(update={"cold_slowdown": 1.0})
    first = inject(job, seconds=5, settle_s=0, physics=warm).achieved_rate
    later = inject(job, seconds=5, settle_s=120, physics=warm).achieved_rate
    assert 50_000 < first < 62_000
    assert later == pytest.approx(100_000, rel=0.01)
