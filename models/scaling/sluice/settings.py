"""The settings of Sluice's own policy."""

from pydantic import Field

from models.capacity.surrogates import Surrogate
from models.schema import Format, NonNegative, Positive, PositiveInt, Ratio


class CapacityModel(Format):
    """A job's approved capacity model, which corrects linear scaling."""

    surrogate: Surrogate = Field(description="MST by memory of a TaskManager and task slots without sources.")
    memory_mb: Positive = Field(description="Memory of a TaskManager that the job runs on, MiB.")


class SluiceSettings(Format):
    """Settings of the policy `sluice`."""

    interval_s: Positive = Field(30.0, description="Time between two decisions.")
    horizon_s: Positive = Field(600.0, description="How far ahead deployments are compared.")
    forecast_step_s: Positive = Field(60.0, description="Time over which the rate is averaged for the forecast.")
    forecast_memory_s: Positive = Field(3600.0, description="How far back the forecast looks.")
    forecast_probability: float = Field(
        0.5, gt=0, lt=1, description="Probability of the interval around the forecast, whose ends count as quartiles."
    )
    metrics_memory_s: Positive = Field(
        300.0, description="Time constant of forgetting past work; longer than windows that fire in bursts."
    )
    capacity_memory_s: Positive = Field(
        7200.0, description="Time constant of forgetting the attained share of the even capacity."
    )
    warm_up_s: NonNegative = Field(
        60.0, description="Time after a start whose metrics are ignored, since the code is cold."
    )
    attainable_share: Ratio = Field(
        0.95,
        gt=0,
        description="Share of the even capacity that skew and bursts leave, until it is measured or modelled.",
    )
    late_s: NonNegative = Field(1.0, description="A record that waits longer in the log is late.")
    late_price: Positive = Field(
        1.6, description="Price of a second of late records at the mean rate, in task-seconds of the mean need."
    )
    task_budget: Positive = Field(
        1.22,
        description="Mean tasks over those that an even load needs; the price of late records is adapted to reach it.",
    )
    budget_memory_s: Positive = Field(3600.0, description="Time constant of forgetting past tasks for that mean.")
    patience_s: Positive = Field(120.0, description="Waiting time that doubles the cost of a late record.")
    correction_s: NonNegative = Field(
        180.0, description="Time after which a predicted overload is assumed to be corrected by a later rescale."
    )
    least_gain: Ratio = Field(0.1, description="Share of the expected costs that a rescale must save.")
    restart_s: NonNegative = Field(40.0, description="Assumed downtime of a rescale, until one is measured.")
    cooldown_s: NonNegative = Field(90.0, description="Time after a start before the next rescale.")
    memory_levels_mb: tuple[Positive, ...] = Field(
        (), description="Managed memory that a task may have, MiB, ascending; empty: memory is not changed."
    )
    least_hit_rate: Ratio = Field(0.8, description="Hit rate below which an operator lacks memory (Justin section 5).")
    most_state_latency_s: NonNegative = Field(
        1e-3, description="Latency above which an operator lacks memory (Justin section 5)."
    )
    capacity_model: CapacityModel | None = Field(
        None, description="The job's approved capacity model, if there is one."
    )
    largest_parallelism: PositiveInt = Field(32768, description="Most tasks of an operator without a limit of its own.")
