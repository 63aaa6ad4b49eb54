"""Sizing: the task slots and memory that a target rate needs (StreamBed section 6, model usage)."""

from typing import Literal

from pydantic import Field

from models.capacity.observation import Budget
from models.capacity.surrogates import prediction_band
from models.capacity.target import choose_budget
from models.cluster import Cluster
from models.plan import Interval
from models.planning.inputs import MeasuredCapacity, PlanningModel
from models.planning.resources import fitting_memory
from models.schema import SCHEMA_VERSION, Format, Positive, PositiveInt

PROBABILITY = 0.95
"""Probability of the interval around the predicted MST."""


class Sizing(Format):
    """The budget that a rate needs, and the capacity model behind it."""

    schema_version: Literal[1] = SCHEMA_VERSION
    model: PlanningModel
    planned_rate: Positive = Field(
        description="Headroom times the target rate, records/s; the rest of the plan is made for it."
    )
    budget: Budget
    task_slots_by_memory_mb: dict[float, PositiveInt] = Field(
        description="Task slots that each memory size would need."
    )
    slots_per_worker: PositiveInt = Field(description="Slots that share the memory of one TaskManager, as measured.")
    reason: str


def size(
    capacity: MeasuredCapacity,
    model: PlanningModel,
    cluster: Cluster,
    rate: float,
    headroom: float,
    memory_mb: float | None = None,
) -> Sizing:
    """The least memory whose task slots are about the fewest, and that number of slots, for `headroom` x `rate`.

    Args:
        rate: target, records/s at the sources together.
        memory_mb: the memory of a TaskManager to use; the best of those measured if absent.

    Raises:
        Infeasible: no memory size reaches the rate, or none fits the cluster.
    """
    levels = capacity.memory_levels_mb if memory_mb is None else [memory_mb]
    fitting = fitting_memory(levels, capacity.slots_per_worker, cluster)
    fewest = len(capacity.job.scaled_operators)
    choice = choose_budget(model.surrogate, capacity.dataset, fitting, rate, headroom, fewest)
    return Sizing(
        model=model,
        planned_rate=headroom * rate,
        budget=choice.budget,
        task_slots_by_memory_mb=choice.task_slots_by_memory_mb,
        slots_per_worker=capacity.slots_per_worker,
        reason=choice.reason,
    )


def predicted_mst(model: PlanningModel, capacity: MeasuredCapacity, budget: Budget) -> Interval:
    """The model's prediction, with the interval width that follows from the present observations."""
    value = float(model.surrogate.predict(budget.memory_mb, budget.task_slots))
    _, low, high = prediction_band(
        model.surrogate.name, capacity.dataset, budget.memory_mb, budget.task_slots, PROBABILITY
    )
    half = float(high - low) / 2
    return Interval(value=max(0.0, value), low=max(0.0, value - half), high=value + half, probability=PROBABILITY)
