"""The MST search: which rate to inject next, and for how long (StreamBed section 4).

The maximal sustainable throughput (MST) is the highest source rate with no growing backlog. The search warms the job up
at a very high rate, then measures one target rate after the other, each in three phases: cool down at a low rate, ramp
up at the target rate, observe at the target rate. A target r is sustained if the sources emit at least 99 % of it; then
min_r = r, else max_r = r, and the next target lies in the middle.

Rulings where the paper is silent:

* The first target is the rate achieved at the end of the warm-up: the middle of [0, infinity) does not exist.
* While max_r is infinite and the target is sustained, the next target is twice the last one.
* `iterations` counts the warm-up as the first. So read, section 8.2 adds up: 8 iterations in 120 s + 7 * 75 s = 645 s
  for simple queries, 7 iterations in 450 s + 6 * 75 s = 900 s for complex ones.
* The search has converged when min_r >= (1 - sensitivity) * max_r. The paper's example (the next target is within 1 %
  of the last) would stop one iteration earlier, with up to 2 % between the two.
* The MST is the rate achieved at the highest sustained target (the "average actual rate"), not the target itself.
* With a `bracket` the search stays close to what it has seen, since iterations are dear where seconds are real. Up from the
  warm-up's rate it goes by that share, then by twice the share, and so on, until a target is not sustained. The rate that
  was achieved there shows what the job takes: it is the next target, or the target less the sensitivity, whichever is lower.
  From there it goes up by the sensitivity, twice the sensitivity, and so on, but never beyond the middle.
* The cool-down rate is at most half of the target rate: a fixed rate would not be low for a slow job.
* The cool-down may be left out (0 s) where nothing is left over from the last target: the sources forget what they owe,
  and what waits in buffers is worked off within the ramp-up. So it may be after a target that was sustained, of which no
  backlog is left: windows then hold what they hold at such rates, and where seconds are real, there are fewer of them.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Generator
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final, Self

from pydantic import AfterValidator, Field

from models.capacity.dialogue import Dialogue
from models.errors import InvalidInput
from models.metrics import SAMPLE_INTERVAL_S
from models.schema import Format, NonNegative, Positive
from models.wording import amount

VERY_HIGH_RATE: Final = 1e8
"""Warm-up rate where nothing is known of the job, records/s; above all that StreamBed's testbed took."""
MOST_COOLDOWN_SHARE: Final = 0.5
"""The cool-down rate is at most this share of the target rate."""


def _whole_intervals(seconds: float) -> float:
    if seconds % SAMPLE_INTERVAL_S != 0:
        raise ValueError(f"must be a multiple of the sample interval of {SAMPLE_INTERVAL_S:g} s")
    return seconds


Duration = Annotated[float, Field(gt=0, allow_inf_nan=False), AfterValidator(_whole_intervals)]
"""Seconds; a multiple of the sample interval, so that no sample spans two phases."""


class MstSettings(Format):
    """How long and how exactly to search; the defaults are those of simple queries (StreamBed section 8.2)."""

    warmup_s: Duration = Field(120.0, description="Warm-up, seconds.")
    warmup_rate: Positive = Field(VERY_HIGH_RATE, description="Rate offered during the warm-up, records/s.")
    cooldown_s: Annotated[float, AfterValidator(_whole_intervals)] = Field(
        15.0, ge=0, allow_inf_nan=False, description="Cool-down before each target rate, seconds; 0: none."
    )
    cooldown_rate: Positive = Field(6400.0, description="Rate offered during the cool-down, records/s.")
    cooldown_after_sustained: bool = Field(
        True, description="Whether to cool down also after a target that was sustained, of which nothing waits."
    )
    ramp_s: Duration = Field(30.0, description="Time at the target rate before it is observed, seconds.")
    observe_s: Duration = Field(30.0, description="Time at the target rate that is observed, seconds.")
    iterations: int = Field(8, ge=2, description="Most iterations; the warm-up is the first.")
    sensitivity: float = Field(0.01, gt=0, lt=1, description="Converged when (max_r - min_r) / max_r is at most this.")
    sustained_ratio: float = Field(0.99, gt=0, le=1, description="A target is sustained from this achieved share on.")
    bracket: float | None = Field(
        None,
        gt=0,
        lt=1,
        description="First step up from the warm-up's rate, as a share of it; steps double until a rate is not sustained, and "
        "what was achieved there comes next. Absent: the rate is doubled, or halved.",
    )

    @classmethod
    def simple(cls) -> Self:
        """For queries with little state, such as Nexmark q1, q2 and q11."""
        return cls()

    @classmethod
    def complex(cls) -> Self:
        """For queries whose state outgrows main memory, such as Nexmark q5 and q8: a longer warm-up."""
        return cls(warmup_s=450.0, cooldown_rate=12800.0, iterations=7)

    @property
    def longest_s(self) -> float:
        """Duration of a search that uses all its iterations and sustains no target, seconds."""
        return self.warmup_s + (self.iterations - 1) * (self.cooldown_s + self.ramp_s + self.observe_s)


class Phase(StrEnum):
    WARMUP = "warmup"
    COOLDOWN = "cooldown"
    RAMP = "ramp"
    OBSERVE = "observe"


@dataclass(frozen=True)
class Injection:
    """What to do next: offer `rate` records/s to the sources together for `seconds`."""

    rate: float
    seconds: float
    phase: Phase


