"""The answer to how many slots a rate needs, and what would help, where the rate is out of reach."""

from models.capacity.exploration.question import SizingQuestion, answer, most_helpful, would_help
from models.capacity.exploration.space import dataset_of
from models.capacity.observation import Budget
from models.capacity.sizing import Margin

ROWS = [(Budget(task_slots=n, memory_mb=8192), 1e5 * n) for n in (2, 8, 48)]


def test_nothing_helps_where_no_number_of_slots_comes_near_the_rate() -> None:
    """100,000 records/s a slot: the 1,000,000 slots that are looked at take 1e11 records/s, a thousandth of what is asked."""
    question = SizingQuestion(1e14, Margin(risk=0.1), (8192,), 2, 0.25)
    found = answer(question, dataset_of(ROWS))
    assert (found.slots, found.narrowing.log_width) == (None, 0.0)
    assert found.text == "no number of slots is sure enough yet"
    assert most_helpful(found, 48) is None
    assert would_help(question, dataset_of(ROWS)) is None


def test_a_rate_that_many_slots_take_is_worth_a_measurement() -> None:
    """30,000,000 records/s are 300 slots, of which 48 were measured."""
    helpful = would_help(SizingQuestion(3e7, Margin(risk=0.1), (8192,), 2, 0.01), dataset_of(ROWS))
    assert helpful is not None and helpful.ratio_after < helpful.ratio_now
