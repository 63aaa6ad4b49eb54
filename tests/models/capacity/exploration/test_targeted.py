"""The exploration for a target rate, against jobs whose answer is known."""

from collections.abc import Callable

import numpy as np
import pytest

from models.capacity.exploration.question import SizingQuestion, answer, most_helpful
from models.capacity.exploration.space import ExplorationStep, SearchSpace, dataset_of
from models.capacity.exploration.suggesting import MeasuringTime
from models.capacity.exploration.targeted import TargetedExploration
from models.capacity.observation import Budget
from models.capacity.sizing import Margin, SlotsInterval
from models.errors import InvalidInput

SPACE = SearchSpace(min_slots=2, max_slots=48, memory_levels_mb=(8192, 65536))
TIME = MeasuringTime(search_s=645, deployment_s=135)
Job = Callable[[Budget], float]


def job(exponent: float, noise: float = 0.02, seed: int = 0) -> Job:
    """100,000 n^exponent records/s."""
    rng = np.random.default_rng(seed)
    return lambda b: float(1e5 * b.task_slots**exponent * np.exp(noise * rng.normal()))


def exploring(rate: float, precision: float = 0.25, **fields: int) -> TargetedExploration:
    question = SizingQuestion(rate, Margin(risk=0.1), SPACE.memory_levels_mb, SPACE.min_slots, precision)
    return TargetedExploration(SPACE, 7, question, TIME, **fields)


def drive(exploration: TargetedExploration, measured: Job) -> list[Budget]:
    done = []
    while (budget := exploration.next()) is not None:
        done.append(budget)
        exploration.observe(measured(budget))
    return done


@pytest.mark.slow
def test_it_ends_as_soon_as_the_answer_is_precise() -> None:
    exploration = exploring(3e6)
    done = drive(exploration, job(1.0))
    assert done[:4] == list(SPACE.corners)
    slots = exploration.steps[-1].slots_needed
    assert slots is not None and slots.high is not None
    assert slots.low <= 30 <= slots.high, "the truth"
    assert (slots.high - slots.low) / 2 <= 0.25 * slots.value
    assert exploration.reason == f"{slots.text} for 3,000,000 records/s, 90% sure: within 25%"
    assert exploration.would_help is None
    wide = [s.slots_needed for s in exploration.steps[:-1] if s.slots_needed is not None]
    assert all(s.high is None or (s.high - s.low) / 2 > 0.25 * s.value for s in wide), "never later than needed"
    assert len(done) <= 8


@pytest.mark.slow
def test_a_wider_precision_needs_fewer_measurements() -> None:
    assert len(drive(exploring(3e6, precision=1.0), job(1.0))) < len(drive(exploring(3e6, precision=0.08), job(1.0)))


@pytest.fixture(scope="module")
def out_of_reach() -> TargetedExploration:
    """For a rate that takes 300 slots."""
    exploration = exploring(3e7)
    drive(exploration, job(1.0))
    return exploration


@pytest.mark.slow
def test_it_ends_where_nothing_in_reach_helps_and_says_what_would(out_of_reach: TargetedExploration) -> None:
    exploration = out_of_reach
    found, helpful = exploration.answer, exploration.would_help
    assert found is not None and helpful is not None
    assert found.slots is not None and found.slots.low <= 300 <= (found.slots.high or 300)
    assert "no measurement of up to 48 slots is expected to narrow the interval by 2%" in exploration.reason
    assert helpful.budget.task_slots > 48, "beyond the testbed"
    assert helpful.ratio_after < helpful.ratio_now
    assert f"measuring {helpful.budget.task_slots} slots" in exploration.reason


@pytest.mark.slow
def test_it_ends_where_no_number_of_slots_comes_near_the_rate() -> None:
    """A million slots take a thousandth of it: after the three gaps nothing more is measured."""
    exploration = exploring(1e14)
    drive(exploration, job(1.0))
    assert [s.suggested_by for s in exploration.steps] == ["corner"] * 4 + ["gap"] * 3
    assert exploration.would_help is None
    assert exploration.reason == (
        "no measurement of up to 48 slots is expected to narrow the interval by 2%; no number of slots is sure enough yet "
        "for 100,000,000,000,000 records/s, 90% sure; no single measurement is expected to narrow it much"
    )


@pytest.mark.slow
def test_the_advice_holds_when_it_is_followed(out_of_reach: TargetedExploration) -> None:
    helpful = out_of_reach.would_help
    assert helpful is not None
    measured = [(s.budget, s.mst) for s in out_of_reach.steps]
    followed = [*measured, (helpful.budget, job(1.0, seed=1)(helpful.budget))]
    question = SizingQuestion(3e7, Margin(risk=0.1), SPACE.memory_levels_mb, SPACE.min_slots, 0.25)
    before, after = (answer(question, dataset_of(rows)).narrowing.log_width for rows in (measured, followed))
    # One outcome of many around the expected one.
    assert np.log(helpful.ratio_after) / 2 < after < before


