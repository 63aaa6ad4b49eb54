"""The loop on a real, ideal simulator (no noise, no cold start), checked by hand."""

import numpy as np
import pytest

from models.errors import InvalidInput
from models.scaling.rates import Rates
from pipelines.arena.replays.outcome import outcome, table
from pipelines.arena.replays.replay import Start, replay
from pipelines.arena.replays.workloads import Workload
from testbeds.simulator import Simulator
from testbeds.simulator.settings import Physics

TASKS = {"source": 1, "map": 1, "sink": 1}
MEMORY = {"source": 0.0, "map": 158.0, "sink": 0.0}


@pytest.fixture
def run(job, cluster):
    """Replays on the ideal simulator, with a workload of minutes."""

    def replayed(policy, rates, tasks=TASKS, least_between_s=0.0):
        workload = Workload(name="w", rates=rates)
        start = Start(tasks, 4096.0, MEMORY, seed=1)
        testbed = Simulator(cluster, physics=Physics().ideal())
        trace = replay(testbed, job, workload, policy, start, least_between_s=least_between_s)
        return trace, outcome(trace, workload)

    return replayed


def test_without_decisions_nothing_changes_and_everything_is_read(run, scripted):
    policy = scripted(60.0, {})
    _, result = run(policy, (5000, 5000, 5000))
    assert [facts.time_s for facts in policy.seen] == [60, 120, 180]
    assert {facts.interval_s for facts in policy.seen} == {60}
    assert {facts.max_task_slots for facts in policy.seen} == {10}
    assert (result.rescales, result.downtime_s, result.most_tasks) == (0, 0, 3)
    assert result.task_hours == pytest.approx(3 * 3 / 60)
    # Heap 134 and network 39 MiB for each of three tasks, and 158 MiB of managed memory for one of them.
    assert result.memory_gib_hours == pytest.approx(3 * (3 * 173 + 158) / 60 / 1024)
    assert result.throughput_ratio == pytest.approx(1.0, abs=1e-3)
    assert result.latency_p95_s == pytest.approx(0, abs=0.1)


def test_a_policy_sees_what_the_operators_did(run, scripted):
    policy = scripted(60.0, {})
    run(policy, (5000, 5000))
    rates: Rates = policy.seen[-1].rates
    assert rates.source_rates == pytest.approx({"source": 5000})
    assert rates.operators["map"].true_processing_rate == pytest.approx(10_000, rel=0.01)
    assert rates.operators["map"].busyness == pytest.approx(0.5, rel=0.02)
    assert rates.operators["source"].lag_change_per_s == pytest.approx(0, abs=5)


