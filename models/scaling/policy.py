"""What all scaling policies have in common: facts in, a recommendation and its reason out.

A policy is a state machine without a clock. Whoever drives it calls `observe` at the end of each of its intervals,
deploys what it recommends, and reports the rescale in the facts of the next call.
"""

from dataclasses import dataclass
from typing import Final, Protocol

from pydantic import Field

from models.scaling.rates import Rates
from models.schema import Format, NonNegative, PositiveInt


class Decision(Format):
    """What a policy wants deployed."""

    parallelism: dict[str, PositiveInt] = Field(description="Tasks of each operator; sources where theirs is known.")
    exact: dict[str, NonNegative] = Field(description="Tasks before rounding up, where the policy computed them.")
    memory_mb: dict[str, NonNegative] = Field(description="Managed memory of one task, MiB, where it is known.")
    reasons: dict[str, str] = Field(description="Why, in words, for each operator of `parallelism`.")


@dataclass(frozen=True)
class Rescaled:
    """A rescale that was done."""

    ended_s: float
    """When the job ran again, seconds since it was first deployed."""
    downtime_s: float
    """How long it read nothing."""
    state_mb: float
    """State that was saved and restored, MiB."""


_CLOCK_S: Final = 1e-6
"""Times closer than this are equal."""


@dataclass(frozen=True)
class Facts:
    """What a policy observes at the end of an interval."""

    time_s: float
    """Now, seconds since the job was first deployed."""
    interval_s: float
    """Length of the interval that the rates were measured over: the policy's own, or shorter after a rescale."""
    rates: Rates
    """Of the interval; true rates of operators that did no work in it are the last known ones."""
    last_rescale: Rescaled | None = None
    max_task_slots: int | None = None
    """Most tasks that the cluster takes, over all operators; None without a limit."""

    def began_within(self, seconds: float) -> bool:
        """Whether the interval began earlier than `seconds` after the job started, or started again."""
        started_s = self.last_rescale.ended_s if self.last_rescale else 0.0
        return self.time_s - self.interval_s < started_s + seconds - _CLOCK_S


@dataclass(frozen=True)
class Recommendation:
    """What to do now."""

    deploy: Decision | None
    """None: leave the job as it is."""
    reason: str
    """One sentence for the person who asks why."""


class Policy(Protocol):
    """A scaling policy. While the job restarts it is not called."""

    @property
    def name(self) -> str: ...

    @property
    def interval_s(self) -> float:
        """Seconds between two calls of `observe`; a multiple of the reporting interval of samples."""
        ...

    def decide(self, rates: Rates) -> Decision:
        """What it wants at these rates alone: without history, waiting and limits on changes.

        Raises:
            InvalidInput: the rates lack a metric that this policy decides by.
        """
        ...

    def observe(self, facts: Facts) -> Recommendation:
        """The next step. A decision that equals what runs is never recommended.

        Raises:
            InvalidInput: the rates lack a metric that this policy decides by.
        """
        ...
