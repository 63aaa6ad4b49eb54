"""The limits of an autopilot, and the reasons for which it does not act."""

from datetime import time
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from models.schema import SCHEMA_VERSION, Format, NonNegative, Positive, PositiveInt

Limit = Literal[
    "stopped",
    "lease",
    "stale",
    "partial",
    "restarting",
    "checkpoints",
    "freeze",
    "person",
    "back-off",
    "interval",
    "rescales-a-day",
    "bounds",
    "memory",
    "resource",
]
"""What held an action back.

stopped          someone has stopped the autopilot
lease            another autopilot has taken over the job
stale            metrics are older than `stale_after_s`, or Flink does not answer
partial          metrics of some tasks, the lag or its growth are missing
restarting       not all tasks of the job run, they have run for too short a time, or some have read all of their input
checkpoints      the last checkpoints failed, so a rescale would go back far or could not take a savepoint
freeze           a freeze window is open
person           someone else rescaled the job, which is respected for `respect_s`
back-off         the last rescales failed or were rolled back
interval         the last rescale is less than `least_between_s` ago
rescales-a-day   `rescales_a_day` are used up
bounds           nothing is left of the recommendation within tasks, slots and price
memory           managed memory alone would change, which a running Flink cannot be asked for
resource         the job's FlinkDeployment cannot be read or scaled in place, or the operator is still at work on it
"""

DAY_S: Final = 86_400.0


def _time_as_text(value: object) -> object:
    # YAML reads 22:00 without quotes as a number to the base 60, and pydantic would take it for seconds.
    if not isinstance(value, str | time):
        raise ValueError(f"it must be a time of the day in quotes, such as '22:00', but got {value!r}")
    return value


def _without_zone(value: time) -> time:
    if value.tzinfo is not None:
        raise ValueError(
            f"it must be in UTC, without a time zone, such as '{value:%H:%M}', but got '{value.isoformat('minutes')}'"
        )
    return value


TimeOfDay = Annotated[time, BeforeValidator(_time_as_text), AfterValidator(_without_zone)]


class FreezeWindow(Format):
    """A time of the day in which nothing is rescaled, UTC; it may pass midnight."""

    begin: TimeOfDay = Field(description="Begin, UTC.")
    end: TimeOfDay = Field(description="End, UTC.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.begin == self.end:
            raise ValueError(f"a freeze window must end at another time than it begins, but got {self.begin} twice")
        return self

    def holds(self, at: time) -> bool:
        """Whether it is open at this time of the day, UTC."""
        if self.begin < self.end:
            return self.begin <= at < self.end
        return at >= self.begin or at < self.end

    def __str__(self) -> str:
        return f"{self.begin:%H:%M}-{self.end:%H:%M} UTC"


class ControlLimits(Format):
    """What an autopilot may do at most."""

    schema_version: Literal[1] = Field(SCHEMA_VERSION, description="Version of this format.")
    least_tasks: PositiveInt = Field(1, description="Fewest tasks of a vertex.")
    most_tasks: PositiveInt | None = Field(None, description="Most tasks of a vertex.")
    most_slots: PositiveInt | None = Field(
        None, description="Most task slots of the job; those of the cluster if null."
    )
    price_per_slot_hour: Positive | None = Field(None, description="Price of a task slot, USD per hour.")
    dollars_per_hour: Positive | None = Field(None, description="Most that the job's slots may cost, USD per hour.")
    rescales_a_day: PositiveInt | None = Field(
        None, description="Most rescales in 24 hours, rolled-back ones included."
    )
    least_between_s: NonNegative = Field(60.0, description="Shortest time from one rescale to the next, seconds.")
    freeze: tuple[FreezeWindow, ...] = Field((), description="When nothing is rescaled.")
    stale_after_s: Positive = Field(45.0, description="Age of metrics from which nothing is decided by them, seconds.")
    settle_s: NonNegative = Field(20.0, description="Time after a start whose metrics are not decided by, seconds.")
    failed_checkpoints: PositiveInt = Field(
        2, description="Failed checkpoints in a row from which nothing is rescaled."
    )
    checkpoint_s: Positive = Field(
        300.0, description="Time after which a checkpoint that has not ended counts as failed, seconds."
    )
    respect_s: NonNegative = Field(3600.0, description="How long a rescale by someone else is respected, seconds.")
    judge_s: NonNegative = Field(
        60.0, description="How long the job runs after a rescale before it is judged whether it does worse, seconds."
    )
    back_off_s: Positive = Field(
        120.0, description="Wait after a rescale that failed or was rolled back; doubled with each in a row, seconds."
    )
    most_back_off_s: Positive = Field(3600.0, description="Longest such wait, seconds.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.most_tasks is not None and self.most_tasks < self.least_tasks:
            raise ValueError(
                f"least_tasks <= most_tasks must hold, but got {self.least_tasks} and {self.most_tasks}; change one of them"
            )
        if self.dollars_per_hour is not None and self.price_per_slot_hour is None:
            raise ValueError("dollars_per_hour needs price_per_slot_hour, the price of a task slot; give both")
        return self
