"""The objectives that a plan may be asked to meet."""

from decimal import Decimal
from typing import Final, Literal, Self

from pydantic import Field, model_validator

from models.resources.price import UsdPerHourInAll, in_words
from models.schema import Format, NonNegative, Positive

ObjectiveKind = Literal["rate", "lag", "recovery", "price"]
"""The rate is that of the request; the others are stated as objectives."""
SizingKind = Literal["rate", "lag", "recovery"]
"""Those that need task slots."""

LEAST_LAG_S: Final = 5.0
"""The twin reports once in so many seconds, and tells no shorter lags apart."""
MOST_S: Final = 7 * 86400.0
"""Longest duration of an objective, seconds."""


class LagObjective(Format):
    """Most time that a share of the records may wait in the log before a source reads them."""

    share: float = Field(ge=0.5, le=0.9999, description="Share of the records that wait no longer; 0.99 for p99.")
    limit_s: float = Field(ge=LEAST_LAG_S, le=MOST_S, description="How long they may wait, seconds.")

    @property
    def text(self) -> str:
        """As it may be written."""
        return f"lag {self.name} < {seconds_in_words(self.limit_s)}"

    @property
    def name(self) -> str:
        """Such as p99."""
        return f"p{round(100 * self.share, 2):g}"


class RecoveryObjective(Format):
    """How soon the lag of an outage must be read."""

    outage_s: Positive = Field(le=MOST_S, description="How long nothing is read, seconds.")
    within_s: Positive = Field(
        le=MOST_S, description="Time from the end of the outage until the lag that it left is read, seconds."
    )
    restart_s: NonNegative = Field(
        0.0,
        le=MOST_S,
        description="What the job takes to read again after the outage, seconds; 0: the outage lasts until it does.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.restart_s >= self.within_s:
            raise ValueError(
                f"the restart must be shorter than the time to recover in, but got a restart of "
                f"{seconds_in_words(self.restart_s)} and {seconds_in_words(self.within_s)}"
            )
        return self

    @property
    def text(self) -> str:
        """As it may be written."""
        restart = f" with {seconds_in_words(self.restart_s)} restart" if self.restart_s else ""
        return f"recover {seconds_in_words(self.outage_s)} outage in {seconds_in_words(self.within_s)}{restart}"


class PriceObjective(Format):
    """Most that the TaskManagers of a plan may cost."""

    usd_per_hour: UsdPerHourInAll = Field(description="Of all TaskManagers that run tasks, USD.")

    @property
    def text(self) -> str:
        """As it may be written."""
        return f"at most {in_words(self.usd_per_hour)} $/h"


class Objectives(Format):
    """One or more objectives, of each kind at most one."""

    lag: LagObjective | None = Field(None, description="Of the records; null if none is stated.")
    recovery: RecoveryObjective | None = Field(None, description="From an outage; null if none is stated.")
    price: PriceObjective | None = Field(None, description="Of the TaskManagers; null if none is stated.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.stated:
            raise ValueError("at least one of 'lag', 'recovery' and 'price' must be given")
        return self

    @property
    def stated(self) -> tuple[LagObjective | RecoveryObjective | PriceObjective, ...]:
        """Those that are given."""
        return tuple(one for one in (self.lag, self.recovery, self.price) if one is not None)

    @property
    def text(self) -> str:
        """As they may be written."""
        return ", ".join(one.text for one in self.stated)

    @property
    def most_usd_per_hour(self) -> Decimal | None:
        """The price limit; None without one."""
        return None if self.price is None else self.price.usd_per_hour


def seconds_in_words(seconds: float) -> str:
    """With the largest unit that gives a whole number, or seconds."""
    for unit, length in (("h", 3600), ("min", 60)):
        if seconds >= length and seconds % length == 0:
            return f"{seconds / length:g} {unit}"
    return f"{seconds:g} s"
