"""The interface of scaling policies: facts in, a recommendation and its reason out.

A policy is a state machine without a clock. Its driver calls `observe` at the end of each interval, deploys the
recommendation, and reports the rescale in the facts of the next call.
"""

from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from pydantic import Field

from models.scaling.rates import Rates
from models.schema import Format, NonNegative, PositiveInt


class Decision(Format):
    """The deployment that a policy wants."""

    parallelism: dict[str, PositiveInt] = Field(description="Tasks of each operator; sources where theirs is known.")
    exact: dict[str, NonNegative] = Field(description="Tasks before rounding up, where the policy computed them.")
    memory_mb: dict[str, NonNegative] = Field(description="Managed memory of one task, MiB, where it is known.")
    reasons: dict[str, str] = Field(description="Why, in words, for each operator of `parallelism`.")


@dataclass(frozen=True)
class Rescaled:
    """A completed rescale."""

    ended_s: float
    """When the job ran again, seconds since it was first deployed."""
    downtime_s: float
    """How long the job read nothing."""
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
    """Most tasks of all operators together that fit the cluster; None without a limit."""

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
    """Why, in one sentence."""


@dataclass(frozen=True)
class Outlook:
    """What a policy expects, where it forecasts; rates in records/s."""

    horizon_s: float
    """Time that it is for, from now."""
    low: float
    """Band of the mean rate of arriving records."""
    high: float
    capacity: float
    """Of the tasks that run."""
    late_share: float
    """Share of records that were late so far."""
    late_allowed: float
    """Share that may be late."""


@runtime_checkable
class ForecastingPolicy(Protocol):
    """A policy that can show what it expects."""

    @property
    def outlook(self) -> Outlook | None:
        """Of its last comparison; None before the first."""
        ...


class Policy(Protocol):
    """A scaling policy. It is not called while the job restarts."""

    @property
    def name(self) -> str: ...

    @property
    def interval_s(self) -> float:
        """Seconds between two calls of `observe`; a multiple of the reporting interval of samples."""
        ...

    def decide(self, rates: Rates) -> Decision:
        """The decision for these rates alone: without history, waiting and limits on changes.

        Raises:
            InvalidInput: the rates lack a metric that this policy decides by.
        """
        ...

    def observe(self, facts: Facts) -> Recommendation:
        """The next step. A decision that equals the current configuration is never recommended.

        Raises:
            InvalidInput: the rates lack a metric that this policy decides by.
        """
        ...
