"""The parts of a plan."""

from pydantic import Field, model_validator

from models.schema import Format, Name, NonNegative, PositiveInt, Ratio
from models.vertices import JobVertex

Placement = dict[str, dict[str, PositiveInt]]
"""Worker -> operator -> number of its tasks there; workers without tasks are left out."""


class Interval(Format):
    """A prediction, and the range in which the true value lies with the stated probability."""

    value: NonNegative = Field(description="The prediction itself.")
    low: NonNegative = Field(description="Lower end of the range.")
    high: NonNegative = Field(description="Upper end of the range.")
    probability: Ratio = Field(0.95, description="Probability that the true value lies in the range.")

    @model_validator(mode="after")
    def _check(self) -> "Interval":
        if not self.low <= self.value <= self.high:
            raise ValueError(f"low <= value <= high must hold, but got ({self.low}, {self.value}, {self.high})")
        return self

    def at_most(self, limit: float) -> "Interval":
        """The interval with no part of it above the limit."""
        low, value, high = (min(one, limit) for one in (self.low, self.value, self.high))
        return Interval(value=value, low=low, high=high, probability=self.probability)


class SlotsNeeded(Format):
    """The range that the task slots needed for the target rate lie in with the stated probability."""

    low: PositiveInt = Field(description="Fewest that may do.")
    high: PositiveInt | None = Field(description="Fewest that do almost surely; null where no number does.")
    probability: Ratio = Field(0.95, description="Of what is needed lying in the range.")


class CostVector(Format):
    """C = [C_cpu, C_io, C_net] of a placement (CAPSys Eq. 4), or thresholds alpha on it (Eq. 9)."""

    cpu: NonNegative = Field(description="CPU; 0 is the best balance that any placement has, 1 the worst.")
    io: NonNegative = Field(description="State access, on the same scale.")
    net: NonNegative = Field(description="Network, on the same scale.")


class OperatorPlan(Format):
    """The deployment of one operator."""

    name: Name = Field(description="Operator of the job's dataflow.")
    parallelism: PositiveInt = Field(description="Number of its tasks.")
    managed_memory_mb: NonNegative = Field(description="Managed memory of one task, MiB; 0 where it keeps no state.")
    records_in_per_s: NonNegative = Field(description="Expected input of all its tasks at the target rate.")
    predicted_busyness: Ratio = Field(description="Expected mean busyness of its tasks at the target rate.")
    reason: str = Field(min_length=1, description="Why this many tasks, in words.")


class VertexPlan(JobVertex):
    """The deployment of one vertex."""

    parallelism: PositiveInt = Field(description="Number of its tasks, that of each of its operators.")
    managed_memory_mb: NonNegative = Field(
        description="Managed memory of one task, that of its operators together, MiB."
    )
    predicted_busyness: Ratio = Field(
        description="Expected mean busyness of its tasks at the target rate, that of its operators together."
    )


class Lineage(Format):
    """What the plan was made from; digests are SHA-256 of the canonical JSON, in hex."""

    run: str = Field(description="Pipeline run that made the plan.")
    trigger: str = Field(description="'plan', 'replan' or 'rollback'.")
    testbed: str = Field(description="Where the measurements come from: 'simulator' or 'recorded'.")
    model: str = Field(description="Capacity model: 'stacked' over all growth laws, or the law that was asked for.")
    model_uri: str | None = Field(None, description="Registered model and version, for example 'models:/nexmark-q5/3'.")
    policy: str = Field(description="What decided the parallelism: 'bids2', or a scaling policy.")
    policy_choice: str | None = Field(
        None, description="Workspace key of the evaluation's choice of that policy; null without one."
    )
    code_version: str = Field(description="Version of Sluice that made the plan.")
    seed: int = Field(description="Seed of all random choices in the run.")
    digests: dict[str, str] = Field(
        default_factory=dict, description="Of job, cluster, profile, observations, features, ..."
    )
