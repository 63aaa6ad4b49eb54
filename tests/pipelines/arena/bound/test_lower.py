"""The lower bound of a cell."""

import pytest

from pipelines.arena.bound.lower import lower_bound
from pipelines.arena.replays.compute import run_cell
from pipelines.arena.replays.workloads import Pattern, Workload, pattern
from pipelines.arena.request import recommended_settings
from pipelines.inputs.catalogue import load_cluster, load_job

SEED_NOISE = 0.16
"""Three standard deviations of the machines of a seed."""


def test_a_steady_rate_takes_its_mean_tasks(cell):
    # 24 000 records/s take 2.4 tasks of the map, and one of the source and of the sink, on mean machines.
    steady = cell(workload=Workload(name="steady", rates=(24_000,) * 60), burn_in_s=600)
    found = lower_bound(steady, 10, 1.0)
    on_these_machines = found.hull.tasks(24_000)
    assert on_these_machines == pytest.approx(4.4, abs=2.4 * SEED_NOISE)
    # 50 minutes, in which the records of the last 10 s and those in buffers may be left unread.
    assert 0.98 * on_these_machines * 50 / 60 < found.task_hours <= on_these_machines * 50 / 60
    tenth_less, saved = lower_bound(steady, 10, 0.9), on_these_machines - found.hull.tasks(21_600)
    assert found.task_hours - tenth_less.task_hours == pytest.approx(saved * 50 / 60, rel=0.03)
    # In a minute, all that arrives and the 10 s before are read at most.
    assert found.hull.most == pytest.approx(24_000 * 70.7 / 60.7)


def test_without_records_one_task_of_each_operator_runs(cell):
    found = lower_bound(cell(workload=Workload(name="none", rates=(0,) * 60)), 1, 0.99)
    assert found.task_hours == pytest.approx(3.0)


def test_an_overload_is_out_of_reach(cell):
    assert lower_bound(cell(workload=Workload(name="flood", rates=(200_000,) * 30)), 10, 0.99) is None


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Pattern.RANDOM, Pattern.COSINE])
def test_it_rises_with_attainment_and_falls_with_the_objective(cell, kind):
    of = cell(workload=pattern(kind, 60_000), burn_in_s=1800)
    by_attainment = [lower_bound(of, 10, q).task_hours for q in (0.0, 0.5, 0.9, 0.99, 1.0)]
    assert by_attainment == sorted(by_attainment) and by_attainment[0] == pytest.approx(3 * 110 / 60)
    by_objective = [lower_bound(of, seconds, 0.99).task_hours for seconds in (0, 1, 10, 60, 600)]
    assert by_objective == sorted(by_objective, reverse=True) and by_objective[0] > by_objective[-1]


@pytest.mark.parametrize("policy", ["ds2", "hpa-cpu", "sluice", "static"])
@pytest.mark.parametrize("mode", ["in-place", pytest.param("savepoint", marks=pytest.mark.slow)])
def test_no_policy_takes_less_at_its_own_attainment(cell, policy, mode):
    own = cell(
        policy,
        settings=recommended_settings(policy, mode),
        workload=pattern(Pattern.RANDOM, 50_000, minutes=60),
        rescale_mode=mode,
        burn_in_s=600,
    )
    replayed = run_cell(own).outcome
    for seconds in (1, 10, 60):
        found = lower_bound(own, seconds, getattr(replayed, f"within_{seconds}_s"))
        assert found is not None and found.task_hours <= replayed.task_hours


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["sluice", "static"])
def test_no_policy_takes_less_where_keys_are_hot(cell, policy):
    own = cell(
        policy,
        job=load_job("nexmark-q11"),
        cluster=load_cluster("arena"),
        settings=recommended_settings(policy, "in-place"),
        workload=pattern(Pattern.COSINE, 1_100_000, minutes=40),
        burn_in_s=600,
    )
    replayed = run_cell(own).outcome
    found = lower_bound(own, 10, replayed.within_10_s)
    assert found is not None and found.task_hours <= replayed.task_hours


def test_the_most_that_is_counted_must_be_a_share(cell):
    with pytest.raises(ValueError, match=r"0 <= attainment <= 1 must hold, but got 10 and 1\.5"):
        lower_bound(cell(), 10, 1.5)
