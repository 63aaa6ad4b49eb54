"""The settings of Sluice's own policy."""

from typing import Literal

from pydantic import Field

from models.capacity.growth.capacity_model import CapacityModel
from models.metrics import SAMPLE_INTERVAL_S
from models.schema import Format, NonNegative, Positive, PositiveInt, Ratio

Element = Literal["trend", "season", "errors", "corrections", "lag", "learning", "key-groups", "downtime", "pace"]
"""trend, season: candidates of the forecast. errors: its past errors; without them the forecast counts as certain.
corrections: later rescales looked ahead. lag: the present rate from the growth of the lag. learning: the share of the even
capacity that is attained. key-groups: the busiest task has the most key groups. downtime, pace: that of a rescale, and how
soon another can follow, are learned."""


class ChampionModel(Format):
    """A job's approved capacity model, which corrects linear scaling."""

    model: CapacityModel = Field(description="MST by memory of a TaskManager and task slots without sources.")
    memory_mb: Positive = Field(description="Memory of a TaskManager that the job runs on, MiB.")


class SluiceSettings(Format):
    """Settings of the policy `sluice`."""

    objective_s: Positive = Field(10.0, description="A record that waits longer than this in the log is late.")
    attainment: float = Field(0.99, ge=0.5, lt=1, description="Share of the records that must not be late.")
    least_between_s: NonNegative = Field(
        60.0, description="Shortest time from the end of a rescale to the next one, seconds."
    )
    interval_s: float = Field(
        10.0, gt=0, multiple_of=SAMPLE_INTERVAL_S, description="Time between two decisions, seconds."
    )
    restart_s: NonNegative = Field(
        30.0, description="Downtime of a rescale that is assumed until one was measured, seconds."
    )
    memory_levels_mb: tuple[Positive, ...] = Field(
        (), description="Managed memory that a task may have, MiB, ascending; empty: memory is not changed."
    )
    least_hit_rate: Ratio = Field(0.8, description="Hit rate below which an operator lacks memory (Justin section 5).")
    most_state_latency_s: NonNegative = Field(
        1e-3, description="Latency above which an operator lacks memory (Justin section 5)."
    )
    capacity_model: ChampionModel | None = Field(
        None, description="The job's approved capacity model, if there is one."
    )
    largest_parallelism: PositiveInt = Field(32768, description="Most tasks of an operator without a limit of its own.")
    without: frozenset[Element] = Field(
        frozenset(), description="Elements of the policy that are switched off, to see what each is worth."
    )

    def uses(self, element: Element) -> bool:
        """Whether this element of the policy is not switched off."""
        return element not in self.without
