"""The MST by controlled injection: records are fed at a rate, and whether the lag grows says whether the job sustains it.

The search is that of `models.capacity.mst`, with what a log changes:

* A log takes any rate, so what the source emits says nothing. The achieved rate is what was taken of what arrived.
* Lag does not go away by itself. Before each target it is drained, as long as that takes, or the job would seem to sustain
  more (or less) than it does.
* The warm-up climbs until the job falls behind. At a very high rate it would leave a lag that takes hours to drain.
* Feeding has a limit. A target that was not fed ends the search, with the last one as a lower bound.
"""

from collections.abc import Generator, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Final

from pydantic import Field

from models.capacity.backlog.lag import LagPoint, LagWindow, window
from models.capacity.dialogue import Dialogue
from models.capacity.mst import Injection, MstSearch, MstSettings, Phase, Trial
from models.errors import InvalidInput
from models.schema import Format, Positive
from models.wording import amount

_BEHIND: Final = 0.9
"""A job that takes less than this share of what arrives is behind."""


class InjectionSettings(Format):
    """How to feed and to drain."""

    search: MstSettings = Field(default_factory=MstSettings, description="How long and how exactly to search.")
    most_rate: Positive = Field(description="Highest rate that can be fed, records/s.")
    first_rate: Positive = Field(100.0, description="Rate that the warm-up begins with, records/s.")
    climb: float = Field(3.0, gt=1, description="The next rate of the warm-up is so many times the last.")
    drained_s: Positive = Field(1.0, description="Lag counts as drained when it is worked off in this time, seconds.")
    drain_steps: int = Field(
        40, ge=1, description="Most cool-downs in a row; a lag that is still there ends the search."
    )
    fed_ratio: float = Field(0.99, gt=0, le=1, description="A target was fed from this share of it on.")


class InjectionEnd(StrEnum):
    """Why a search by injection ended."""

    FOUND = "found"
    NOT_FED = "not fed"
    NOT_DRAINED = "not drained"


class InjectionSearch(Dialogue[Injection, Sequence[LagPoint]]):
    """The search as a dialogue: what to feed, and the readings of the lag meanwhile."""

    def __init__(self, settings: InjectionSettings) -> None:
        self.settings = settings
        self._search = MstSearch(settings.search)
        self._end: InjectionEnd | None = None
        self._fed = 0.0
        super().__init__(self._run())

    def observe(self, seen: Sequence[LagPoint]) -> None:
        """Take the readings of the lag during the injection, at least two."""
        self._check_open()
        if len(seen) < 2:
            raise InvalidInput(f"an injection needs two readings of the lag or more, but got {len(seen)}")
        super().observe(seen)

    @property
    def mst(self) -> float | None:
        """Records/s taken at the highest sustained target; None if none was sustained."""
        return self._search.mst

    @property
    def is_lower_bound(self) -> bool:
        """Whether the job may take more than was fed."""
        return self._end is InjectionEnd.NOT_FED

    @property
    def history(self) -> tuple[Trial, ...]:
        return self._search.history

    @property
    def end(self) -> InjectionEnd | None:
        """None while it runs."""
        return self._end

    @property
    def reason(self) -> str | None:
        """Why the search ended, in words; None while it runs."""
        match self._end:
            case InjectionEnd.NOT_FED:
                return f"no more than {amount(self._fed)} records/s could be fed, and the job kept up: it may take more"
            case InjectionEnd.NOT_DRAINED:
                return "the lag did not go away at a low rate: the job hardly reads, or something else writes to the topics"
            case InjectionEnd.FOUND:
                return self._search.reason
        return None

    def _run(self) -> Generator[Injection, Sequence[LagPoint], None]:
        begin: float | None = None
        while (wanted := self._search.next()) is not None:
            if wanted.phase is Phase.COOLDOWN:
                self._search.observe(0.0)  # done before each target, and longer
                continue
            if wanted.phase is Phase.RAMP and not (yield from self._drain(wanted.rate)):
                self._end = InjectionEnd.NOT_DRAINED
                return
            if wanted.phase is Phase.WARMUP:
                begin = (yield from self._climb()) if begin is None else begin
                self._search.observe(begin)
                continue
            seen = window((yield replace(wanted, rate=min(wanted.rate, self.settings.most_rate))))
            if wanted.phase is Phase.OBSERVE and self._not_fed(wanted.rate, seen):
                self._fed, self._end = seen.arriving, InjectionEnd.NOT_FED
                return
            self._search.observe(seen.kept_up)
        self._end = InjectionEnd.FOUND

    def _climb(self) -> Generator[Injection, Sequence[LagPoint], float]:
        """Warm up at higher and higher rates until the job falls behind, so that not much lag is left to be drained.

        Returns the rate to begin with: what it took while it was behind, or the highest rate that can be fed.
        """
        search, most = self.settings.search, self.settings.most_rate
        rate, warmed_s = min(self.settings.first_rate, most), 0.0
        while True:
            seen = window((yield Injection(rate, search.ramp_s, Phase.WARMUP)))
            warmed_s += search.ramp_s
            behind = seen.consumed < _BEHIND * seen.arriving
            if behind or rate >= most:
                break
            rate = min(self.settings.climb * rate, most)
        found = min(most, seen.consumed if behind else seen.kept_up)
        if found > 0 and warmed_s < search.warmup_s:
            seen = window((yield Injection(found, search.warmup_s - warmed_s, Phase.WARMUP)))
            found = min(most, max(found, seen.consumed))
        return found

    def _not_fed(self, target: float, seen: LagWindow) -> bool:
        """Whether less than the target was fed, all of which the job has taken."""
        kept_up = seen.kept_up >= self.settings.search.sustained_ratio * seen.arriving
        return kept_up and seen.arriving < self.settings.fed_ratio * target

    def _drain(self, target: float) -> Generator[Injection, Sequence[LagPoint], bool]:
        """Feed little until hardly any lag is left; whether that came to be."""
        search = self.settings.search
        low = min(search.cooldown_rate, target / 2)
        seconds = search.cooldown_s or search.observe_s
        for _ in range(self.settings.drain_steps):
            points = yield Injection(low, seconds, Phase.COOLDOWN)
            seen = window(points)
            if seen.lag_end <= self.settings.drained_s * max(low, seen.consumed):
                return True
        return False
