"""When a source rate has left the band of the plan: a state machine over (time, rate) samples.

    reference   records/s that hold until a change is told: the plan's target rate, later the rate of the last change
    band        [(1 - downwards) reference, (1 + upwards) reference]; what differs from the reference by less than
                `minimum_change` is inside, too
    streak      samples in a row that lie outside, all on the same side

A change is told when a streak is `polls` long and no change was told in the last `cool_down_s`. Its rate is the median
of the streak's last `polls` samples, so that one odd sample decides nothing, and becomes the reference: the same change
is never told twice. A sample inside ends a streak, as does one on the other side, or a hole of more than
`HOLE_POLLS` polls; a sample that could not be read does not, since it tells nothing.

Time is that of a clock of the caller's that does not run backwards; samples that seem to are refused.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final, Literal

from pydantic import Field

from models.operations import Replanning
from models.schema import Format, NonNegative, Positive

HOLE_POLLS: Final = 4
"""Longest time between two samples of a streak, in poll intervals with their time limit."""
MOST_RATE: Final = 1e15
"""Records/s that no source emits."""


class RateSample(Format):
    """One reading of the source rate."""

    time_s: float = Field(description="Seconds, on the clock of who read it.", allow_inf_nan=False)
    rate: Positive = Field(description="Records/s at the sources together.")


class RateChange(Format):
    """The source rate left the band and stayed outside."""

    old_rate: Positive = Field(description="Records/s that held until now: the plan's, or those of the last change.")
    new_rate: Positive = Field(description="Median of the samples, records/s.")
    low: NonNegative = Field(description="Lower end of the band that was left, records/s.")
    high: Positive = Field(description="Upper end of the band that was left, records/s.")
    samples: tuple[RateSample, ...] = Field(min_length=1, description="The evidence, oldest first.")


@dataclass(frozen=True)
class Verdict:
    """What a sample says."""

    kind: Literal["refused", "inside", "outside", "cooling", "changed"]
    reason: str
    change: RateChange | None = None
    """Where the kind is 'changed', and only there."""


class RateBand:
    """Follows one job. Give it every reading, in order."""

    def __init__(self, rules: Replanning, reference: float, *, quiet_until_s: float = -math.inf) -> None:
        """
        Args:
            reference: records/s that the job is planned for.
            quiet_until_s: no change is told before this time, as after one that was told by another.
        """
        self._rules, self._quiet_until_s = rules, quiet_until_s
        self._last_s = -math.inf
        self._streak: list[RateSample] = []
        self._low, self._high = 0.0, math.inf
        self.reference = reference
        self.refer_to(reference)

    def refer_to(self, reference: float) -> None:
        """The job is planned for another rate now; what was seen outside of the old band counts no more."""
        if not 0 < reference <= MOST_RATE:
            raise ValueError(f"a reference must be a rate above 0 and up to {MOST_RATE:g}, but got {reference!r}")
        self.reference, self._streak = reference, []
        least = self._rules.minimum_change
        self._low = min((1 - self._rules.downwards) * reference, max(0.0, reference - least))
        self._high = max((1 + self._rules.upwards) * reference, reference + least)

    def see(self, time_s: float, rate: object) -> Verdict:
        """Take a reading, whatever was read."""
        if (fault := self._fault(time_s, rate)) is not None:
            return Verdict("refused", fault)
        assert isinstance(rate, int | float)
        sample, side = RateSample(time_s=time_s, rate=float(rate)), self._side(float(rate))
        hole = time_s - self._last_s > self._longest_hole_s
        self._last_s = time_s
        if side == 0:
            self._streak = []
            return Verdict("inside", f"{sample.rate:,.1f} records/s is within {self._band}")
        if self._streak and (hole or self._side(self._streak[-1].rate) != side):
            self._streak = []
        self._streak = [*self._streak, sample][-self._rules.polls :]
        return self._judge(sample)

    def _judge(self, sample: RateSample) -> Verdict:
        seen, wanted = len(self._streak), self._rules.polls
        where = f"{sample.rate:,.1f} records/s is outside of {self._band}"
        if seen < wanted:
            return Verdict("outside", f"{where}, {seen} of {wanted} times in a row")
        if sample.time_s < self._quiet_until_s:
            return Verdict("cooling", f"{where}, but the last change is too recent by {self._wait_s(sample):,.0f} s")
        change = self._change(self._streak)
        self._quiet_until_s = sample.time_s + self._rules.cool_down_s
        self.refer_to(change.new_rate)
        return Verdict("changed", f"{where}, {wanted} times in a row", change)

    def _change(self, streak: Sequence[RateSample]) -> RateChange:
        return RateChange(
            old_rate=self.reference,
            new_rate=median(s.rate for s in streak),
            low=self._low,
            high=self._high,
            samples=tuple(streak),
        )

    def _fault(self, time_s: float, rate: object) -> str | None:
        """Why a reading cannot be used."""
        if isinstance(rate, bool) or not isinstance(rate, int | float):
            return f"a rate must be a number, but got a {type(rate).__name__}"
        if not abs(rate) <= MOST_RATE:
            return f"a rate must be a number of records/s up to {MOST_RATE:g}, but got one that is not"
        if rate < 0:
            return f"a rate must not be negative, but got {rate:g} records/s"
        if rate == 0:
            return "the sources emit nothing, and there is no plan for that"
        if not math.isfinite(time_s) or time_s <= self._last_s:
            return f"its time {time_s:g} s is not after that of the reading before, {self._last_s:g} s"
        return None

    def _side(self, rate: float) -> int:
        """-1 below the band, 0 inside, 1 above."""
        return (rate > self._high) - (rate < self._low)

    def _wait_s(self, sample: RateSample) -> float:
        return self._quiet_until_s - sample.time_s

    @property
    def _longest_hole_s(self) -> float:
        return HOLE_POLLS * (self._rules.poll_interval_s + self._rules.rates.timeout_s)

    @property
    def _band(self) -> str:
        return f"{self._low:,.1f} to {self._high:,.1f}, the band around {self.reference:,.1f}"
