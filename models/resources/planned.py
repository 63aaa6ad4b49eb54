"""The TaskManagers of a plan: cores, memory and price, of each and in all."""

from decimal import Decimal
from typing import Literal

from pydantic import Field, model_validator

from models.resources.price import UsdPerHourInAll
from models.schema import Format, Name, Positive, PositiveInt


class Price(Format):
    """The price of a plan's TaskManagers."""

    currency: Literal["USD"] = Field("USD", description="US dollars.")
    per_hour: UsdPerHourInAll = Field(description="Of all TaskManagers that run tasks.")
    low: UsdPerHourInAll | None = Field(
        description="Of the fewest that hold the low end of `slots_needed` and the sources; null where workers differ."
    )
    high: UsdPerHourInAll | None = Field(
        description="With as many as hold the high end; null where no number does, where there are too few, or where "
        "workers differ."
    )

    @model_validator(mode="after")
    def _check(self) -> "Price":
        low, high = self.per_hour if self.low is None else self.low, self.per_hour if self.high is None else self.high
        if not low <= self.per_hour <= high:
            raise ValueError(f"low <= per_hour <= high must hold, but got ({low}, {self.per_hour}, {high})")
        return self


class Alternative(Format):
    """A worker kind that was offered, and what the plan takes of it."""

    kind: Name = Field(description="Worker kind of the cluster file.")
    slots: PositiveInt = Field(description="Of one worker.")
    cores: Positive | None = Field(description="Of one worker; null where the file states none.")
    memory_mb: Positive | None = Field(description="Of one worker, MiB; null where the file states none.")
    task_managers: PositiveInt | None = Field(description="Fewest that hold the plan; null where the kind cannot.")
    price_per_hour: UsdPerHourInAll | None = Field(description="Of these together, USD; null where unknown.")
    why_not: str | None = Field(None, description="Why the kind cannot hold the plan; null where it can.")


class PlanResources(Format):
    """The TaskManagers that run a plan's tasks."""

    task_managers: PositiveInt = Field(description="TaskManagers that run tasks.")
    kind: Name | None = Field(description="The worker kind that was picked; null where the cluster offers none.")
    slots: PositiveInt | None = Field(description="Of each; null where workers differ.")
    cores: Positive | None = Field(description="CPU cores of each; null where workers differ, or state none.")
    memory_mb: Positive = Field(description="Memory of each, MiB.")
    total_cores: Positive | None = Field(description="CPU cores of all; null where a worker states none.")
    total_memory_mb: Positive = Field(description="Memory of all, MiB.")
    price: Price | None = Field(description="Null where the cluster file states no price of a worker in use.")
    alternatives: tuple[Alternative, ...] = Field(
        (), description="All worker kinds that were offered, the cheapest first; empty where the workers were given."
    )

    @property
    def price_per_hour(self) -> Decimal | None:
        """USD for all TaskManagers."""
        return None if self.price is None else self.price.per_hour
