"""Whether an autopilot may act now: pure functions of its limits and of what happened so far."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from models.scaling.control.limits import DAY_S, ControlLimits, Limit

_MOST_DOUBLINGS: Final = 32


@dataclass(frozen=True)
class Hold:
    """Why nothing is done."""

    limit: Limit
    why: str
    """In one sentence."""


@dataclass(frozen=True)
class ActionHistory:
    """What was done to a job so far, as far as limits ask for it."""

    rescales: tuple[datetime, ...] = ()
    """Ends of the rescales of the last day, those that failed or were rolled back included, the first one first."""
    failed: tuple[datetime, ...] = ()
    """Those that failed or were rolled back, of the last day."""
    failed_in_a_row: int = 0
    someone_else: datetime | None = None
    """When it was noticed that someone else rescaled the job."""

    def rescaled(self, at: datetime) -> "ActionHistory":
        """After a rescale that came about."""
        return replace(self, rescales=_of_a_day((*self.rescales, at), at), failed_in_a_row=0)

    def without_success(self, at: datetime) -> "ActionHistory":
        """After a rescale that failed or was rolled back, or one that turned out to do harm, which is counted once."""
        rescales = self.rescales if at in self.rescales else _of_a_day((*self.rescales, at), at)
        return replace(
            self,
            rescales=rescales,
            failed=_of_a_day((*self.failed, at), at),
            failed_in_a_row=self.failed_in_a_row + 1,
        )

    def changed_by_someone(self, at: datetime) -> "ActionHistory":
        return replace(self, someone_else=at)

    def in_a_day(self, now: datetime) -> int:
        """Rescales in the last 24 hours."""
        return len(_of_a_day(self.rescales, now))

    def failed_in_a_day(self, now: datetime) -> int:
        return len(_of_a_day(self.failed, now))

    def backs_off_until(self, limits: ControlLimits) -> datetime | None:
        """The end of the wait after rescales that failed: `back_off_s`, doubled with each further one in a row."""
        if not self.failed_in_a_row or not self.failed:
            return None
        doubled = limits.back_off_s * 2.0 ** min(self.failed_in_a_row - 1, _MOST_DOUBLINGS)
        return self.failed[-1] + timedelta(seconds=min(doubled, limits.most_back_off_s))

    def respects_until(self, limits: ControlLimits) -> datetime | None:
        """Until when a rescale by someone else is respected."""
        return None if self.someone_else is None else self.someone_else + timedelta(seconds=limits.respect_s)


def _of_a_day(times: tuple[datetime, ...], now: datetime) -> tuple[datetime, ...]:
    return tuple(one for one in times if (now - one).total_seconds() < DAY_S)


@dataclass(frozen=True)
class ControlStanding:
    """What beside the metrics decides whether an action is allowed."""

    now: datetime
    history: ActionHistory
    stopped: str | None = None
    """Who stopped it and why, in words."""
    failing_checkpoints: int = 0
    """Checkpoints that failed in a row, those that do not end included."""


def hold(limits: ControlLimits, standing: ControlStanding) -> Hold | None:
    """The first limit that forbids a rescale now; None if it is allowed."""
    return next(_holds(limits, standing), None)


def _holds(limits: ControlLimits, standing: ControlStanding) -> Iterator[Hold]:
    now, history = standing.now, standing.history
    if standing.stopped is not None:
        yield Hold("stopped", standing.stopped)
    for window in limits.freeze:
        if window.holds(now.astimezone(UTC).time()):
            yield Hold("freeze", f"nothing is rescaled in the window {window}")
    if (until := history.respects_until(limits)) is not None and now < until:
        yield Hold("person", f"someone else rescaled the job, which is respected until {until:%H:%M:%S} UTC")
    if (until := history.backs_off_until(limits)) is not None and now < until:
        times = "time" if history.failed_in_a_row == 1 else "times in a row"
        yield Hold(
            "back-off", f"rescaling failed {history.failed_in_a_row} {times}; it waits until {until:%H:%M:%S} UTC"
        )
    if standing.failing_checkpoints >= limits.failed_checkpoints:
        yield Hold("checkpoints", f"the last {standing.failing_checkpoints} checkpoints failed or do not end")
    if limits.rescales_a_day is not None and history.in_a_day(now) >= limits.rescales_a_day:
        yield Hold("rescales-a-day", f"all {limits.rescales_a_day} rescales of 24 hours are used up")
    if history.rescales and (left := limits.least_between_s - (now - history.rescales[-1]).total_seconds()) > 0:
        yield Hold("interval", f"the last rescale is less than {limits.least_between_s:g} s ago; {left:.0f} s are left")
