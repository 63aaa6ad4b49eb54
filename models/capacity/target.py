"""From a target rate to a budget: which memory, and how many task slots (StreamBed section 6, model usage).

Inside the range that was measured a model smooths what it was fitted to. Where that says that some number of slots does, and
a measurement said that it does not, the measurement counts: more are taken.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from models.capacity.growth.capacity_model import CapacityModel
from models.capacity.growth.dataset import Dataset
from models.capacity.observation import Budget
from models.capacity.sizing import Margin, SlotsInterval, slots_interval
from models.errors import Infeasible, InvalidInput

SLOTS_WORTH_MEMORY: Final = 0.01
"""More memory is taken only where it saves more than this share of the task slots: less is within what measurements
of the same configuration differ by (StreamBed sees under 1 % between the profiles of q5)."""


@dataclass(frozen=True)
class BudgetChoice:
    """The budget chosen, what the other memory sizes would have needed, and why."""

    budget: Budget
    slots: SlotsInterval
    """Its task slots, with the range that what is needed lies in."""
    task_slots_by_memory_mb: dict[float, int]
    reason: str


def choose_budget(
    model: CapacityModel,
    measured: Dataset,
    memory_levels_mb: Sequence[float],
    rate: float,
    margin: Margin,
    fewest_task_slots: int,
) -> BudgetChoice:
    """The least memory whose number of task slots is within 1 % of the fewest.

    Args:
        measured: what the model was fitted to, and what else is known.
        memory_levels_mb: TaskManager memory sizes that may be used, MiB.
        rate: target, records/s at the sources together.
        fewest_task_slots: one for each operator but the sources.

    Raises:
        Infeasible: no memory size reaches the rate.
    """
    if not memory_levels_mb:
        raise InvalidInput("at least one TaskManager memory size must be given")
    short = {m: most_that_fell_short(measured, m, margin.factor * rate) for m in memory_levels_mb}
    needed: dict[float, SlotsInterval] = {}
    refusals: list[str] = []
    for memory_mb in sorted(memory_levels_mb):
        try:
            minimum = max(fewest_task_slots, 1 + short[memory_mb])
            needed[memory_mb] = slots_interval(model, memory_mb, rate, margin, minimum)
        except Infeasible as refusal:
            refusals.append(str(refusal))
    if not needed:
        raise Infeasible(refusals[0])
    slots = {m: s.value for m, s in needed.items()}
    fewest = min(slots.values())
    memory_mb = min(m for m, s in slots.items() if s <= fewest * (1 + SLOTS_WORTH_MEMORY))
    others = ", ".join(f"{s} with {m:,.0f} MiB" for m, s in slots.items() if m != memory_mb)
    reason = (
        f"the {model.name} model needs {slots[memory_mb]} task slots with {memory_mb:,.0f} MiB per TaskManager for "
        f"{margin.of(rate)}" + (f" (else {others})" if others else "")
    )
    if slots[memory_mb] == 1 + short[memory_mb] > fewest_task_slots:
        reason += f"; {short[memory_mb]} were measured, and took less"
    return BudgetChoice(Budget(task_slots=slots[memory_mb], memory_mb=memory_mb), needed[memory_mb], slots, reason)


def most_that_fell_short(measured: Dataset, memory_mb: float, target: float) -> int:
    """The most task slots whose MST was measured below the target with this memory, while as many or fewer never reached it;
    0 if there are none.

    Args:
        target: records/s.
    """
    at = measured.memory_mb == memory_mb
    reached = measured.task_slots[at & (measured.mst >= target)]
    fewest_that_reached = np.min(reached, initial=np.inf)
    short = measured.task_slots[at & (measured.mst < target)]
    return int(np.max(short[short < fewest_that_reached], initial=0))