def test_a_rescale_takes_the_job_down_and_the_lag_is_caught_up(run, scripted):
    # One task reads 10 000 of 20 000 records/s for a minute; four read up to 40 000 from the second minute on.
    policy = scripted(60.0, {60.0: {"map": 4}})
    trace, result = run(policy, (20_000,) * 5)
    (rescale,) = trace.rescales
    assert (rescale.time_s, rescale.parallelism) == (60, {"source": 1, "map": 4, "sink": 1})
    assert rescale.reason == "60 s"
    down_s = rescale.downtime_s
    assert result.downtime_s == pytest.approx(down_s) and 10 < down_s < 60
    # Lag at the end of the downtime: 10 000 records/s of the first minute, and all 20 000 while down.
    up = int((60 + down_s) // 5)
    assert trace.lag[11] == pytest.approx(600_000, rel=0.02)
    assert max(trace.lag) == pytest.approx(600_000 + 20_000 * down_s, rel=0.02)
    # Then it shrinks by 20 000 records/s.
    expected_s = 60 + down_s + (600_000 + 20_000 * down_s) / 20_000
    caught_up_s = 5.0 * (up + int(np.argmax(trace.lag[up:] < 1)) + 1)
    assert caught_up_s == pytest.approx(expected_s, abs=10)
    assert result.last_lag == 0 and result.throughput_ratio == pytest.approx(1)
    assert result.task_hours == pytest.approx((1 * 3 + 4 * 6) / 60)
    # The record that is read when the job is up again came when 600 000 records had been read: after 30 s.
    assert table(trace)["latency_s"][up - 1].as_py() == pytest.approx(5 * up - 30, abs=1)


def test_it_is_not_called_while_the_job_is_down_and_gets_the_rescale_afterwards(run, scripted):
    policy = scripted(10.0, {60.0: {"map": 2}})
    trace, _ = run(policy, (5000, 5000, 5000))
    up_s = 60 + trace.rescales[0].downtime_s
    later = [facts for facts in policy.seen if facts.time_s > 60]
    assert later[0].time_s - up_s >= 5 and later[0].time_s - up_s < 15
    assert later[0].interval_s == pytest.approx(min(later[0].time_s - up_s, 10))
    assert [facts.time_s for facts in later] == list(np.arange(later[0].time_s, 181, 10))
    assert later[0].last_rescale is not None
    assert later[0].last_rescale.ended_s == pytest.approx(up_s)
    assert policy.seen[0].last_rescale is None


def test_what_comes_too_soon_after_a_rescale_is_not_deployed(run, scripted):
    # Up at about 90 s: 60 s later is between 140 and 160 s.
    script = {60.0: {"map": 2}, 120.0: {"map": 3}, 140.0: {"map": 3}, 160.0: {"map": 4}}
    trace, result = run(scripted(10.0, script), (5000,) * 4, least_between_s=60.0)
    assert [(r.time_s, r.parallelism["map"]) for r in trace.rescales] == [(60, 2), (160, 4)]
    assert trace.held_back == (120, 140) and result.held_back == 2


def test_decisions_are_brought_within_the_cluster(run, scripted):
    trace, result = run(scripted(60.0, {60.0: {"map": 50}, 120.0: {"map": 50}}), (5000,) * 3)
    (rescale,) = trace.rescales  # the second time nothing is left to change
    assert rescale.tasks == 10 and result.most_tasks == 10
    assert rescale.note == "52 tasks wanted and 10 slots there, so granted: map 8 of 50"


def test_a_decision_that_the_cluster_cannot_deploy_leaves_the_job_as_it_is(run, scripted):
    # A TaskManager of 4096 MiB has 0.4 x (4096 - 256 - 409.6) = 1372 MiB of managed memory.
    policy = scripted(60.0, {60.0: {"map": 2}}, memory_mb={"map": 2000.0})
    trace, result = run(policy, (5000, 5000))
    (refused,) = trace.rescales
    assert refused.refused and "2000 MiB of managed memory" in refused.note
    assert (result.rescales, result.refusals, result.downtime_s, result.most_tasks) == (0, 1, 0, 3)
    assert policy.seen[-1].last_rescale is None


def test_memory_is_deployed_and_counted(run, scripted):
    policy = scripted(60.0, {60.0: {"map": 2}}, memory_mb={"map": 316.0})
    _, result = run(policy, (5000, 5000))
    assert policy.seen[-1].rates.operators["map"].memory_mb == 316
    assert result.memory_gib_hours == pytest.approx((3 * 173 + 158 + 4 * 173 + 2 * 316) / 60 / 1024)


def test_an_interval_may_span_several_rates(run, scripted):
    policy = scripted(120.0, {})
    run(policy, (2000, 6000))
    assert policy.seen[0].rates.source_rates == pytest.approx({"source": 4000})


def test_no_records_no_rates_no_call(run, scripted):
    policy = scripted(60.0, {})
    trace, result = run(policy, (0, 0))
    assert policy.seen == []
    assert (result.latency_p95_s, result.throughput_ratio) == (None, None)
    assert table(trace)["capacity"].null_count == 24


def test_the_trace_says_what_the_tasks_could_take(run, scripted):
    trace, _ = run(scripted(60.0, {60.0: {"map": 2}}), (5000, 5000, 5000))
    capacity = table(trace)["capacity"].to_pylist()
    assert capacity[0] == pytest.approx(10_000, rel=0.01)
    assert capacity[-1] == pytest.approx(20_000, rel=0.01)
    assert capacity[12] is None  # down
    assert table(trace)["parallelism"][-1].as_py() == [("source", 1), ("map", 2), ("sink", 1)]


def test_a_testbed_that_cannot_rescale_is_refused(job, cluster, scripted):
    class Fixed(Simulator):
        def deploy(self, *_, **__):
            return Recording()

    class Recording:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    workload = Workload(name="w", rates=(1,))
    with pytest.raises(InvalidInput, match="cannot rescale a running job"):
        replay(Fixed(cluster), job, workload, scripted(60.0, {}), Start(TASKS, 4096.0, MEMORY, 1))
