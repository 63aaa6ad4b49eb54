"""The exploration against known models: corners, suggestions, its end, and going on after a stop."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from pydantic import ValidationError

from models.capacity.exploration.exploration import Exploration
from models.capacity.exploration.space import SearchSpace
from models.capacity.exploration.streambed import StreamBedExploration
from models.capacity.growth.dataset import Dataset, shows_growth
from models.capacity.growth.regressions import REGRESSIONS, loocv_rmse
from models.capacity.observation import Budget
from models.errors import InvalidInput, SluiceError

SPACE = SearchSpace(min_slots=9, max_slots=48, memory_levels_mb=(8192, 16384, 32768, 65536))
Oracle = Callable[[Budget], float]


def log_job(noise: float, seed: int = 0) -> Oracle:
    """A job whose MST grows with the logarithm of the slots, measured with normal noise."""
    rng = np.random.default_rng(seed)
    return lambda b: float((5.7e5 * np.log1p(b.task_slots) - 4e5) * (1 + noise * rng.normal()))


def drive(exploration: Exploration, oracle: Oracle) -> list[Budget]:
    done = []
    while (budget := exploration.next()) is not None:
        done.append(budget)
        exploration.observe(oracle(budget))
    return done


def test_the_corners_come_first_in_the_published_order():
    corners = [(9, 8192), (48, 8192), (9, 65536), (48, 65536)]
    assert [(b.task_slots, b.memory_mb) for b in SPACE.corners] == corners
    exploration = StreamBedExploration(SPACE, seed=1)
    assert drive(exploration, log_job(0.05))[:4] == list(SPACE.corners)
    assert [s.suggested_by for s in exploration.steps[:5]] == ["corner"] * 4 + ["bayesian"]


@pytest.mark.parametrize(
    ("slots", "levels", "corners"),
    [((9, 48), (8192,), 2), ((9, 9), (8192, 65536), 2), ((9, 9), (8192,), 1), ((2, 3), (1024, 2048), 4)],
)
def test_a_single_level_takes_no_part(slots, levels, corners):
    space = SearchSpace(min_slots=slots[0], max_slots=slots[1], memory_levels_mb=levels)
    exploration = StreamBedExploration(space, seed=3, max_measurements=4)
    done = drive(exploration, log_job(0.02))
    assert len(space.corners) == corners
    assert corners + 3 <= len(done) <= corners + 4
    assert all(slots[0] <= b.task_slots <= slots[1] and b.memory_mb in levels for b in done)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_it_ends_when_the_error_grows_by_a_tenth_or_after_20(seed):
    exploration = StreamBedExploration(SPACE, seed=seed)
    drive(exploration, log_job(0.05, seed))
    errors = [step.error or 0.0 for step in exploration.steps[4:] if step.suggested_by == "bayesian"]
    growth = [now / before for before, now in itertools.pairwise(errors)]
    # growth[0] is that of the 2nd measurement: the first that may end the search is the 3rd.
    assert all(g <= 1.1 for g in growth[1:-1])
    assert 3 <= len(errors) <= 20
    if growth[-1] > 1.1:
        assert f"the error grew by {growth[-1] - 1:.0%}" in exploration.reason
    else:
        assert exploration.reason == "the limit of 20 measurements after the corners was reached"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_gaps_are_filled_until_the_models_can_be_told_apart(seed):
    exploration = StreamBedExploration(SPACE, seed=seed)
    drive(exploration, log_job(0.3, seed))
    steps = exploration.steps
    measured = Dataset.of(_Measured(s.budget, s.mst) for s in steps)
    assert shows_growth(measured) or len(steps) == 24
    for i, step in enumerate(steps):
        if step.suggested_by == "gap":
            slots = sorted({s.budget.task_slots for s in steps[:i]})
            _, low, high = max((b / a, a, b) for a, b in itertools.pairwise(slots))
            assert step.budget.task_slots == pytest.approx((low * high) ** 0.5, abs=1)
            assert low < step.budget.task_slots < high


def test_a_perfect_fit_does_not_end_by_rounding():
    exploration = StreamBedExploration(SPACE, seed=0, max_measurements=6)
    assert len(drive(exploration, log_job(0.0))) == 10
    assert "limit of 6" in exploration.reason


def test_each_step_holds_the_errors_of_all_measurements_so_far():
    exploration = StreamBedExploration(SPACE, seed=5)
    drive(exploration, log_job(0.05))
    assert exploration.steps[0].loocv == {}
    for n, step in enumerate(exploration.steps[1:], start=2):
        data = Dataset.of(_Measured(s.budget, s.mst) for s in exploration.steps[:n])
        assert step.loocv == {name: loocv_rmse(name, data) for name in REGRESSIONS}
        assert step.error == min(step.loocv.values())


@pytest.mark.slow
def test_a_budget_may_be_measured_again_without_a_warning(recwarn):
    # In a space of six budgets, ten measurements must repeat some, and no random point stands in for them.
    space = SearchSpace(min_slots=2, max_slots=4, memory_levels_mb=(1024, 2048))
    exploration = StreamBedExploration(space, seed=0, min_measurements=10)
    done = drive(exploration, log_job(0.01))
    assert len(set(done)) < len(done)
    assert not [w for w in recwarn if "evaluated at point" in str(w.message)]


def test_suggestions_are_plain_numbers_that_json_holds():
    exploration = StreamBedExploration(SPACE, seed=2)
    for budget in drive(exploration, log_job(0.03)):
        assert (type(budget.task_slots), type(budget.memory_mb)) == (int, float)


@pytest.mark.slow
def test_a_new_exploration_fed_the_same_goes_on():
    whole = StreamBedExploration(SPACE, seed=11, min_measurements=6)
    drive(whole, log_job(0.05))
    for stop in (1, 4, 5, 8, len(whole.steps)):
        resumed = StreamBedExploration(SPACE, seed=11, min_measurements=6)
        for step in whole.steps[:stop]:
            assert resumed.next() == step.budget
            resumed.observe(step.mst)
        assert resumed.next() == (whole.steps[stop].budget if stop < len(whole.steps) else None)
        assert resumed.steps == whole.steps[:stop]


def test_another_seed_explores_differently():
    first, second = (
        StreamBedExploration(SPACE, seed=1, min_measurements=6),
        StreamBedExploration(SPACE, seed=2, min_measurements=6),
    )
    assert drive(first, log_job(0.05)) != drive(second, log_job(0.05))


def test_next_repeats_itself_until_the_budget_is_observed():
    exploration = StreamBedExploration(SPACE, seed=0)
    assert exploration.next() == exploration.next() == SPACE.corners[0]
    assert exploration.reason == "still exploring, 0 measured"


def test_what_cannot_be_observed_is_refused():
    exploration = StreamBedExploration(SPACE, seed=0, min_measurements=1, max_measurements=1)
    for mst in (0.0, float("nan"), float("inf")):
        with pytest.raises(InvalidInput, match="finite and above 0"):
            exploration.observe(mst)
    drive(exploration, log_job(0.0))
    with pytest.raises(SluiceError, match="has ended"):
        exploration.observe(1.0)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"min_slots": 10, "max_slots": 9}, "min_slots <= max_slots must hold"),
        ({"memory_levels_mb": (2048, 1024)}, "must ascend without repeats"),
        ({"memory_levels_mb": (1024, 1024)}, "must ascend without repeats"),
        ({"memory_levels_mb": ()}, "at least 1 item"),
    ],
)
def test_an_impossible_space_cannot_be_built(fields, message):
    with pytest.raises(ValidationError, match=message):
        SearchSpace(**{"min_slots": 2, "max_slots": 9, "memory_levels_mb": (1024,), **fields})


def test_impossible_limits_are_refused():
    with pytest.raises(InvalidInput, match="min_measurements <= max_measurements must hold"):
        StreamBedExploration(SPACE, seed=0, min_measurements=5, max_measurements=4)


class _Measured:
    """A budget with its MST, as a data set takes them."""

    def __init__(self, budget: Budget, mst: float) -> None:
        self.memory_mb, self.task_slots, self.mst = budget.memory_mb, budget.task_slots, mst
