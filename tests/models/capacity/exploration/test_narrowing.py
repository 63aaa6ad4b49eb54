"""Preposterior analysis, for two laws that are known exactly: 100 n and 100 sqrt(n) records/s.

A rate of 1,000 records/s needs 10 slots by the one and 100 by the other.
"""

import math

import numpy as np
import pytest

from models.capacity.exploration.narrowing import Narrowing
from models.capacity.exploration.space import SearchSpace
from models.capacity.exploration.suggesting import MeasuringTime, suggest
from models.capacity.growth.curves import LawCurves
from models.capacity.growth.stacking import StackingMoments
from models.capacity.observation import Budget
from models.capacity.selection import Stack

NOISE = 0.02
T_975 = 2.7764
"""97.5 % quantile of the Student-t distribution with 4 degrees of freedom."""
HALF_EACH = np.array([0.5, 0.5])
ONE_IS_RIGHT = StackingMoments(mean=HALF_EACH, second=np.diag(HALF_EACH), left_out=HALF_EACH[None])
BOTH_COUNT_HALF = StackingMoments(mean=HALF_EACH, second=np.full((2, 2), 0.25), left_out=HALF_EACH[None])


def power(exponent: float) -> LawCurves:
    """MST = 100 n^exponent, without doubt but for the noise."""
    return LawCurves(
        law="power",
        fewest_slots=1,
        most_slots=16,
        memory_mb=1024,
        level=(math.log(100),),
        memory_effect=(0.0,),
        noise=(NOISE,),
        drift=(1.0,),
        shape=((1.0, exponent),),
    )


def narrowing(moments: StackingMoments) -> Narrowing:
    stack = Stack(posteriors={}, curves={"linear": power(1.0), "sqrt": power(0.5)}, moments=moments)
    return Narrowing(stack, 1024, rate=1000, fewest_slots=1)


def budget(slots: int) -> Budget:
    return Budget(task_slots=slots, memory_mb=1024)


def test_laws_that_disagree_make_the_interval_wide() -> None:
    # 2.5 % of all is 5 % of either law; the 95 % quantile of Student's t is 2.132.
    expected = math.log(100 / 10) + 2.132 * (NOISE / 0.5 + NOISE / 1.0)
    assert narrowing(ONE_IS_RIGHT).log_width == pytest.approx(expected, abs=0.02)  # half a step of the ladder


def test_a_measurement_where_the_laws_agree_narrows_nothing() -> None:
    found = narrowing(ONE_IS_RIGHT)
    assert found.expected(budget(1)) == pytest.approx(found.log_width, rel=0.01)


def test_a_measurement_that_decides_between_the_laws_leaves_the_noise() -> None:
    # At 16 slots 1,600 or 400 records/s. Noise of sigma in log MST is sigma / exponent in log slots.
    after = (2 * T_975 * NOISE / 1.0 + 2 * T_975 * NOISE / 0.5) / 2
    assert narrowing(ONE_IS_RIGHT).expected(budget(16)) == pytest.approx(after, abs=0.02)


def test_weights_that_one_observation_does_not_change_leave_the_interval_wide() -> None:
    found = narrowing(BOTH_COUNT_HALF)
    assert found.expected(budget(16)) == pytest.approx(found.log_width, rel=0.01)


def test_noise_hides_what_a_small_difference_shows() -> None:
    # 1, 2 and 3 slots: the laws differ by 0, 0.35 and 0.55 in log MST; at 2 slots that is 17 sigma.
    found = narrowing(ONE_IS_RIGHT)
    assert found.expected(budget(2)) < 0.2 < 2 < found.expected(budget(1))


def test_repeats_show_what_the_noise_of_one_hides() -> None:
    # At 2 slots the laws are 2 % apart: 1 sigma for one measurement, 10 for the mean of a hundred.
    nearly = {"linear": power(1.0), "sqrt": power(1 - 0.02 / math.log(2))}
    found = Narrowing(Stack(posteriors={}, curves=nearly, moments=ONE_IS_RIGHT), 1024, rate=1e6, fewest_slots=1)
    assert found.expected(budget(2)) > 0.95 * found.log_width
    left = 2 * T_975 * NOISE  # Of either law, but for 3 %.
    assert found.expected(budget(2), repeats=100) == pytest.approx(left, abs=0.04)  # a step of the ladder
    assert found.log_width > 3 * left


def test_a_memory_size_without_a_single_task_run_takes_two_runs() -> None:
    space = SearchSpace(min_slots=2, max_slots=8, memory_levels_mb=(1024, 2048))
    time = MeasuringTime(search_s=645, deployment_s=135)
    assert time.minutes(Budget(task_slots=4, memory_mb=1024), space, {1024.0}) == pytest.approx(13)
    assert time.minutes(Budget(task_slots=4, memory_mb=2048), space, {1024.0}) == pytest.approx(26)
    assert time.minutes(Budget(task_slots=2, memory_mb=2048), space, {1024.0}) == pytest.approx(13)


def test_the_suggestion_decides_between_the_laws_on_the_memory_that_costs_less() -> None:
    space = SearchSpace(min_slots=1, max_slots=16, memory_levels_mb=(512, 1024, 2048))
    time = MeasuringTime(search_s=645, deployment_s=135)
    corners = [Budget(task_slots=1, memory_mb=512), Budget(task_slots=1, memory_mb=2048)]
    found = suggest(narrowing(ONE_IS_RIGHT), space, time, corners, seed=0)
    assert found.budget.task_slots >= 2
    assert found.budget.memory_mb in (512, 2048)
    assert found.log_width == pytest.approx(3 * T_975 * NOISE, abs=0.02)
    assert found.minutes == pytest.approx(13)


@pytest.mark.parametrize("seed", range(3))
def test_the_optimiser_comes_close_to_the_best_budget_of_all(seed: int) -> None:
    space = SearchSpace(min_slots=1, max_slots=200, memory_levels_mb=(1024,))
    found = narrowing(ONE_IS_RIGHT)
    best = min(found.expected(budget(n)) for n in range(1, 201))
    suggested = suggest(found, space, MeasuringTime(search_s=60, deployment_s=0), [budget(1)], seed)
    assert found.log_width - suggested.log_width >= 0.95 * (found.log_width - best)


@pytest.mark.slow
def test_no_number_of_slots_is_suggested_twice_while_others_are_left() -> None:
    space = SearchSpace(min_slots=1, max_slots=4, memory_levels_mb=(1024,))
    found, measured = narrowing(ONE_IS_RIGHT), list[Budget]()
    for _ in range(4):
        measured.append(suggest(found, space, MeasuringTime(search_s=60, deployment_s=0), measured, 0).budget)
    assert sorted(b.task_slots for b in measured) == [1, 2, 3, 4]
    again = suggest(found, space, MeasuringTime(search_s=60, deployment_s=0), measured, 0)
    assert again.budget in measured
