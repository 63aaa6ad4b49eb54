"""The differences of two plans are what a person would count."""

from typing import Any

from models.plan.changes import MemoryChange, ParallelismChange, PlacementChange
from models.plan.content import Plan
from models.plan.differences import difference, placement_changes, same_deployment


def changed(plan: Plan, **changes: Any) -> Plan:
    return Plan.model_validate(plan.model_dump(mode="json") | changes)


def operators(plan: Plan, name: str, **changes: Any) -> list[dict[str, Any]]:
    return [o.model_dump() | (changes if o.name == name else {}) for o in plan.operators]


def test_difference_counts_tasks_memory_and_moves(first: Plan, second: Plan) -> None:
    more_memory = changed(second, operators=operators(second, "window", managed_memory_mb=512.0))
    change = difference(first, more_memory)
    assert change.from_version == 1
    assert change.parallelism == (
        ParallelismChange(operator="window", before=30, after=38),
        ParallelismChange(operator="sink", before=2, after=3),
    )
    assert change.managed_memory == (MemoryChange(operator="window", before_mb=256, after_mb=512),)
    assert (change.task_slots_before, change.task_slots_after) == (32, 41)
    # tm-9 gains 2 windows, tm-10 four, tm-11 two windows and two sinks, tm-12 one sink; tm-9 loses its two sinks
    assert (change.tasks_moved, change.tasks_stopped) == (11, 2)


def test_placement_changes_name_every_worker_that_starts_or_stops_tasks(first: Plan, second: Plan) -> None:
    moves = placement_changes(first, second)
    assert moves == (
        PlacementChange(worker="tm-9", operator="window", before=2, after=4),
        PlacementChange(worker="tm-10", operator="window", before=0, after=4),
        PlacementChange(worker="tm-11", operator="window", before=0, after=2),
        PlacementChange(worker="tm-9", operator="sink", before=2, after=0),
        PlacementChange(worker="tm-11", operator="sink", before=0, after=2),
        PlacementChange(worker="tm-12", operator="sink", before=0, after=1),
    )
    change = difference(first, second)
    assert sum(max(0, m.after - m.before) for m in moves) == change.tasks_moved
    assert sum(max(0, m.before - m.after) for m in moves) == change.tasks_stopped


def test_a_plan_differs_from_itself_in_nothing(first: Plan) -> None:
    change = difference(first, first)
    assert (change.parallelism, change.managed_memory, change.tasks_moved, change.tasks_stopped) == ((), (), 0, 0)
    assert placement_changes(first, first) == ()


def test_an_operator_that_comes_or_goes_counts_from_zero(first: Plan) -> None:
    renamed = changed(
        first,
        operators=[o.model_dump() | ({"name": "session"} if o.name == "window" else {}) for o in first.operators],
        placement={
            worker: {"session" if name == "window" else name: count for name, count in tasks.items()}
            for worker, tasks in first.placement.items()
        },
    )
    change = difference(first, renamed)
    assert [(c.operator, c.before, c.after) for c in change.parallelism] == [("window", 30, 0), ("session", 0, 30)]
    assert (change.tasks_moved, change.tasks_stopped) == (30, 30)


def test_predictions_lineage_and_order_are_not_deployed(first: Plan) -> None:
    reordered = {worker: first.placement[worker] for worker in reversed(first.placement)}
    other = changed(
        first,
        version=7,
        target_rate=1.0,
        headroom=2.0,
        reasons=["another"],
        placement=reordered,
        operators=operators(first, "window", predicted_busyness=0.1, reason="another"),
    )
    assert same_deployment(first, other)


def test_parallelism_memory_and_placement_are_deployed(first: Plan, second: Plan) -> None:
    swapped = {"tm-2": first.placement["tm-1"], "tm-1": first.placement["tm-2"]}
    assert not same_deployment(first, second)
    assert not same_deployment(first, changed(first, memory_mb=4096))
    assert not same_deployment(first, changed(first, operators=operators(first, "window", managed_memory_mb=1.0)))
    assert not same_deployment(first, changed(first, placement=first.placement | swapped))
    assert not same_deployment(first, changed(first, slots_per_worker=8))
