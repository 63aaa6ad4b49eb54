"""The tasks of a plan whose operators are chained, and the MST that is predicted for them."""

from collections.abc import Callable

import pytest

from models.planning.budget import Sizing
from models.planning.inputs import MeasuredOperators
from models.planning.parallelism import scale


def test_tasks_that_only_chaining_adds_take_no_more_records(
    chained: Callable[..., MeasuredOperators], twenty_slots: Sizing
) -> None:
    """20 slots as they were measured take 1,200 records/s; 13 more tasks of the sink, which one could do, add nothing."""
    scaling = scale(chained(), twenty_slots, 1000.0, "bids2")
    assert scaling.parallelism == {"source": 1, "map": 5, "count": 14, "sink": 14}
    assert (scaling.budget.task_slots, scaling.slots) == (20, 34)
    assert scaling.predicted_mst.value == pytest.approx(20 * 60)
    assert any("would take 1,400 records/s; the model expects 1,200 (86%)" in reason for reason in scaling.reasons)


def test_the_same_is_predicted_where_the_jobs_file_states_the_chain(
    chained: Callable[..., MeasuredOperators], twenty_slots: Sizing
) -> None:
    """At 1,400 records/s count is 14 tasks' work and the sink one more, in 15 threads of both."""
    scaling = scale(chained(vertices=[{"operators": ["count", "sink"]}]), twenty_slots, 1000.0, "bids2")
    assert scaling.parallelism == {"source": 1, "map": 5, "count": 15, "sink": 15}
    assert (scaling.budget.task_slots, scaling.predicted_mst.value) == (20, pytest.approx(20 * 60))
