"""The schedule of a job: the rates to plan for, and when each plan is made.

Notation, all times in cells of the grid:

    D_t    rate expected in cell t, records/s
    L      lead: the time of a change and, after it, the time that a plan is in force before the rate rises
    N_t    max D_t ... D_(t+L), what the plan of cell t must take
    r      time of a change: from the replan to the job that runs the plan
    m      shortest time between two changes
    c      cost of a change, in cells at the highest rate

A schedule divides the cells into intervals. Each is planned for the highest N_t in it, so that a plan for a rise begins L
before it, and one for a fall only once the rate has fallen. A change begins only where no cell of the r from then on is
frozen. Of all such schedules whose intervals last m or longer, the one with the least sum of rate times cells, with
c max N for each change, is found by dynamic programming over the end of the last interval: O(cells^2).

What a schedule may not change is covered: an interval that must last through a freeze is planned for the highest rate
expected in it, and up to L after it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from models.calendar.demand import ExpectedRates, Occurrence, cells, demand, frozen, on_grid
from models.calendar.rules import GRID_S, Calendar
from models.calendar.season import Season
from models.errors import InvalidInput
from models.schema import Format, Positive

Array = NDArray[np.float64]
_CELL: Final = timedelta(seconds=GRID_S)
MOST_FREEZE_DAYS: Final = 62
"""How far a schedule is made longer, so that it does not end in a freeze."""
LEAST_SHARE: Final = 0.01
"""Of the highest rate; no plan is made for a rate of 0."""


class ScheduledRate(Format):
    """A rate to plan for, and for how long the plan stays."""

    starts_at: datetime = Field(description="When the replan begins: ISO 8601, UTC.")
    ends_at: datetime = Field(description="When the next one begins.")
    rate: Positive = Field(description="Rate to plan for, records/s at the sources together.")
    rises_at: datetime = Field(description="When this rate is first expected.")
    event: str | None = Field(description="Name of the event that decides it; null where it is the season.")
    event_begins_at: datetime | None = Field(description="When that event begins.")

    @property
    def hours(self) -> float:
        """How long it lasts."""
        return (self.ends_at - self.starts_at) / timedelta(hours=1)

    def clipped(self, begin: datetime, end: datetime) -> "ScheduledRate":
        """Its part in a time."""
        return self.model_copy(update={"starts_at": max(self.starts_at, begin), "ends_at": min(self.ends_at, end)})


@dataclass(frozen=True)
class Timing:
    """How plans change; seconds."""

    rescale_s: float
    before_s: float
    least_between_s: float
    change_cost_s: float

    @classmethod
    def of(cls, calendar: Calendar, rescale_s: float) -> "Timing":
        """That of a calendar, with the time of a change."""
        return cls(rescale_s, calendar.before_s, calendar.least_between_s, calendar.change_cost_s)

    @property
    def lead_s(self) -> float:
        """From a change to the rise that it is for."""
        return self.rescale_s + self.before_s


def schedule(
    calendar: Calendar,
    season: Season,
    begin: datetime,
    end: datetime,
    rescale_s: float,
    running: ScheduledRate | None = None,
) -> list[ScheduledRate]:
    """The intervals from `begin`, or from that of the one that is `running`, to `end` or later: past a freeze, if it ends in
    one.

    Args:
        begin, end: UTC.
        rescale_s: time of a change.
        running: the interval in force, which began earlier and keeps its rate. It is left if what is expected exceeds it where
            no change is allowed, as after a change of the calendar.

    Raises:
        InvalidInput: no record is expected.
    """
    first = on_grid(begin)
    timing = Timing.of(calendar, rescale_s)
    during, lead = max(1, cells(timing.rescale_s)), cells(timing.lead_s)
    wanted = cells((end - first).total_seconds())
    closed = frozen(calendar, first, wanted + MOST_FREEZE_DAYS * cells(86_400.0))
    free = _free(closed, during)
    count = wanted + int(np.argmax(free[wanted:])) if free[wanted:].any() else wanted
    expected = demand(calendar, season, first, count + lead)
    needed = _highest_ahead(expected.rates, lead)[:count]
    if not needed.any():
        raise InvalidInput(
            f"no record is expected from {first:%F %T} to {end:%F %T} UTC, so there is nothing to plan for; give a base_rate "
            "above 0, or a history with rates above 0"
        )
    needed = np.maximum(needed, LEAST_SHARE * needed.max())
    cost = timing.change_cost_s / GRID_S * float(needed.max())
    least = cells(timing.least_between_s)
    since = None if running is None else _Since(running.rate, cells((first - running.starts_at).total_seconds()))
    breaks = _breaks(needed, free, least, cost, since)
    if breaks is None:
        return schedule(calendar, season, begin, end, rescale_s)
    made = [_interval(expected, needed, lead, i, j) for i, j in breaks]
    if running is not None:
        made[0] = running.model_copy(update={"ends_at": made[0].ends_at})
    return _merged(made)


def in_force(intervals: Sequence[ScheduledRate], at: datetime) -> ScheduledRate | None:
    """The interval of an instant."""
    return next((one for one in intervals if one.starts_at <= at < one.ends_at), None)


def _free(closed: NDArray[np.bool_], during: int) -> NDArray[np.bool_]:
    """Whether a change may begin in a cell: none of the cells that it takes is frozen."""
    ahead = np.concatenate([closed, np.zeros(during, dtype=np.bool_)])
    touched: NDArray[np.bool_] = np.any(np.lib.stride_tricks.sliding_window_view(ahead, during), axis=1)
    return ~touched[: len(closed)]


def _highest_ahead(rates: Array, lead: int) -> Array:
    """N of D; the last `lead` cells are left out."""
    return np.asarray(np.lib.stride_tricks.sliding_window_view(rates, lead + 1).max(axis=1))


class _Since(NamedTuple):
    """What runs at the first cell."""

    rate: float
    cells: int
    """How many have passed since it began."""


def _breaks(
    needed: Array, free: NDArray[np.bool_], least: int, cost: float, running: _Since | None
) -> list[tuple[int, int]] | None:
    """First cell of each interval, and the one after its last; None if the running rate cannot be left in time.

    The first interval may be shorter than `least` if nothing is `running`, the last one always.
    """
    count = len(needed)
    best, came = np.full(count + 1, np.inf), np.zeros(count + 1, dtype=np.int64)
    best[0] = 0.0
    for j in range(1, count + 1):
        if j < count and not free[j]:
            continue
        highest = np.maximum.accumulate(needed[:j][::-1])[::-1]
        length = np.arange(j, 0, -1)
        total = best[:j] + highest * length + np.where(length < j, cost, 0.0)
        if j < count:
            total[(length < least) & (length < j)] = np.inf
        if running is not None:
            covered = highest[0] <= running.rate * (1 + 1e-9) and (running.cells + j >= least or j == count)
            total[0] = running.rate * j if covered else np.inf
        came[j] = int(np.argmin(total))
        best[j] = total[came[j]]
    if not np.isfinite(best[count]):
        return None
    found, j = [], count
    while j > 0:
        found.append((int(came[j]), j))
        j = int(came[j])
    return found[::-1]


def _interval(expected: ExpectedRates, needed: Array, lead: int, i: int, j: int) -> ScheduledRate:
    rate = float(needed[i:j].max())
    at = i + int(np.argmax(expected.rates[i : j + lead]))
    cause: Occurrence | None = expected.causes[at]
    return ScheduledRate(
        starts_at=expected.begin + i * _CELL,
        ends_at=expected.begin + j * _CELL,
        rate=rate,
        rises_at=expected.begin + at * _CELL,
        event=None if cause is None else cause.event.name,
        event_begins_at=None if cause is None else cause.begin,
    )


def _merged(intervals: Sequence[ScheduledRate]) -> list[ScheduledRate]:
    """Neighbours with the same rate as one, where a change costs nothing."""
    found: list[ScheduledRate] = []
    for one in intervals:
        if found and found[-1].rate == one.rate:
            found[-1] = found[-1].model_copy(update={"ends_at": one.ends_at})
        else:
            found.append(one)
    return found
