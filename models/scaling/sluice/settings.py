"""The knobs of Sluice's own policy."""

from pydantic import Field

from models.capacity.growth.capacity_model import CapacityModel
from models.schema import Format, NonNegative, Positive, PositiveInt, Ratio


class ChampionModel(Format):
    """A champion of the capacity models, for what linear scaling does not know."""

    model: CapacityModel = Field(description="MST by memory of a TaskManager and task slots without sources.")
    memory_mb: Positive = Field(description="Memory of a TaskManager that the job runs on, MiB.")


class SluiceSettings(Format):
    """Settings of the policy `sluice`."""

    interval_s: Positive = Field(30.0, description="Between two decisions.")
    horizon_s: Positive = Field(600.0, description="How far ahead deployments are compared.")
    forecast_step_s: Positive = Field(60.0, description="Over which the rate is averaged for the forecast.")
    forecast_memory_s: Positive = Field(3600.0, description="How far back the forecast looks.")
    forecast_probability: float = Field(
        0.5, gt=0, lt=1, description="Of the interval around the forecast: its ends count as quartiles."
    )
    metrics_memory_s: Positive = Field(
        300.0, description="Over which the work of the past is forgotten: longer than windows that fire in bursts."
    )
    capacity_memory_s: Positive = Field(
        7200.0, description="Over which it is forgotten what share of the even capacity was attained."
    )
    warm_up_s: NonNegative = Field(60.0, description="After a start: metrics of fresh code are left out.")
    attainable_share: Ratio = Field(
        0.95, gt=0, description="Share of the even capacity that skew and bursts leave, until it is seen or modelled."
    )
    late_s: NonNegative = Field(1.0, description="A record that waits longer in the log is late.")
    late_price: Positive = Field(
        1.6, description="What a second of late records at the mean rate is worth, in task-seconds of the mean need."
    )
    task_budget: Positive = Field(
        1.22, description="Tasks over those that an even load needs, mean over time, that the price is adapted to."
    )
    budget_memory_s: Positive = Field(3600.0, description="Over which tasks that were paid for are forgotten.")
    patience_s: Positive = Field(120.0, description="Waiting that doubles what a late record costs.")
    correction_s: NonNegative = Field(
        180.0, description="How long an overload lasts before it is taken to be mended by a later rescale."
    )
    least_gain: Ratio = Field(0.1, description="Of the expected costs that a rescale must save.")
    restart_s: NonNegative = Field(40.0, description="Downtime of a rescale, until one was measured.")
    cooldown_s: NonNegative = Field(90.0, description="After a start, before the next rescale.")
    memory_levels_mb: tuple[Positive, ...] = Field(
        (), description="Managed memory that a task may have, MiB, ascending; empty: memory is left as it is."
    )
    least_hit_rate: Ratio = Field(0.8, description="Below, an operator lacks memory (Justin section 5).")
    most_state_latency_s: NonNegative = Field(1e-3, description="Above, an operator lacks memory (Justin section 5).")
    capacity_model: ChampionModel | None = Field(None, description="The job's champion, where there is one.")
    largest_parallelism: PositiveInt = Field(32768, description="Most tasks of an operator without a limit of its own.")
