"""The lower hull of deployments."""

import numpy as np
import pytest

from pipelines.arena.bound.costs import TASK_NOISE, operator_limits
from pipelines.arena.bound.deployments import hull
from testbeds.simulator.settings import Physics


def _hull(job, downtime_s=0.7):
    return hull(job, operator_limits(job, 8, 1.0, {}, Physics()), 10, downtime_s, 60.0, Physics())


def test_between_whole_tasks_their_mean_counts(job):
    found, unit = _hull(job), 10_000 * (1 + TASK_NOISE)
    assert found.least_tasks == 3 and found.free == pytest.approx(unit, rel=0.01)
    # Sources and sinks are idle with one task each; 2.5 tasks of the map are 2 and 3 in turn.
    for tasks in (1.0, 2.0, 2.5, 6.0):
        assert found.tasks(tasks * unit) == pytest.approx(tasks + 2, rel=0.01)
    assert found.most == pytest.approx(8 * unit, rel=0.01)
    assert found.tasks(8.5 * unit) == np.inf


def test_capacity_beyond_what_there_is_to_read_is_of_no_use(job):
    limits, unit = operator_limits(job, 8, 1.0, {}, Physics()), 10_000 * (1 + TASK_NOISE)
    found = hull(job, limits, 10, 0.7, 60.0, Physics(), most=1.5 * unit)
    # The fourth task is needed for half of what it can do.
    assert found.most == pytest.approx(1.5 * unit) and found.tasks(1.5 * unit) == pytest.approx(4)
    assert found.tasks(1.25 * unit) == pytest.approx(3.5, rel=0.01)


def test_it_is_convex_and_below_every_deployment(job):
    found = _hull(job)
    assert np.all(np.diff(found.slope) >= 0)
    for n in range(1, 9):
        assert found.tasks(n * 10_000.0) <= n + 2


def test_a_rescale_without_downtime_forgives_what_is_buffered(job):
    # 44 buffers before 3 tasks of the map hold 14 418 records, in 60 s 240 a second of 30 150; a step adds 50.
    free, paid = _hull(job, downtime_s=0.0), _hull(job)
    assert paid.tasks(30_150) == pytest.approx(5, rel=0.01)
    assert free.most > paid.most
    assert 4.9 < free.tasks(30_150) < 4.99
