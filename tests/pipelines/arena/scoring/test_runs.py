"""Paired differences between policies, with intervals over the seeds."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pipelines.arena.grid import Finished, run_cells
from pipelines.arena.replays.cell import Cell
from pipelines.arena.scoring.runs import CostDifference, SettingRuns, cost_difference, setting_runs
from pipelines.store.workspace import Workspace


def held(*task_hours: float) -> list[SettingRuns]:
    """A policy with one setting, which is always in time."""
    return [SettingRuns(1.0, task_hours, (0.0,) * len(task_hours))]


def test_the_difference_is_that_of_the_means() -> None:
    found = cost_difference([held(80, 100)], [held(100, 100)], 0.99)
    assert found is not None and found.share == pytest.approx(-0.1) and found.seeds == 2


def test_seeds_that_agree_leave_no_doubt_and_their_level_does_not_count() -> None:
    # Always a tenth cheaper, on cheap days and on expensive ones: an unpaired interval would be wide.
    found = cost_difference([held(90, 900, 9000)], [held(100, 1000, 10_000)], 0.99)
    assert found is not None and found.interval == pytest.approx((-0.1, -0.1))


def test_the_interval_of_two_seeds_is_from_one_to_the_other() -> None:
    # A quarter of the samples has the first seed twice, a quarter the second: the 5 and 95 % quantiles are these.
    found = cost_difference([held(80, 120)], [held(100, 100)], 0.99)
    assert found is not None
    assert (found.share, found.interval) == (pytest.approx(0), pytest.approx((-0.2, 0.2)))


def test_one_seed_has_no_interval_and_a_policy_that_never_attains_no_difference() -> None:
    assert cost_difference([held(80)], [held(100)], 0.99) == CostDifference(pytest.approx(-0.2), None, 1)
    late = [SettingRuns(1.0, (80.0,), (0.5,))]
    assert cost_difference([held(80)], [late], 0.99) is None


def test_groups_that_one_misses_are_left_out() -> None:
    late = [SettingRuns(1.0, (1.0, 1.0), (0.5, 0.5))]
    found = cost_difference([held(80, 80), late], [held(100, 100), held(5, 5)], 0.99)
    assert found is not None and found.interval == pytest.approx((-0.2, -0.2))


def test_attainment_that_depends_on_the_seeds_leaves_no_interval() -> None:
    # With the second seed twice, a quarter of the samples, 2 % are late.
    sometimes = [SettingRuns(1.0, (80.0, 80.0), (0.0, 0.02))]
    found = cost_difference([sometimes], [held(100, 100)], 0.99)
    assert found is not None and (found.share, found.interval) == (pytest.approx(-0.2), None)


def test_starts_of_a_seed_are_one_sample(cell: Callable[..., Cell], tmp_path: Path) -> None:
    (one,) = run_cells([cell("ds2", seed=3)], Workspace(tmp_path), processes=1)

    def variant(seed: int, start: str, task_hours: float, within: float | None) -> Finished:
        outcome = one.outcome.model_copy(update={"task_hours": task_hours, "within_10_s": within})
        return Finished(one.cell.model_copy(update={"seed": seed, "start": start}), one.key, outcome, ())

    made = [variant(4, "well", 8, None), variant(3, "well", 10, 0.9), variant(3, "over", 14, 0.8)]
    found = setting_runs(0.2, made, 10)
    assert found.task_hours == (12, 8)
    assert found.late_share == (pytest.approx(0.15), 0)
