"""A running job compared with a plan."""

import pytest

from flink.server import word_count_plan
from flink_client.jobs.deployment import (
    AvailableTaskManager,
    RunningJob,
    RunningVertex,
    obstacle_to_placement,
    shared_as_planned,
    slots_needed,
)
from models.plan.content import PlanContent


def test_vertices_of_a_group_share_slots() -> None:
    """Flink needs as many slots as the widest vertex of each group has tasks."""
    vertices = [("a", 2, "shared"), ("b", 3, "shared"), ("c", 4, "own")]
    job = RunningJob(
        "j", "j", tuple(RunningVertex(n, n, tasks, 128, group, ("tm1",) * tasks) for n, tasks, group in vertices)
    )
    assert slots_needed(job, {}) == 3 + 4
    assert slots_needed(job, {"a": 5, "c": 1}) == 5 + 1


def test_a_vertex_that_is_done_needs_no_more_than_one_slot_to_start_again() -> None:
    events = RunningVertex("a", "a", 2, 128, "shared", ("tm1",) * 2)
    rules = RunningVertex("b", "b", 4, 128, "shared", ("tm1",) * 4, finished=frozenset({0, 1, 2, 3}))
    part = RunningVertex("b", "b", 4, 128, "shared", ("tm1",) * 4, finished=frozenset({0, 1, 2}))
    assert (rules.is_done, part.is_done) == (True, False)
    assert slots_needed(RunningJob("j", "j", (events, rules)), {}) == 2
    assert slots_needed(RunningJob("j", "j", (events, part)), {}) == 4


COSTS = ("managed_memory_mb", "predicted_busyness")
ROOM = tuple(AvailableTaskManager(name, 2, 900.0, 30.0) for name in ("tm1", "tm2"))


def shared_plan(slots: dict[str, list[tuple[list[str], int]]], groups: tuple[str, str] = ("default", "default")):
    """Word count with its source and flat map chained; `source` heads that chain."""
    placement: dict[str, dict[str, int]] = {}
    for worker, bundles in slots.items():
        own = placement.setdefault(worker, {})
        for heads, number in bundles:
            for name in [n for head in heads for n in (("source", "flatmap") if head == "source" else (head,))]:
                own[name] = own.get(name, 0) + number
    alone = word_count_plan(placement)
    tasks, wide = alone.parallelism, {}
    for group, head in zip(groups, ("source", "count"), strict=True):
        wide[group] = max(wide.get(group, 0), tasks[head])
    vertices = [
        {
            "operators": ops,
            "slot_sharing_group": g,
            "parallelism": tasks[ops[0]],
            "managed_memory_mb": 0,
            "predicted_busyness": 0.5,
        }
        for ops, g in ((["source", "flatmap"], groups[0]), (["count"], groups[1]))
    ]
    return PlanContent.model_validate(
        alone.model_dump()
        | {
            "vertices": vertices,
            "slots": {w: [{"vertices": v, "slots": n} for v, n in own] for w, own in slots.items()},
            "total_slots": sum(wide.values()),
        }
    )


def job_of(*vertices: tuple[str, str, int]) -> RunningJob:
    """A job with vertices (id, slot sharing group, tasks)."""
    return RunningJob(
        "j", "wordcount", tuple(RunningVertex(id_, id_, p, 128, group, ("tm1",) * p) for id_, group, p in vertices)
    )


CHAINED = {"source": "0", "flatmap": "0", "count": "1"}
SHARED = {"tm1": [(["source", "count"], 1)], "tm2": [(["source", "count"], 1), (["count"], 1)]}


@pytest.mark.parametrize(
    ("tasks", "same"),
    [
        ({"tm1": (2,), "tm2": (1, 2)}, True),
        ({"tm2": (2, 1), "tm1": (2,)}, True),
        ({"tm1": (1, 1), "tm2": (1, 2)}, False),
        ({"tm1": (2,), "tm2": (1, 1, 1)}, False),
        ({"tm1": (2,)}, False),
    ],
)
def test_slots_hold_as_many_tasks_as_planned(tasks, same) -> None:
    assert shared_as_planned(shared_plan(SHARED), job_of(("0", "s", 2), ("1", "s", 3)), tasks) is same
    # Where tasks of another vertex are is not in the plan.
    assert shared_as_planned(shared_plan(SHARED), job_of(("0", "s", 2), ("1", "s", 3), ("2", "s", 1)), tasks)


def test_slots_that_are_shared_as_planned_can_be_placed() -> None:
    assert obstacle_to_placement(shared_plan(SHARED), CHAINED, job_of(("0", "s", 2), ("1", "s", 3)), ROOM) is None


@pytest.mark.parametrize(
    ("slots", "groups", "vertices", "job", "obstacle"),
    [
        (
            SHARED,
            ("default", "default"),
            CHAINED,
            job_of(("0", "s", 2), ("1", "other", 3)),
            "lets these vertices share",
        ),
        (
            {"tm1": [(["source"], 1), (["count"], 1)]},
            ("a", "b"),
            CHAINED,
            job_of(("0", "s", 1), ("1", "s", 1)),
            "lets these vertices share slots: 0; but in the job they are: 0; 1",
        ),
        (
            SHARED,
            ("default", "default"),
            {"source": "0", "flatmap": "2", "count": "1"},
            job_of(("0", "s", 2), ("2", "s", 2), ("1", "s", 3)),
            "the plan chains source -> flatmap, but the job runs 'flatmap' in another vertex",
        ),
        (
            {"tm1": [(["source", "count"], 3)]},
            ("default", "default"),
            CHAINED,
            job_of(("0", "s", 3), ("1", "s", 3)),
            "puts 3 slots on 'tm1', which has 2 slots",
        ),
    ],
)
def test_what_keeps_shared_slots_from_being_placed_is_named(slots, groups, vertices, job, obstacle) -> None:
    found = obstacle_to_placement(shared_plan(slots, groups), vertices, job, ROOM)
    assert found is not None and obstacle in found


def test_a_plan_with_a_slot_for_each_task_is_not_placed_on_a_job_that_shares_them() -> None:
    plan = word_count_plan({"tm1": {"source": 1, "flatmap": 1}, "tm2": {"count": 1}})
    mapped = {"source": "0", "flatmap": "1", "count": "2"}
    found = obstacle_to_placement(plan, mapped, job_of(("0", "s", 1), ("1", "s", 1), ("2", "t", 1)), ROOM)
    assert found is not None and "state the job's vertices" in found
    assert obstacle_to_placement(plan, mapped, job_of(("0", "r", 1), ("1", "s", 1), ("2", "t", 1)), ROOM) is None
