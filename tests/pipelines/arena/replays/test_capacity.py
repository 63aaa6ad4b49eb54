"""What a cluster takes of a job, beside nominal costs and beside a replay."""

import pytest

from models.scaling.provision import provision, sustainable_rate
from pipelines.arena.replays.compute import capacity, run_cell
from pipelines.arena.replays.workloads import Workload
from pipelines.inputs.catalogue import load_cluster, load_job


def test_without_skew_and_state_it_is_nearly_that_of_the_nominal_costs(job, cluster):
    # 8 tasks of the map at 100 us a record, slower by a tenth on a busy core.
    measured = capacity(job, cluster)
    assert sustainable_rate(job, 10) == pytest.approx(80_000)
    assert 70_000 < measured.rate < 82_000
    assert measured.cost_s["map"] == pytest.approx(1e-4, rel=0.15)


def test_skew_counts_as_cost():
    q11 = load_job("nexmark-q11")
    measured = capacity(q11, load_cluster("arena"))
    nominal = {o.name: o.cost.cpu_s for o in q11.operators}
    assert measured.cost_s["session-window"] > 1.15 * nominal["session-window"]
    assert measured.cost_s["bids"] == pytest.approx(nominal["bids"], rel=0.05)
    more = provision(q11, 1e6, 70, measured.cost_s)["session-window"]
    assert more > provision(q11, 1e6, 70)["session-window"]


@pytest.mark.parametrize("name", ["nexmark-q5", "nexmark-q11"])
@pytest.mark.parametrize(("share", "kept"), [(0.85, True), (1.25, False)])
def test_a_replay_on_all_slots_keeps_up_below_it_and_not_above(cell, name, share, kept):
    """Over ten minutes on machines drawn with another seed, whose speed deviates by 5 %."""
    q, arena = load_job(name), load_cluster("arena")
    rate = share * capacity(q, arena).rate
    flat = Workload(name="flat", rates=(rate,) * 10)
    alone = {"rate": rate, "warm_up_s": 1e6}  # stays as it starts
    result = run_cell(
        cell("static", job=q, cluster=arena, workload=flat, start="over", settings=alone, burn_in_s=300)
    ).outcome
    assert result.most_tasks == 70
    assert (result.throughput_ratio > 0.99) is kept


def test_it_is_the_same_each_time_and_measured_once(job, cluster):
    assert capacity(job, cluster) is capacity(job.model_copy(), cluster)
