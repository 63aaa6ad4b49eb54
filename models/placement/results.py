"""Results of placing and tuning: the plan, its cost, and how far it is proved."""

from typing import Any, Literal

from pydantic import Field

from models.plan.parts import CostVector, Placement
from models.schema import Format, NonNegative, Positive, Ratio

Status = Literal["optimal", "feasible", "unknown"]
"""optimal: proved that no plan is better; feasible: a plan within the thresholds; unknown: a plan that exceeds them,
while a plan within them is neither found nor excluded."""
Policy = Literal["caps", "default", "evenly", "random", "odrp"]
Subtasks = dict[str, dict[str, tuple[int, ...]]]
"""Worker -> operator -> indices of its subtasks there, from 0."""


LEFT_OUT: Any = Field(
    {},
    description="Dimensions that no placement can make a bottleneck, so that the tuning left them out of the relaxation, "
    "with the load of the worst worker there can be, as a share of its capacity.",
)


class Answer(Format):
    """Fields of every search result."""

    status: Status
    bound: NonNegative | None = Field(
        description="Proved: no plan meets all single minima (at least the floor) relaxed by a smaller factor. None "
        "where there is no objective, or nothing is proved."
    )
    gap: Ratio | None = Field(description="1 - bound / factor reached; 0 is optimal, None where there is no bound.")
    nodes: int = Field(ge=0, description="Nodes of search trees visited.")
    seconds: NonNegative | None = Field(description="By the clock that was passed in; None without one.")


class Tuning(Answer):
    """The smallest thresholds that a plan meets (CAPSys section 5.2), and the plan that meets them."""

    single: CostVector = Field(description="alpha*: smallest cost found in each dimension alone (phase 1).")
    single_bound: CostVector = Field(description="Proved lower bounds of these.")
    single_proved: dict[str, bool] = Field(description="Whether each minimum is proved, by dimension.")
    floor: Positive = Field(description="Phase 2 relaxes from max(alpha*, floor).")
    relaxation: NonNegative = Field(description="lambda*: smallest common factor on max(alpha*, floor) found.")
    grid_relaxation: Positive = Field(description="The first power of the relaxation step that reaches lambda*.")
    thresholds: CostVector = Field(
        description="lambda* max(alpha*, floor), at most 1 (phase 2); 1 in the dimensions that are left out."
    )
    left_out: dict[str, Ratio] = LEFT_OUT
    placement: Placement
    cost: CostVector = Field(description="Of the placement: tightened in cpu, then io, then net within the thresholds.")
    pareto_proved: bool = Field(
        description="Whether it is proved that no plan is better in one cost and worse in none."
    )
    subtasks: Subtasks | None = Field(
        None, description="Which subtasks run where, so that forward pairs meet; None where no edge is forward."
    )


class PlacementResult(Answer):
    """A placement and what it costs."""

    policy: Policy
    placement: Placement
    cost: CostVector
    thresholds: CostVector = Field(description="Largest cost requested in each dimension; 1 excludes nothing.")
    left_out: dict[str, Ratio] = LEFT_OUT
    subtasks: Subtasks | None = Field(
        None, description="Which subtasks run where, so that forward pairs meet; None where no edge is forward."
    )
