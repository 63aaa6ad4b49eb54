"""Sizing: the task slots and memory that a target rate needs (StreamBed section 6, model usage)."""

from typing import Literal

from pydantic import Field

from models.capacity.doubt import why_wide
from models.capacity.exploration.question import HelpfulMeasurement
from models.capacity.observation import Budget
from models.capacity.sizing import Margin, SlotsInterval
from models.capacity.target import choose_budget
from models.cluster import Cluster, WorkerOffer
from models.objectives.outcome import PlanObjectives
from models.plan.parts import Interval
from models.planning.inputs import MeasuredCapacity, PlanningModel
from models.planning.resources import check_memory, fitting_memory, stateful_per_slot
from models.schema import SCHEMA_VERSION, Format, Positive, PositiveInt
from models.wording import amount


class Sizing(Format):
    """The budget that a rate needs, and the capacity model behind it."""

    schema_version: Literal[1] = SCHEMA_VERSION
    model: PlanningModel
    margin: Margin
    planned_rate: Positive = Field(
        description="What sources and scaling policies are planned for, records/s: the target rate times the headroom, or "
        "times 1.1 where a risk was named, or times what an outage needs if that is more; for a running job what its figures "
        "must allow for the target to be that sure."
    )
    budget: Budget
    slots: SlotsInterval = Field(description="The task slots, with the range that what is needed lies in.")
    task_slots_by_memory_mb: dict[float, PositiveInt] = Field(description="What each memory size would have needed.")
    slots_per_worker: PositiveInt = Field(description="Slots that share the memory of one TaskManager, as measured.")
    shared_slots: bool = Field(
        False,
        exclude_if=lambda shared: not shared,
        description="Whether tasks shared the slots that were measured as they do in the plan, so that a slot needs no more "
        "memory than it had; false: a slot held one task.",
    )
    reason: str
    would_help: HelpfulMeasurement | None = Field(
        None,
        exclude_if=lambda helpful: helpful is None,
        description="What would narrow the range most; null where nothing would, or nothing needs to.",
    )
    objectives: PlanObjectives | None = Field(
        None,
        exclude_if=lambda objectives: objectives is None,
        description="Those that the request states, as the budget meets them; the price is added when workers are known.",
    )


def size(
    capacity: MeasuredCapacity,
    model: PlanningModel,
    cluster: Cluster | WorkerOffer,
    rate: float,
    margin: Margin,
    memory_mb: float | None = None,
) -> Sizing:
    """The least memory whose task slots are about the fewest, and that number of slots.

    Args:
        rate: target, records/s at the sources together.
        memory_mb: the memory of a TaskManager to use; the best of those measured if absent.

    Raises:
        InvalidInput: the cluster's TaskManagers have less memory than was asked for.
        Infeasible: no memory size reaches the rate, or none fits the cluster.
    """
    if memory_mb is not None:
        check_memory(memory_mb, cluster)
    levels = capacity.memory_levels_mb if memory_mb is None else [memory_mb]
    fitting = fitting_memory(levels, capacity.slots_per_worker, cluster, stateful_per_slot(capacity.job))
    fewest = len(capacity.job.scaled_operators)
    choice = choose_budget(model.capacity, capacity.dataset, fitting, rate, margin, fewest)
    doubt = why_wide(model.capacity, choice.budget.memory_mb, choice.budget.task_slots)
    return Sizing(
        model=model,
        margin=margin,
        planned_rate=margin.sources_factor * rate,
        budget=choice.budget,
        slots=choice.slots,
        task_slots_by_memory_mb=choice.task_slots_by_memory_mb,
        slots_per_worker=capacity.slots_per_worker,
        reason=choice.reason + (f"; {doubt}" if doubt else ""),
    )


def shortfall(model: PlanningModel, budget: Budget, rate: float) -> str | None:
    """A remark where the interval of the predicted MST begins below the target rate; None where it does not."""
    predicted = predicted_mst(model, budget)
    if predicted.low >= rate:
        return None
    short = 1 - float(model.capacity.sustains(budget.memory_mb, budget.task_slots, rate)[0])
    return (
        f"the {predicted.probability:.0%} interval of the predicted MST begins at {amount(predicted.low)} records/s, below the "
        f"target of {rate:,.0f}: with a probability of {short:.1%}, by the capacity model, the plan does not sustain the "
        f"target; plan with a smaller risk, or measure more, to be surer"
    )


def predicted_mst(model: PlanningModel, budget: Budget) -> Interval:
    """The model's prediction with its interval."""
    return model.capacity.interval(budget.memory_mb, budget.task_slots)
