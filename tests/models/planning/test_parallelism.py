"""The tasks of a plan whose operators are chained, and the MST that is predicted for them."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from known_answers.capacity_laws import line
from models.planning.budget import Budget, Sizing
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


def test_an_operator_that_may_have_no_more_tasks_is_not_said_to_have_headroom(
    chained: Callable[..., MeasuredOperators], twenty_slots: Sizing
) -> None:
    """For 1,250 records/s count would need 13 tasks, but has 12 key groups; map needs 5 for which it has no limit."""
    few = twenty_slots.model_copy(update={"budget": Budget(task_slots=15, memory_mb=1024)})
    reasons = scale(chained(key_groups=12), few, 1000.0, "ds2").operator_reasons
    assert reasons["count"].endswith("one task takes 100 records/s; as many as it may have, which leaves less headroom")
    assert reasons["map"].endswith("one task takes 280 records/s; with headroom")


def test_sources_that_read_less_than_the_predicted_mst_are_named(
    chained: Callable[..., MeasuredOperators], twenty_slots: Sizing
) -> None:
    """20 slots of 150 records/s take 3,000; one task of the source reads 2,000, which is enough for 1,250."""
    faster = twenty_slots.model_copy(update={"model": twenty_slots.model.model_copy(update={"capacity": line(150.0)})})
    scaling = scale(chained(), faster, 1000.0, "bids2")
    assert (scaling.parallelism["source"], scaling.predicted_mst.value) == (1, pytest.approx(3000))
    assert scaling.reasons[-1] == (
        "1 task of source reads its share of at most 2,000 records/s, though the operators after it are expected to take "
        "3,000; 2 would read that"
    )
    # With one partition a second task would read nothing.
    job = chained().job
    source, *others = job.operators
    one = job.model_copy(update={"operators": (source.model_copy(update={"max_parallelism": 1}), *others)})
    scaling = scale(replace(chained(), job=one), faster, 1000.0, "bids2")
    assert (scaling.parallelism["source"], scaling.predicted_mst.value) == (1, pytest.approx(2000))
    assert scaling.unlimited_mst is None
    assert not any("would read that" in reason for reason in scaling.reasons)