class Stop(StrEnum):
    """Why a search ended."""

    CONVERGED = "converged"
    ITERATIONS = "iterations"
    NO_FLOW = "no flow"


class Trial(Format):
    """One observed target rate."""

    target_rate: Positive = Field(description="Records/s offered.")
    achieved_rate: NonNegative = Field(description="Records/s that the sources emitted, mean of the observation.")
    sustained: bool


class MstMeasurement(Dialogue[Injection, float], ABC):
    """A way to find the MST, as a dialogue: what to inject, and the rate that was achieved by it."""

    def __init__(self, settings: MstSettings) -> None:
        self.settings = settings
        self._mst: float | None = None
        self._trials: list[Trial] = []
        self._stop: Stop | None = None
        super().__init__(self._run())

    @abstractmethod
    def _run(self) -> Generator[Injection, float, None]:
        """Yields injections, and is sent the rate that each achieved."""

    def observe(self, seen: float) -> None:
        """Take the mean rate that the sources emitted during the injection, records/s.

        Raises:
            InvalidInput: it is negative or not finite.
            SluiceError: the measurement has ended.
        """
        self._check_open()
        if not (math.isfinite(seen) and seen >= 0):
            raise InvalidInput(f"an achieved rate must be finite and at least 0, but got {seen}")
        super().observe(seen)

    @property
    def mst(self) -> float | None:
        """The MST as far as it is known, records/s; None before that."""
        return self._mst

    @property
    def history(self) -> tuple[Trial, ...]:
        """The observed target rates, in order."""
        return tuple(self._trials)

    @property
    def stop(self) -> Stop | None:
        """Why it ended; None while it runs."""
        return self._stop

    @property
    @abstractmethod
    def reason(self) -> str | None:
        """Why it ended, in words; None while it runs."""


class MstSearch(MstMeasurement):
    """The search; its MST is the rate achieved at the highest sustained target so far, None if none was sustained."""

    def __init__(self, settings: MstSettings) -> None:
        self._min_r, self._max_r = 0.0, math.inf
        super().__init__(settings)

    @property
    def reason(self) -> str | None:
        if self._stop is None:
            return None
        if self._stop is Stop.NO_FLOW:
            return "no record was emitted by the end of the warm-up, so there is no rate to begin with"
        if self._mst is None:
            lowest = f"the lowest being {amount(self._max_r)} records/s"
            return f"none of the {len(self._trials)} target rates was sustained, {lowest}"
        refused = [t.target_rate for t in self._trials if not t.sustained]
        bracket = f"{amount(self._min_r)} records/s was sustained, " + (
            f"{amount(min(refused))} records/s was not" if refused else "and no higher rate was tried"
        )
        if self._stop is Stop.CONVERGED:
            return f"converged within {self.settings.sensitivity:.1%}: {bracket}"
        return f"stopped after {self.settings.iterations} iterations: {bracket}"

    def _run(self) -> Generator[Injection, float, None]:
        """The search as the paper describes it: yields injections, and is sent the rate that each achieved."""
        target = yield from self._warm_up()
        if target == 0:
            self._stop = Stop.NO_FLOW
            return
        step, least_step = self.settings.bracket, self.settings.sensitivity
        for _ in range(self.settings.iterations - 1):
            achieved = yield from self._measure(target)
            sustained = self._conclude(target, achieved)
            if self._min_r >= (1 - self.settings.sensitivity) * self._max_r:
                self._stop = Stop.CONVERGED
                return
            middle = (self._min_r + self._max_r) / 2
            if step is None:
                target = min(middle, 2 * target)
            elif sustained:
                target, step = min(middle, (1 + step) * target), 2 * step
            else:
                below = min(achieved, (1 - least_step) * target)
                target, step = below if below > self._min_r else middle, least_step
        self._stop = Stop.ITERATIONS

    def _warm_up(self) -> Generator[Injection, float, float]:
        """Two injections at the same rate, so that the rate at the end of the warm-up is seen by itself."""
        settings = self.settings
        end_s = min(settings.observe_s, settings.warmup_s)
        if settings.warmup_s > end_s:
            yield Injection(settings.warmup_rate, settings.warmup_s - end_s, Phase.WARMUP)
        return (yield Injection(settings.warmup_rate, end_s, Phase.WARMUP))

    def _measure(self, target: float) -> Generator[Injection, float, float]:
        settings = self.settings
        clear = self._trials and self._trials[-1].sustained and not settings.cooldown_after_sustained
        if settings.cooldown_s > 0 and not clear:
            low = min(settings.cooldown_rate, MOST_COOLDOWN_SHARE * target)
            yield Injection(low, settings.cooldown_s, Phase.COOLDOWN)
        yield Injection(target, settings.ramp_s, Phase.RAMP)
        return (yield Injection(target, settings.observe_s, Phase.OBSERVE))

    def _conclude(self, target: float, achieved: float) -> bool:
        """The 99 % rule: whether the target was sustained."""
        sustained = achieved >= self.settings.sustained_ratio * target
        self._trials.append(Trial(target_rate=target, achieved_rate=achieved, sustained=sustained))
        if sustained:
            self._min_r, self._mst = target, achieved
        else:
            self._max_r = target
        return sustained
