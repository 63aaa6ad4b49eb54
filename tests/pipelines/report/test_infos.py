"""What the figures say, before anything is drawn."""

from dataclasses import replace
from typing import get_args

import pytest

from models.capacity.diagnosis.bound_by import BoundBy, Cause
from models.capacity.observation import Budget
from models.capacity.sizing import SlotsInterval
from models.plan.content import Plan
from pipelines.report import ReportSubject
from pipelines.report.capacity import OperatorCapacity, capacity_info
from pipelines.report.dataflow import dataflow_info
from pipelines.report.exploration import SYMBOLS, UNDIAGNOSED, exploration_figure, exploration_info
from pipelines.report.front import front_info
from pipelines.report.placement import PlacementInfo, WorkerInfo, placement_figure, placement_info
from pipelines.report.scaling_curve import curve_info


def test_operators_are_layered_from_the_sources(subject: ReportSubject) -> None:
    info = dataflow_info(subject)
    assert [(n.name, n.layer, n.place, n.parallelism) for n in info.nodes] == [
        ("source", 0, 0.0, 1),
        ("map", 1, 0.0, 3),
        ("sink", 2, 0.0, 1),
    ]


def test_a_forward_edge_between_unequal_parallelism_shows_as_rebalance(subject: ReportSubject) -> None:
    assert dataflow_info(subject).edges == (("source", "map", "rebalance"), ("map", "sink", "rebalance"))


def test_capacity_is_tasks_times_true_rate(subject: ReportSubject) -> None:
    assert capacity_info(subject) == (
        OperatorCapacity("source", demand=200, capacity=400),
        OperatorCapacity("map", demand=200, capacity=300),
        OperatorCapacity("sink", demand=200, capacity=250),
    )


def test_the_curve_reaches_beyond_the_plan_and_holds_every_measurement(subject: ReportSubject) -> None:
    info = curve_info(subject)
    assert (info.curve[0].task_slots, info.curve[-1].task_slots) == (2, 5)
    assert len(info.measured) == 5
    assert info.planned_rate == pytest.approx(220)
    # The line through the mean (3 slots, 202 records/s) with slope 2 * 200 / 4 = 100 per slot.
    assert [p.mst for p in info.curve] == pytest.approx([102, 202, 302, 402])
    assert all(p.low < p.mst < p.high for p in info.curve)


def test_the_curve_marks_the_slots_that_its_model_counts(subject: ReportSubject) -> None:
    """Of a plan's 4 tasks, Flink's chains may have added one; its MST was predicted for the other 3."""
    scaling = subject.scaling.model_copy(update={"budget": Budget(task_slots=3, memory_mb=1024)})
    assert (subject.plan.task_slots, curve_info(replace(subject, scaling=scaling)).planned_task_slots) == (4, 3)


def test_every_slot_shows_its_task_and_loads_are_shares_of_their_limits(subject: ReportSubject) -> None:
    info = placement_info(subject)
    first, second = info.workers
    assert first.slots == ("source", "map", "map", None)
    assert second.slots == ("map", "sink", None, None)
    # CPU: the source's task takes 2 cores, each map's 2/3, the sink's 2; the mean is 3, four slots hold at most 16/3.
    limit = 3 + 0.2 * (16 / 3 - 3)
    assert first.cpu == pytest.approx((2 + 4 / 3) / limit)
    assert second.cpu == pytest.approx((2 / 3 + 2) / limit)
    assert (first.io, second.io) == (0, 0)
    # Network: at most 40 kB/s, of which 0.4 is allowed. A third of the source's 20 leaves tm-1, and all of its maps'.
    assert first.net == pytest.approx((20 / 3 + 40 / 3) / 16)
    assert second.net == pytest.approx(0)
    assert info.limited == {"cpu": True, "io": False, "net": True}
    assert (info.before, info.before_version) == ((), None)
    assert not any(first.started)


def test_before_and_after_show_what_started(subject: ReportSubject, previous: Plan) -> None:
    info = placement_info(replace(subject, previous=previous))
    assert info.before_version == 1
    assert [w.slots for w in info.before] == [("source", "map", None, None), ("map", "sink", None, None)]
    assert [w.started for w in info.workers] == [(False, False, True, False), (False,) * 4]
    # Two tasks of the map would carry 1 core each at the new rate, three carry 2/3.
    limit = 3 + 0.2 * (16 / 3 - 3)
    assert [w.cpu for w in info.before] == pytest.approx([3 / limit, 3 / limit])


def test_tasks_of_workers_and_operators_that_are_gone_do_not_break_the_picture(
    subject: ReportSubject, previous: Plan
) -> None:
    placement = {"gone": {"source": 1}, "tm-1": {"map": 1}, "tm-2": {"map": 1, "old": 1}}
    operators = (*previous.operators[:2], previous.operators[2].model_copy(update={"name": "old"}))
    before = previous.model_copy(update={"placement": placement, "operators": operators})
    info = placement_info(replace(subject, previous=before))
    assert info.operators == ("source", "map", "sink", "old")
    assert info.before[1].slots == ("map", "old", None, None)
    assert info.workers[0].started == (True, False, True, False)


