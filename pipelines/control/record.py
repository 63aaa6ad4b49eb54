"""The record of a decision of the autopilot. What is unknown is null."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from models.plan.parts import Placement
from models.scaling.control.limits import Limit
from models.schema import SCHEMA_VERSION, Format, Label, Name, NonNegative, Positive, PositiveInt, Ratio

Done = Literal["none", "dry-run", "held-back", "rescaled", "refused", "failed", "rolled-back"]
"""What was done about a recommendation.

none         nothing was recommended, or the policy was not asked (`held` says why)
dry-run      a rescale was due, and only recorded
held-back    a rescale was recommended; a limit kept it from being done (`held`)
rescaled     the job runs as was recommended, within the limits
refused      Flink or the cluster refused it, before anything was changed: no slots, no program to restart
failed       neither the wanted tasks nor the former ones run, or the autopilot was stopped before it had acted
rolled-back  the job did not come to run as wanted, or did worse; the former tasks run again
"""


Method = Literal["in-place", "restart", "resource"]
"""How: through Flink's resource requirements, by a savepoint and a restart, or through the job's FlinkDeployment."""


class SeenVertex(Format):
    """A vertex of the job in the interval before the decision. Rates are sums over its tasks."""

    id: str = Field(description="Flink's id of the vertex.")
    flink_name: Label = Field(description="Flink's name of the vertex.")
    tasks: PositiveInt = Field(description="Its tasks.")
    busyness: Ratio | None = Field(description="Mean share of time its tasks are busy.")
    max_busyness: Ratio | None = Field(description="The same of its busiest task.")
    backpressure: Ratio | None = Field(description="Mean share of time its tasks are backpressured.")
    observed_rate: NonNegative | None = Field(description="Records/s in; at a source, records/s read.")
    true_rate: NonNegative | None = Field(description="Records/s of useful time, of all its tasks (DS2 Eq. 1, 5).")


class SeenJob(Format):
    """What the autopilot saw of the job."""

    arriving_rate: NonNegative | None = Field(description="Records/s that came in at the sources together.")
    read_rate: NonNegative | None = Field(description="Records/s that the sources read.")
    lag_records: NonNegative | None = Field(description="Records that wait before the sources.")
    lag_s: NonNegative | None = Field(
        description="Lag over the rate read: how long catching up with nothing new takes."
    )
    tasks: PositiveInt | None = Field(description="Tasks of all vertices; null while the job has none.")
    slots: PositiveInt | None = Field(description="Task slots that the job takes.")
    slots_there: PositiveInt | None = Field(description="Task slots that it holds or that are free.")
    price_per_hour: NonNegative | None = Field(None, description="Price of the job's slots, USD per hour.")
    state_mb: NonNegative | None = Field(None, description="State in the last checkpoint, MiB.")
    staleness_s: NonNegative | None = Field(description="Age of the newest metrics.")
    interval_s: NonNegative | None = Field(description="Length of the interval that the rates are of.")
    vertices: dict[Name, SeenVertex] = Field(description="By the name that the policy knows; in topological order.")
    faults: tuple[str, ...] = Field((), description="What could not be read, in words.")


class PolicyAdvice(Format):
    """What the policy recommended."""

    reason: str = Field(description="Why, in words; also where it recommends nothing.")
    parallelism: dict[Name, PositiveInt] | None = Field(description="Tasks by vertex; null: leave the job as it is.")
    memory_mb: dict[Name, NonNegative] = Field(
        default_factory=dict, description="Managed memory of a task, MiB, where the policy changes it."
    )
    reasons: dict[Name, str] = Field(default_factory=dict, description="Why, for each vertex that changes.")


class PolicyOutlook(Format):
    """What a policy expects, where it forecasts."""

    horizon_s: Positive = Field(description="Time that the forecast is for, seconds from now.")
    low: NonNegative = Field(description="Lower end of the band of the mean arriving rate, records/s.")
    high: NonNegative = Field(description="Upper end of the band, records/s.")
    capacity: Positive | None = Field(None, description="Capacity of the tasks that run, records/s.")
    late_share: Ratio | None = Field(None, description="Share of records that were late so far.")
    late_allowed: Ratio | None = Field(None, description="Share of records that may be late: 1 - attainment.")


class RescaleTaken(Format):
    """A rescale that was tried or, in a dry run, would have been."""

    intent: PositiveInt | None = Field(description="Number of the intent that was stored before; null in a dry run.")
    method: Method = Field(
        description="In place: through Flink's resource requirements; resource: through the FlinkDeployment."
    )
    before: dict[Name, PositiveInt] = Field(description="Tasks by vertex.")
    after: dict[Name, PositiveInt] = Field(description="Tasks wanted within the limits, by vertex.")
    cut: str | None = Field(None, description="What the limits took from the recommendation, in words.")
    slots_after: PositiveInt | None = Field(None, description="Task slots with the wanted tasks.")
    price_after: NonNegative | None = Field(None, description="Price of these slots, USD per hour.")
    seconds: NonNegative | None = Field(None, description="From the request until all tasks ran as wanted.")
    downtime_s: NonNegative | None = Field(None, description="How long not all tasks ran.")
    flinks_rescale_s: NonNegative | None = Field(None, description="From Flink's own history of rescales (2.3).")
    placement: Placement | None = Field(
        None, description="TaskManager -> vertex -> tasks that the placement hook was to put there; null without it."
    )
    as_placed: bool | None = Field(None, description="Whether they run there; null where that was not seen.")
    not_placed: str | None = Field(None, description="Why there is a placement hook and it was not asked.")
    why: str | None = Field(None, description="Why it was refused, failed or rolled back.")
    resumed: bool = Field(False, description="Whether another process had begun it.")


class AutopilotDecision(Format):
    """One decision of the autopilot of one job."""

    schema_version: Literal[1] = Field(SCHEMA_VERSION, description="Version of this format.")
    job: Name = Field(description="Job, as the autopilot was named for it.")
    number: PositiveInt = Field(description="Counts the records of the job.")
    fence: PositiveInt = Field(description="Number of the lease under which it was taken; grows with each autopilot.")
    decided_at: datetime = Field(description="ISO 8601, UTC.")
    rounds: PositiveInt = Field(
        1, description="Rounds with the same outcome that the record stands for: quiet ones are stored once a minute."
    )
    flink_job: str | None = Field(description="Flink's id of the job; null while it is not found.")
    policy: str = Field(description="Name of the policy.")
    seen: SeenJob = Field(description="What was seen.")
    advice: PolicyAdvice | None = Field(description="Null where the policy was not asked.")
    outlook: PolicyOutlook | None = Field(None, description="Null where the policy forecasts nothing.")
    done: Done = Field(description="What was done.")
    held: Limit | None = Field(None, description="Which limit or guard held it back.")
    reason: str = Field(description="What was done and why, in one line.")
    someone_else_at: datetime | None = Field(
        None, description="When it was noticed that someone else had rescaled the job, while that is respected."
    )
    rescale: RescaleTaken | None = Field(None, description="Null where nothing was tried.")
    decision_s: NonNegative = Field(description="From the end of reading the metrics to the decision.")
