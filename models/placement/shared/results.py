"""Results of placing shared slots."""

from typing import Literal

from pydantic import Field

from models.placement.results import Tuning
from models.plan.parts import CostVector, Placement
from models.plan.slots import SlotBundle
from models.schema import Format, Name

SharedPolicy = Literal["caps", "default", "evenly", "tasks"]


class SharedPlacement(Format):
    """The slots of each worker, and what they cost."""

    policy: SharedPolicy = Field(description="What placed the slots.")
    mix: Name = Field(
        description="Which tasks share a slot: 'nested' as in Flink by default, 'round-robin' as with "
        "`taskmanager.load-balance.mode: TASKS`, 'by-load-...' heavy tasks apart, or 'free' as the search without a mix found."
    )
    placement: Placement = Field(description="Worker -> operator -> number of its tasks there.")
    slots: dict[str, tuple[SlotBundle, ...]] = Field(description="Worker -> its slots that hold tasks.")
    cost: CostVector = Field(description="C of Eq. 4, on a scale that is the same for all mixes.")
    tuning: Tuning | None = Field(
        None, description="Of 'caps': the thresholds, with the proof for all placements of slots of this mix."
    )
    least: CostVector | None = Field(
        None, description="Of 'caps', proved: no mix and no placement costs less in any dimension."
    )
    best_of_every_mix: bool | None = Field(
        None,
        description="Of 'caps': whether it is proved that no mix has a plan with smaller thresholds, or one that is better "
        "in one cost and worse in none; false where it is proved for this mix at most.",
    )
