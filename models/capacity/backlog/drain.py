"""The MST by drain: the job starts behind a log that is full, and the steepest fall of its lag is what it can take.

While lag is left, the job takes all that it can, so a drain measures its capacity without a search: minutes instead of the
search's quarter of an hour. It needs a job that can be stopped and started again, and it sees the job catching up: sources
read old records in large batches, and windows of event time pass faster than real time.

The backlog must outlast the start. Where it did not, a larger one is filled in, sized by what was seen.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from pydantic import Field

from models.capacity.backlog.lag import LagPoint, steps
from models.capacity.dialogue import Dialogue
from models.errors import InvalidInput
from models.schema import Format, Positive
from models.wording import amount


class DrainSettings(Format):
    """How much to fill in, and what counts."""

    first_backlog: Positive = Field(description="Records to fill in at first.")
    most_backlog: Positive = Field(description="Most records that the log can keep.")
    warmup_s: float = Field(
        15.0, ge=0, allow_inf_nan=False, description="Time after the first commit that is left out."
    )
    window_s: Positive = Field(20.0, description="Length of the steepest fall, seconds.")
    left_share: float = Field(
        0.05, ge=0, lt=1, description="The end of a drain is left out: when this share of the backlog remains."
    )
    growth: float = Field(8.0, gt=1, description="The next backlog is at most so many times the last.")
    attempts: int = Field(4, ge=1, description="Most drains.")


@dataclass(frozen=True)
class Backlog:
    """What to do next: with the job stopped, fill in records; then start it, feed nothing, and read its lag until the
    share that is left out remains."""

    records: float
    enough_s: float
    """Reading may stop so long after the first commit."""


class DrainEnd(StrEnum):
    """Why measuring by drain ended."""

    MEASURED = "measured"
    NOTHING_READ = "nothing read"
    TOO_SHORT = "too short"


class DrainMeasurement(Dialogue[Backlog, Sequence[LagPoint]]):
    """Measuring as a dialogue: what to fill in, and the readings of the lag from the start on."""

    def __init__(self, settings: DrainSettings) -> None:
        self.settings = settings
        self._mst: float | None = None
        self._end: DrainEnd | None = None
        self._longest_s = 0.0
        super().__init__(self._run())

    @property
    def mst(self) -> float | None:
        """Records/s consumed in the steepest fall; None until it was measured."""
        return self._mst

    @property
    def end(self) -> DrainEnd | None:
        """None while it runs."""
        return self._end

    @property
    def reason(self) -> str | None:
        """Why it ended, in words; None while it runs."""
        match self._end:
            case DrainEnd.MEASURED:
                assert self._mst is not None
                return f"the steepest fall of {self.settings.window_s:g} s was {amount(self._mst)} records/s"
            case DrainEnd.NOTHING_READ:
                return "the job has committed nothing: it does not read the topics, or completes no checkpoint"
            case DrainEnd.TOO_SHORT:
                return (
                    f"the longest drain gave {self._longest_s:.0f} s after the warm-up, but {self.settings.window_s:g} s are "
                    f"needed; let the topics keep more records, or shorten the warm-up"
                )
        return None

    def _run(self) -> Generator[Backlog, Sequence[LagPoint], None]:
        settings, backlog = self.settings, min(self.settings.first_backlog, self.settings.most_backlog)
        self._end = None
        for _ in range(settings.attempts):
            points = yield Backlog(backlog, settings.warmup_s + 3 * settings.window_s)
            committed = steps(points)
            if not committed:
                self._end = DrainEnd.NOTHING_READ
                return
            counted = self._counted(points, committed)
            self._mst = steepest(counted, settings.window_s)
            if self._mst is not None:
                self._end = DrainEnd.MEASURED
                return
            if backlog >= settings.most_backlog:
                break
            backlog = min(settings.most_backlog, backlog * self._factor(points, committed))
        self._end = DrainEnd.TOO_SHORT

    def _counted(self, points: Sequence[LagPoint], committed: Sequence[LagPoint]) -> list[LagPoint]:
        """Commits after the warm-up and before the end of the drain."""
        begin, left = committed[0].time_s + self.settings.warmup_s, self.settings.left_share * points[0].lag
        counted = [one for one in committed if one.time_s >= begin and one.lag > left]
        if len(counted) > 1:
            self._longest_s = max(self._longest_s, counted[-1].time_s - counted[0].time_s)
        return counted

    def _factor(self, points: Sequence[LagPoint], committed: Sequence[LagPoint]) -> float:
        """How many times the backlog to fill in, so that the drain lasts for warm-up and two windows."""
        lasted = max(committed[-1].time_s - points[0].time_s, 1e-9)
        wanted = self.settings.warmup_s + 2 * self.settings.window_s
        return min(self.settings.growth, max(2.0, 1.5 * wanted / lasted))


def steepest(committed: Sequence[LagPoint], window_s: float) -> float | None:
    """Records/s consumed in the steepest fall over at least this time; None if the commits span less.

    Complexity: linear; for each end the latest begin that is far enough.

    Raises:
        InvalidInput: readings are not in the order of time.
    """
    best, begin = None, 0
    for before, now in pairwise(committed):
        if now.time_s <= before.time_s:
            raise InvalidInput("readings of the lag must be in the order of time, but are not")
    for now in committed:
        while begin + 1 < len(committed) and now.time_s - committed[begin + 1].time_s >= window_s:
            begin += 1
        first = committed[begin]
        if now.time_s - first.time_s >= window_s:
            rate = (now.consumed - first.consumed) / (now.time_s - first.time_s)
            best = rate if best is None else max(best, rate)
    return best
