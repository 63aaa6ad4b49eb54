"""Tables that people read."""

import io
from pathlib import Path

from rich.console import Console

from models.capacity.diagnosis.bound_by import BoundBy, RemedyEffect
from models.plan.changes import PlacementChange
from models.plan.content import Plan
from models.plan.parts import SlotsNeeded
from pipelines.terminal.plan_tables import _moves_by_operator, plan_view

DATA = Path(__file__).parents[2] / "data" / "plans"
BOUND = BoundBy(
    vertex="join",
    cause="hot key",
    sentence="its fullest task is full",
    remedy="another key",
    effect=RemedyEffect(change="even shares", rate_now=1000, rate_then=2500, then_bound_by="sink"),
)


def shown(plan: Plan) -> str:
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(plan_view(plan))
    return console.export_text()


def test_a_plan_says_what_bounds_it_and_what_would_lift_it() -> None:
    plan = Plan.model_validate_json((DATA / "nexmark-q5-v1.json").read_text())
    assert "bound by" not in shown(plan)  # of a version before
    lines = shown(plan.model_copy(update={"bound_by": BOUND})).splitlines()
    assert "bound by join, hot key: its fullest task is full" in [line.rstrip() for line in lines]
    lifted = "to lift it: another key; even shares: 1,000 -> up to 2,500 records/s (+150%), then bound by sink"
    assert lifted in [line.rstrip() for line in lines]
    unknown = BoundBy(vertex=None, cause="unknown", sentence="no task is busy", remedy=None, no_effect_because="so")
    text = shown(plan.model_copy(update={"bound_by": unknown}))
    assert "bound by an unknown cause: no task is busy" in text and "to lift it" not in text


def test_task_slots_above_those_needed_are_explained() -> None:
    plan = Plan.model_validate_json((DATA / "nexmark-q5-v1.json").read_text())
    slots = plan.task_slots
    enough = plan.model_copy(update={"slots_needed": SlotsNeeded(low=slots - 1, high=slots)})
    assert f"{slots} task slots (needed: {slots - 1} to {slots} with 95% probability)" in shown(enough)
    more = plan.model_copy(update={"slots_needed": SlotsNeeded(low=slots - 2, high=slots - 1)})
    assert "probability; the others are added by chains, which need equal tasks, or by the policy)" in shown(more)


def test_many_moves_are_summed_by_operator() -> None:
    moves = [
        PlacementChange(worker="tm-1", operator="window", before=4, after=1),
        PlacementChange(worker="tm-2", operator="window", before=0, after=2),
        PlacementChange(worker="tm-3", operator="window", before=1, after=2),
        PlacementChange(worker="tm-3", operator="sink", before=1, after=0),
    ]
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(_moves_by_operator(moves))
    rows = [line.split() for line in console.export_text().splitlines()]
    assert ["window", "3", "2", "3", "1"] in rows
    assert ["sink", "0", "0", "1", "1"] in rows
