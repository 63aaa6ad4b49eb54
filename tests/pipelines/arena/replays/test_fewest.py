"""The fewest tasks that hold an objective, on a workload whose need is known."""

import pytest

from pipelines.arena.replays.compute import run_cell
from pipelines.arena.replays.fewest import TOLERANCE, fewest_tasks
from pipelines.arena.replays.workloads import Workload


def _cell(cell, *rates: float, **given):
    workload = Workload(name="w", rates=rates)
    return cell("static", workload=workload, burn_in_s=300, **given)


def test_one_task_fewer_does_not_hold_it(cell):
    # 10 000 records/s a task of the map, less a tenth on a busy core: 24 000 take 3, and not 2.
    of = _cell(cell, *[8000] * 6, *[24_000] * 6)
    found = fewest_tasks(of, 10, 0.99)
    assert found.outcome.most_tasks == 5 and found.outcome.within_10_s >= 0.99
    less = of.model_copy(update={"settings": {"rate": 24_000.0, "factor": found.factor / TOLERANCE}})
    assert run_cell(less).outcome.within_10_s < 0.99


@pytest.mark.slow
def test_a_looser_objective_takes_no_more_tasks(cell):
    of = _cell(cell, *[8000] * 6, *[24_000] * 2, *[8000] * 8)
    strict, loose = fewest_tasks(of, 1, 0.99), fewest_tasks(of, 60, 0.8)
    assert loose.outcome.task_hours <= strict.outcome.task_hours
    assert loose.factor <= strict.factor


def test_where_the_cluster_is_too_small_there_is_none(cell):
    assert fewest_tasks(_cell(cell, *[500_000] * 12), 10, 0.99) is None


@pytest.mark.parametrize("rates", [[0.0] * 12])
def test_without_records_every_deployment_holds_it(cell, rates):
    assert fewest_tasks(_cell(cell, *rates), 1, 0.99).outcome.most_tasks == 3
