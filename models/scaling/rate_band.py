"""When a source rate has left the band of the plan: a state machine over (time, rate) samples.

    reference   records/s that hold until a change is reported: the plan's target rate, later the rate of the last change
    band        [(1 - downwards) reference, (1 + upwards) reference]; what differs from the reference by less than
                `minimum_change` is inside, too
    streak      samples in a row that lie outside, all on the same side

What counts is the rate at which records arrive, of which a reading gives bounds (`arriving_rate`): a sample lies above the
band if the least rate does, and below it if the most does. A reading that leaves open whether the rate has left the band ends
a streak.

A change is reported when a streak is `polls` long and none was reported in the last `cool_down_s`. Its rate is the median
of the streak's last `polls` samples, so that a single outlier decides nothing, and becomes the reference: the same change
is never reported twice. A sample inside ends a streak, as does one on the other side, or a gap of more than
`HOLE_POLLS` polls; an invalid reading does not.

Time is that of the caller's monotonic clock; samples with a time that runs backwards are refused.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final, Literal

from pydantic import Field

from models.scaling.decisions.overload import ArrivingRate, PendingRecords, SourceLoad, SourceReading, arriving_rate
from models.schema import Format, NonNegative, Positive, PositiveInt

HOLE_POLLS: Final = 4
"""Longest time between two samples of a streak, in poll intervals with their time limit."""
MOST_RATE: Final = 1e15
"""Upper bound of valid rates, records/s."""


class BandRules(Format):
    """The band around the rate of a plan, and when leaving it counts as a rate change."""

    upwards: Positive = Field(0.1, le=100, description="Share of the plan's rate by which it may be exceeded.")
    downwards: Positive = Field(0.3, lt=1, description="Share of the plan's rate by which it may be undercut.")
    minimum_change: NonNegative = Field(0.0, description="Smallest change that counts, records/s.")
    polls: PositiveInt = Field(
        3, le=1000, description="Polls in a row that must lie outside the band on the same side."
    )
    poll_interval_s: Positive = Field(15.0, le=86400, description="Seconds between two polls.")
    cool_down_s: NonNegative = Field(
        300.0, description="Seconds after a change in which no further change is reported."
    )


class RateSample(Format):
    """One reading of the source rate."""

    time_s: float = Field(description="Seconds, on the reader's clock.", allow_inf_nan=False)
    rate: Positive = Field(description="Records/s that arrive at the sources together.")
    emitted_rate: NonNegative | None = Field(
        None,
        exclude_if=lambda rate: rate is None,
        description="Records/s that the sources emitted, where that is another rate: what waits before them grew or shrank.",
    )


class RateChange(Format):
    """The source rate left the band and stayed outside."""

    old_rate: Positive = Field(description="Records/s that held until now: the plan's, or those of the last change.")
    new_rate: Positive = Field(description="Median of the samples, records/s.")
    low: NonNegative = Field(description="Lower end of the band that was left, records/s.")
    high: Positive = Field(description="Upper end of the band that was left, records/s.")
    samples: tuple[RateSample, ...] = Field(min_length=1, description="The evidence, oldest first.")


@dataclass(frozen=True)
class BandVerdict:
    """The verdict on a sample."""

    kind: Literal["refused", "inside", "outside", "held", "cooling", "changed"]
    reason: str
    change: RateChange | None = None
    """Given if and only if the kind is 'changed'."""


class RateBand:
    """Follows one job. Give it every reading, in order."""

    def __init__(
        self, rules: BandRules, reference: float, *, timeout_s: float = 10.0, quiet_until_s: float = -math.inf
    ) -> None:
        """
        Args:
            reference: records/s that the job is planned for.
            timeout_s: of one reading, so that a slow one is not taken for a gap.
            quiet_until_s: no change is reported before this time, for example after one that another process reported.
        """
        self._rules, self._timeout_s, self._quiet_until_s = rules, timeout_s, quiet_until_s
        self._last_s = -math.inf
        self._streak: list[RateSample] = []
        self._pending = PendingRecords()
        self._low, self._high = 0.0, math.inf
        self.reference = reference
        self.refer_to(reference)

    def refer_to(self, reference: float) -> None:
        """The job is now planned for another rate; readings outside of the old band no longer count."""
        if not 0 < reference <= MOST_RATE:
            raise ValueError(f"a reference must be a rate above 0 and up to {MOST_RATE:g}, but got {reference!r}")
        self.reference, self._streak = reference, []
        least = self._rules.minimum_change
        self._low = min((1 - self._rules.downwards) * reference, max(0.0, reference - least))
        self._high = max((1 + self._rules.upwards) * reference, reference + least)

    def see(self, time_s: float, rate: object, sources: Sequence[SourceLoad] = ()) -> BandVerdict:
        """Process a reading, which may be invalid.

        Args:
            sources: the load of the sources; empty if the rate is that of arriving records.
        """
        if (fault := self._fault(time_s, rate)) is not None:
            return BandVerdict("refused", fault)
        assert isinstance(rate, int | float)
        arriving = arriving_rate(SourceReading(float(rate), tuple(sources)), self._pending.see(time_s, sources))
        if arriving.most <= 0:
            return BandVerdict("refused", "the sources emit nothing, and no plan is made for a rate of 0")
        if arriving.estimate > MOST_RATE:
            return BandVerdict(
                "refused", f"a rate must be up to {MOST_RATE:g} records/s, but got {arriving.estimate:g}"
            )
        gap_s, self._last_s = time_s - self._last_s, time_s
        side = self._side(arriving)
        if side == 0:
            self._streak = []
            return self._inside_or_held(arriving)
        sample = _sample(time_s, arriving.least if side > 0 else arriving.most, float(rate))
        if self._streak and (gap_s > self._longest_hole_s or (self._streak[-1].rate > self._high) != (side > 0)):
            self._streak = []
        self._streak = [*self._streak, sample][-self._rules.polls :]
        return self._judge(sample)

    def _inside_or_held(self, arriving: ArrivingRate) -> BandVerdict:
        rate = f"{arriving.estimate:,.1f} records/s is"
        if arriving.doubt is None or self._low <= arriving.estimate <= self._high:
            return BandVerdict("inside", f"{rate} within {self._band}")
        if arriving.estimate < self._low:
            return BandVerdict("held", f"{rate} below {self._band}, but {arriving.doubt}: more records may be arriving")
        return BandVerdict("held", f"{rate} above {self._band}, but {arriving.doubt}: fewer records may be arriving")

    def _judge(self, sample: RateSample) -> BandVerdict:
        seen, wanted = len(self._streak), self._rules.polls
        where = f"{sample.rate:,.1f} records/s is outside of {self._band}"
        if seen < wanted:
            return BandVerdict("outside", f"{where}, {seen} of {wanted} times in a row")
        if sample.time_s < self._quiet_until_s:
            return BandVerdict(
                "cooling", f"{where}, but the last change is too recent by {self._wait_s(sample):,.0f} s"
            )
        change = self._change(self._streak)
        self._quiet_until_s = sample.time_s + self._rules.cool_down_s
        self.refer_to(change.new_rate)
        return BandVerdict("changed", f"{where}, {wanted} times in a row", change)

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
        if not math.isfinite(time_s) or time_s <= self._last_s:
            return f"its time {time_s:g} s is not after that of the reading before, {self._last_s:g} s"
        return None

    def _side(self, arriving: ArrivingRate) -> int:
        """-1 below the band, 0 inside or unknown, 1 above."""
        return (arriving.least > self._high) - (arriving.most < self._low)

    def _wait_s(self, sample: RateSample) -> float:
        return self._quiet_until_s - sample.time_s

    @property
    def _longest_hole_s(self) -> float:
        return HOLE_POLLS * (self._rules.poll_interval_s + self._timeout_s)

    @property
    def _band(self) -> str:
        return f"{self._low:,.1f} to {self._high:,.1f}, the band around {self.reference:,.1f}"


def _sample(time_s: float, rate: float, emitted: float) -> RateSample:
    return RateSample(time_s=time_s, rate=rate, emitted_rate=None if rate == emitted else emitted)
