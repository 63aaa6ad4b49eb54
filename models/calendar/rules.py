"""The calendar of a job: what is known of its source rate ahead of time, and when its plan may change."""

from datetime import UTC, date, datetime
from typing import Annotated, Any, Final, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from croniter import CroniterError, croniter
from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from models.scaling.control.limits import DAY_S, FreezeWindow
from models.scaling.rate_band import MOST_RATE
from models.schema import Format, Name, NonNegative, Positive

GRID_S: Final = 300
"""Schedules are made on a grid of five minutes: the offsets of all time zones are multiples of it."""
_ANY_DAY: Final = datetime(2024, 1, 1)
MOST_EVENTS: Final = 1000


def _time_as_text(value: Any) -> Any:
    if not isinstance(value, str | date):
        raise ValueError(f"it must be a date and time such as 2026-11-27T08:00, but got {value!r}")
    return value


def _known_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # the last one for a folder of zones
        raise ValueError(f"{name!r} is not a time zone of the IANA database, such as Europe/Berlin or UTC") from None
    return name


def _cron(expression: str) -> str:
    if len(expression.split()) != 5:
        raise ValueError("it must have five fields: minute, hour, day of the month, month, day of the week")
    try:
        croniter(expression, _ANY_DAY).get_next(datetime)
    except (CroniterError, ValueError) as error:
        raise ValueError(f"{expression!r} names no time: {error}") from None
    return expression


def instant(at: datetime, zone: ZoneInfo, last: bool = False) -> datetime:
    """The instant, in UTC, of a time on the wall clock of a zone; a time with an offset is an instant already.

    A time that the clock skips in spring is the one as much later as the clock jumps (RFC 5545); of one that it shows twice in
    autumn it is the first, or the `last`.
    """
    return (at if at.tzinfo is not None else at.replace(tzinfo=zone, fold=int(last))).astimezone(UTC)


WallTime = Annotated[datetime, BeforeValidator(_time_as_text)]
ZoneName = Annotated[str, AfterValidator(_known_zone)]
Cron = Annotated[str, AfterValidator(_cron)]


class DatedFreeze(Format):
    """A time, by its dates, in which no plan changes."""

    begin: WallTime = Field(description="Begin: in the calendar's time zone, unless it has an offset.")
    end: WallTime = Field(description="End, likewise.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        _check_order(self.begin, self.end)
        return self


class StatedEvent(Format):
    """A time in which more, or fewer, records arrive than the season has: once, or repeated."""

    name: str = Field(min_length=1, max_length=120, description="Its name, for people.")
    start: WallTime | None = Field(
        None, description="Begin of an event that is once: in the calendar's time zone, unless it has an offset."
    )
    end: WallTime | None = Field(None, description="Its end, likewise.")
    cron: Cron | None = Field(
        None,
        description="When an event begins that is repeated: minute, hour, day of the month, month and day of the week, on the "
        "clock of the calendar's time zone.",
    )
    duration_s: float | None = Field(
        None, gt=0, le=31 * DAY_S, description="How long it lasts, instead of an end, seconds."
    )
    factor: float | None = Field(None, gt=0, le=1000, description="Factor on the rate of the season meanwhile.")
    rate: float | None = Field(
        None, gt=0, le=MOST_RATE, description="Or the least rate to plan for meanwhile, records/s."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        for one, other in (("start", "cron"), ("end", "duration_s"), ("factor", "rate")):
            given = [name for name in (one, other) if getattr(self, name) is not None]
            if len(given) != 1:
                raise ValueError(
                    f"exactly one of {one!r} and {other!r} must be given, but {'both are' if given else 'neither is'}"
                )
        if self.end is not None:
            if self.start is None:
                raise ValueError("an event that is repeated lasts for 'duration_s'; it has no 'end'")
            _check_order(self.start, self.end)
        return self


class Calendar(Format):
    """Plan ahead: which rate is planned for when, by the season of the rate and by stated events."""

    time_zone: ZoneName = Field("UTC", description="IANA time zone of seasons, events and dates: Europe/Berlin.")
    history: Name | None = Field(
        None,
        description="CSV file beside this one with the columns `time` (ISO 8601) and `rate` (records/s), from which the season "
        "is learnt; default: the samples of the running job, as `operations.observe` stores them.",
    )
    base_rate: Positive | None = Field(
        None, le=MOST_RATE, description="Rate without any season, instead of a history, records/s."
    )
    quantile: float = Field(
        0.95,
        gt=0,
        le=1,
        description="Of the rates seen at the same time of the day, or of the week, the one planned for.",
    )
    step_s: float = Field(
        900.0, ge=GRID_S, le=3600, multiple_of=GRID_S, description="Length of a step of the season, seconds."
    )
    events: tuple[StatedEvent, ...] = Field(
        (), max_length=MOST_EVENTS, description="Stated events. Where several overlap, the highest rate counts."
    )
    before_s: NonNegative = Field(
        600.0, le=DAY_S, description="How long before the rate rises the plan for it is in force, seconds."
    )
    rescale_s: Positive | None = Field(
        None,
        le=DAY_S,
        description="Time from a scheduled change to the job that runs its plan, seconds; default: two minutes and the longest "
        "application of the last ten plans, or, if none was applied, `timeout_s` of `operations.apply`, or `deploy_s` of its "
        "`repository`.",
    )
    least_between_s: float = Field(
        3600.0, ge=0, le=DAY_S, description="Shortest time from one scheduled change to the next, seconds."
    )
    change_cost_s: NonNegative = Field(
        900.0,
        le=7 * DAY_S,
        description="What a change must save: as much as the plan for the highest rate costs in this time, seconds.",
    )
    freeze: tuple[FreezeWindow, ...] = Field((), description="Times of every day in which no plan changes, UTC.")
    freeze_dates: tuple[DatedFreeze, ...] = Field(
        (), max_length=MOST_EVENTS, description="Dates in which no plan changes."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.history is not None and self.base_rate is not None:
            raise ValueError("at most one of 'history' and 'base_rate' must be given, but both are")
        return self

    @property
    def zone(self) -> ZoneInfo:
        """The time zone itself."""
        return ZoneInfo(self.time_zone)


def _check_order(begin: datetime, end: datetime) -> None:
    if (begin.tzinfo is None) != (end.tzinfo is None):
        raise ValueError(f"begin and end must both have an offset, or neither, but got {begin} and {end}")
    if end <= begin:
        raise ValueError(f"an end must be after its begin, but got {begin} and {end}")
