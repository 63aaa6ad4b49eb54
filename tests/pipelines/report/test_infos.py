"""What the figures say, before anything is drawn."""

import pytest

from pipelines.report import Subject
from pipelines.report.capacity import OperatorCapacity, capacity_info
from pipelines.report.dataflow import dataflow_info
from pipelines.report.exploration import exploration_info
from pipelines.report.placement import placement_info
from pipelines.report.scaling_curve import curve_info


def test_operators_are_layered_from_the_sources(subject: Subject) -> None:
    info = dataflow_info(subject)
    assert [(n.name, n.layer, n.place, n.parallelism) for n in info.nodes] == [
        ("source", 0, 0.0, 1),
        ("map", 1, 0.0, 3),
        ("sink", 2, 0.0, 1),
    ]


def test_a_forward_edge_between_unequal_parallelism_shows_as_rebalance(subject: Subject) -> None:
    assert dataflow_info(subject).edges == (("source", "map", "rebalance"), ("map", "sink", "rebalance"))


def test_capacity_is_tasks_times_true_rate(subject: Subject) -> None:
    assert capacity_info(subject) == (
        OperatorCapacity("source", demand=200, capacity=400),
        OperatorCapacity("map", demand=200, capacity=300),
        OperatorCapacity("sink", demand=200, capacity=250),
    )


def test_the_curve_reaches_beyond_the_plan_and_holds_every_measurement(subject: Subject) -> None:
    info = curve_info(subject)
    assert (info.curve[0].task_slots, info.curve[-1].task_slots) == (2, 5)
    assert len(info.measured) == 5
    assert info.planned_rate == pytest.approx(220)
    # The line through the mean (3 slots, 202 records/s) with slope 2 * 200 / 4 = 100 per slot.
    assert [p.mst for p in info.curve] == pytest.approx([102, 202, 302, 402])
    assert all(p.low < p.mst < p.high for p in info.curve)


def test_every_slot_shows_its_task_and_loads_are_relative_to_the_busiest_worker(subject: Subject) -> None:
    first, second = placement_info(subject).workers
    assert first.slots == ("source", "map", "map", None)
    assert second.slots == ("map", "sink", None, None)
    # CPU: the source's task takes 2 cores, each map's 2/3, the sink's 2.
    assert first.cpu == pytest.approx(1.0)
    assert second.cpu == pytest.approx((2 / 3 + 2) / (2 + 4 / 3))
    assert (first.io, second.io) == (0, 0)


def test_the_history_follows_the_steps(subject: Subject) -> None:
    info = exploration_info(subject)
    assert [(s.index, s.task_slots, s.mst, s.suggested_by) for s in info[:3]] == [
        (0, 2, 100.0, "corner"),
        (1, 4, 300.0, "corner"),
        (2, 2, 110.0, "bayesian"),
    ]
    assert info[0].loocv == {}
