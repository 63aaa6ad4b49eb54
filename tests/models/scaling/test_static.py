"""The policy that rescales once, by hand."""

import pytest

from models.scaling.conformance import LinearJob, drive
from models.scaling.policies import make_policy


def test_it_deploys_what_its_rate_needs_once_whatever_the_rate_is_later():
    # Each task takes 500 records/s; 1.2 x 1000 at the source are 2.4 tasks of the source and map.
    job = LinearJob.even()
    policy = make_policy("static", {"rate": 1000.0})
    advice = [advice for _, advice in drive(policy, job, [100.0] * 5 + [5000.0] * 20)]
    (only,) = [one.deploy for one in advice if one.deploy is not None]
    assert only.parallelism == {"source": 3, "map": 3, "window": 3, "sink": 1}
    assert "first 120 s" in advice[0].reason and advice[-1].reason == "Static has deployed its tasks, and keeps them."


def test_it_keeps_a_deployment_that_is_right_from_the_start():
    job = LinearJob.even(source=3, map=3, window=3, sink=1)
    advice = [advice for _, advice in drive(make_policy("static", {"rate": 1000.0}), job, [100.0, 900.0] * 10)]
    assert all(one.deploy is None for one in advice)


def test_without_a_rate_that_of_the_first_decision_counts():
    rates = LinearJob.even().rates(2000.0, 60.0)
    assert make_policy("static", {"factor": 1.5}).decide(rates).parallelism["map"] == 6
    assert make_policy("static").decide(rates).exact["map"] == pytest.approx(4.8)


def test_a_larger_factor_gives_no_fewer_tasks():
    rates = LinearJob.even().rates(2000.0, 60.0)
    tasks = [sum(make_policy("static", {"factor": f}).decide(rates).parallelism.values()) for f in (0.5, 1, 2, 4)]
    assert tasks == sorted(tasks) and tasks[0] < tasks[-1]


def test_an_operator_that_takes_nothing_for_a_while_counts_as_unchanged():
    job = LinearJob.even(source=3, map=3, window=3, sink=1)
    arriving = [900.0] * 10
    advice = [advice for _, advice in drive(make_policy("static", {"rate": 1000.0}), job, arriving, range(5, 8))]
    assert all(one.deploy is None for one in advice)