def test_workers_that_look_alike_before_and_after_are_one_row_of_the_picture() -> None:
    def worker(number: int, slots: tuple[str | None, ...], cpu: float = 0.5) -> WorkerInfo:
        return WorkerInfo(f"tm-{number}", slots, (False,) * len(slots), cpu=cpu, io=0, net=0)

    after = tuple(worker(n, ("map", "map") if n <= 100 else ("sink", None)) for n in range(1, 129))
    limited = {"cpu": True, "io": False, "net": False}
    figure = placement_figure(PlacementInfo(("map", "sink"), after, limited, version=1))
    assert figure.data[0].y == ("tm-1 to tm-100 (100)", "tm-101 to tm-128 (28)")
    assert figure.data[0].customdata == (["map", "map"], ["sink", "free"])
    # Ten of the hundred ran something else before, one of them with more load.
    before = tuple(
        worker(n, ("sink", None) if n > 90 else ("map", None), 0.7 if n == 95 else 0.5) for n in range(1, 129)
    )
    figure = placement_figure(
        PlacementInfo(("map", "sink"), after, limited, version=2, before=before, before_version=1)
    )
    rows = ("tm-1 to tm-90 (90)", "tm-91 and 8 more", "tm-95", "tm-101 to tm-128 (28)")
    assert {trace.y for trace in figure.data if trace.y and trace.y[0] is not None} == {rows}


def test_the_front_is_shown_with_the_plan_and_ten_seeds_of_both_baselines(subject: ReportSubject) -> None:
    info = front_info(subject, search_s=60)  # compiling the kernels may take longer than the usual limit
    assert info.chosen == subject.plan.cost
    assert (info.exact, info.note) == (True, "exact")
    assert [(b.policy, b.seed) for b in info.baselines] == [(p, s) for p in ("default", "evenly") for s in range(10)]
    for b in info.baselines:
        assert any(all(getattr(c, d) <= getattr(b.cost, d) + 1e-9 for d in ("cpu", "io", "net")) for c in info.front)
    # Best in CPU: source and a map against sink and two maps, 10/3 of at most 16/3 where 3 is even.
    assert info.front[0].cpu == pytest.approx((10 / 3 - 3) / (16 / 3 - 3))


def test_a_front_that_was_cut_short_says_so(subject: ReportSubject) -> None:
    info = front_info(subject, search_s=1e-9)
    assert not info.exact
    assert "better points may exist" in info.note


def test_the_interval_of_the_slots_is_drawn_where_it_was_asked_for(subject: ReportSubject) -> None:
    assert [trace.name for trace in exploration_figure(exploration_info(subject)).data][-2:] == ["linear", "log"]
    found = SlotsInterval(value=12, low=9, high=None)
    last = subject.exploration.steps[-1].model_copy(update={"slots_needed": found})
    steps = (*subject.exploration.steps[:-1], last)
    explored = subject.exploration.model_copy(update={"steps": steps})
    lines = exploration_figure(exploration_info(replace(subject, exploration=explored))).data[-3:]
    at = len(steps) - 1
    assert [(line.name, line.x, line.y) for line in lines] == [
        ("lower end", (at,), (9,)),
        ("task slots", (at,), (12,)),
        ("upper end", (at,), (None,)),
    ]


def test_a_measurement_has_the_symbol_of_what_bounded_it(subject: ReportSubject) -> None:
    plain = exploration_figure(exploration_info(subject)).data
    assert plain[0].marker.symbol == ("circle-open",) * 5, "nothing is known of what bounded them"
    assert not [trace.name for trace in plain if "bound" in trace.name]

    def bound(cause: Cause) -> BoundBy:
        return BoundBy(
            vertex="map",
            cause=cause,
            sentence="Made for tests.",
            remedy="more slots",
            no_effect_because="made for tests",
        )

    causes: list[Cause] = ["CPU", "hot key", "CPU", "hot key", "waiting"]
    seen = [
        o.model_copy(update={"bound_by": bound(c)})
        for o, c in zip(subject.exploration.observations, causes, strict=True)
    ]
    explored = subject.exploration.model_copy(update={"observations": tuple(seen)})
    traces = exploration_figure(exploration_info(replace(subject, exploration=explored))).data
    assert traces[0].marker.symbol == ("circle", "star", "circle", "star", "cross")
    assert traces[0].customdata[1] == "corner, bound by map, hot key"
    legend = [(t.name, t.marker.symbol) for t in traces[1:4]]
    assert legend == [("bound by CPU", "circle"), ("bound by hot key", "star"), ("bound by waiting", "cross")]


def test_every_cause_has_a_symbol_of_its_own() -> None:
    assert set(SYMBOLS) == set(get_args(Cause))
    assert len({*SYMBOLS.values(), UNDIAGNOSED}) == len(SYMBOLS) + 1


def test_the_history_follows_the_steps(subject: ReportSubject) -> None:
    info = exploration_info(subject)
    assert [(s.index, s.task_slots, s.mst, s.suggested_by) for s in info[:3]] == [
        (0, 2, 100.0, "corner"),
        (1, 4, 300.0, "corner"),
        (2, 2, 110.0, "bayesian"),
    ]
    assert info[0].loocv == {}
