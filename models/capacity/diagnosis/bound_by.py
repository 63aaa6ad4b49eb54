"""The diagnosis: which vertex binds, by what cause, and what would lift it."""

from typing import Literal, Self

from pydantic import Field, model_validator

from models.schema import Format, Label, Positive
from models.wording import amount

Cause = Literal[
    "CPU",
    "hot key",
    "key groups",
    "state reads",
    "network",
    "max parallelism",
    "source partitions",
    "rate limit",
    "waiting",
    "unknown",
]


class RemedyEffect(Format):
    """What a remedy is computed to bring, if it changes one fact and all others stay."""

    change: str = Field(min_length=1, description="The fact that changes, in words.")
    rate_now: Positive = Field(description="Records/s at the sources at which the job is bound now.")
    rate_then: Positive = Field(description="The same then, at most: what is not among the facts may bind before.")
    then_bound_by: Label | None = Field(None, description="The vertex that binds then; null where it is unknown.")

    @property
    def gain(self) -> float:
        """Share by which the rate grows."""
        return self.rate_then / self.rate_now - 1


class BoundBy(Format):
    """What bounds a job."""

    vertex: Label | None = Field(description="The operator that saturates first; null where it is unknown.")
    cause: Cause = Field(
        description="CPU, hot key, key groups, state reads, network, max parallelism, source partitions, rate "
        "limit (of a sink or service), waiting or unknown."
    )
    also: tuple[Label, ...] = Field(
        (), description="Other operators that bind at about the same rate by the same cause."
    )
    sentence: str = Field(min_length=1, description="The same in words, with the figures that it rests on.")
    remedy: str | None = Field(description="What would lift it, in words; null where the cause is unknown.")
    effect: RemedyEffect | None = Field(None, description="What that brings; null where it cannot be computed.")
    no_effect_because: str | None = Field(
        None, description="Why the effect cannot be computed; null where it is given."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.cause == "unknown") != (self.remedy is None):
            raise ValueError(f"a remedy must be given for a known cause, and only there, but got {self.cause!r}")
        if (self.effect is None) != (self.no_effect_because is not None):
            raise ValueError("either an effect or why there is none must be given")
        return self

    @property
    def phrase(self) -> str:
        """Vertex and cause, as short as they can be."""
        return self.cause if self.vertex is None else f"{self.vertex}, {self.cause}"

    @property
    def title(self) -> str:
        """The same as the start of a paragraph."""
        return "bound by an unknown cause" if self.cause == "unknown" else f"bound by {self.phrase}"

    @property
    def effect_in_words(self) -> str:
        """What the remedy brings, or why that cannot be computed."""
        if self.effect is None:
            return f"effect not computed: {self.no_effect_because}"
        then = f", then bound by {self.effect.then_bound_by}" if self.effect.then_bound_by else ""
        return (
            f"{self.effect.change}: {amount(self.effect.rate_now)} -> up to {amount(self.effect.rate_then)} records/s "
            f"({self.effect.gain:+.0%}){then}"
        )