@pytest.mark.slow
def test_it_ends_at_its_limit() -> None:
    exploration = exploring(3e7, max_measurements=4)
    assert len(drive(exploration, job(0.7))) == 8
    assert exploration.reason.startswith("the limit of 4 measurements after the corners was reached; ")
    assert [s.suggested_by for s in exploration.steps] == ["corner"] * 4 + ["gap"] * 3 + ["target"]


@pytest.mark.slow
def test_gaps_between_the_corners_are_filled_first() -> None:
    exploration = exploring(3e6, precision=1.0)
    drive(exploration, job(1.0))
    # t is 1 to 47: sqrt(47) is 6.9, sqrt(7 * 47) 18.1, sqrt(7) 2.6; the ratios left are 3, 2.3, 2.6 and 2.6.
    assert [s.budget.task_slots for s in exploration.steps] == [2, 48, 2, 48, 8, 4, 19]
    assert [s.budget.memory_mb for s in exploration.steps[4:]] == [65536, 8192, 65536]
    assert exploration.reason.endswith("within 100%"), "the answer was precise before"


@pytest.mark.slow
@pytest.mark.parametrize(("most", "filled"), [(5, []), (6, [3]), (16, [5]), (17, [5])])
def test_a_gap_is_filled_where_the_mst_may_grow_more_than_fourfold(most: int, filled: list[int]) -> None:
    space = SearchSpace(min_slots=2, max_slots=most, memory_levels_mb=(8192, 65536))
    question = SizingQuestion(3e5, Margin(risk=0.1), space.memory_levels_mb, 2, 1.0)
    exploration = TargetedExploration(space, 7, question, TIME)
    drive(exploration, job(1.0))
    assert [s.budget.task_slots for s in exploration.steps if s.suggested_by == "gap"] == filled


@pytest.mark.slow
def test_a_new_exploration_fed_the_same_continues() -> None:
    whole = exploring(3e7, max_measurements=3, kept_back=1)
    done = drive(whole, job(0.7))
    resumed = exploring(3e7, max_measurements=3, kept_back=1)
    for step, budget in zip(whole.steps, done, strict=False):
        assert resumed.next() == step.budget == budget
        resumed.observe(step.mst)
    assert resumed.steps == whole.steps
    assert resumed.next() == done[-1]
    assert resumed.keeps_back


@pytest.mark.slow
def test_other_budgets_than_the_suggested_ones_are_taken() -> None:
    exploration = exploring(3e7)
    for budget in SPACE.corners:
        exploration.observe(job(1.0)(budget))
    other = Budget(task_slots=20, memory_mb=8192)
    exploration.observe(2e6, instead=other)
    assert exploration.steps[-1].budget == other
    with pytest.raises(InvalidInput, match="must lie in the search space"):
        exploration.observe(2e6, instead=Budget(task_slots=49, memory_mb=8192))


@pytest.mark.slow
def test_observations_are_kept_back_in_gaps() -> None:
    exploration = exploring(3e6, kept_back=3)
    done = drive(exploration, job(1.0))
    kept = done[len(exploration.steps) :]
    assert len(kept) == 3
    assert not {b.task_slots for b in kept} & {s.budget.task_slots for s in exploration.steps}


def test_an_mst_that_falls_ends_it_with_what_to_measure() -> None:
    exploration = exploring(3e6, kept_back=0)
    assert len(drive(exploration, job(-1.0))) == 7
    assert [s.suggested_by for s in exploration.steps[4:]] == ["gap"] * 3
    assert "the MST falls as task slots are added" in exploration.reason
    assert exploration.answer is None and exploration.would_help is None


def test_a_space_of_one_budget_ends() -> None:
    space = SearchSpace(min_slots=4, max_slots=4, memory_levels_mb=(8192,))
    question = SizingQuestion(1e6, Margin(risk=0.1), (8192,), 4, 0.25)
    exploration = TargetedExploration(space, 0, question, TIME)
    assert len(drive(exploration, job(1.0))) == 4
    assert "must differ in task slots" in exploration.reason


def test_the_most_helpful_measurement_is_the_smallest_that_halves_the_interval() -> None:
    measured = [(b, job(1.0)(b)) for b in SPACE.corners]
    found = answer(SizingQuestion(3e7, Margin(risk=0.1), (65536,), 2, 0.25), dataset_of(measured))
    helpful = most_helpful(found, 48)
    assert helpful is not None
    now = found.narrowing.log_width
    for slots in (24, 48, 96, 192, 384):
        width = found.narrowing.expected(Budget(task_slots=slots, memory_mb=65536))
        if slots < helpful.budget.task_slots:
            assert width > now / 2
    assert np.log(helpful.ratio_after) <= now / 2
    assert "halve the interval" in helpful.text


def test_the_interval_in_words() -> None:
    assert SlotsInterval(value=1205, low=934, high=1630).text == "1,205 slots (934 to 1,630)"
    assert SlotsInterval(value=1205, low=934, high=None).text == "1,205 slots (934 to any number)"


def test_steps_of_earlier_versions_are_read_and_written_unchanged() -> None:
    old = {
        "budget": {"task_slots": 2, "memory_mb": 8192.0},
        "mst": 1.0,
        "loocv": {},
        "suggested_by": "corner",
    }
    assert ExplorationStep.model_validate(old).model_dump(mode="json") == old
