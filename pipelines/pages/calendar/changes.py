"""The changes of a schedule, and what became of each: the replan that it asked for, and the version of the plan from that."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from pydantic import Field

from models.plan.content import Plan
from models.resources.price import UsdPerHourInAll
from models.schema import Format
from pipelines.calendar.costs import SizedRate
from pipelines.calendar.in_force import PlansInForce
from pipelines.calendar.record import CalendarChange, change_key, for_what
from pipelines.calendar.timeline import TimelineEntry

ChangeState = Literal["coming", "due", "in force", "replanned", "skipped"]
"""What became of a scheduled change.

coming     its time is yet to come
due        its time has come, and no version was published for it yet
in force   the plan in force is the one for it
replanned  a version was published for it, which is not in force now
skipped    its time is over, and no version was published for it
"""


class ScheduledChange(Format):
    """A change of the schedule."""

    due_at: datetime = Field(description="When its replan begins: ISO 8601, UTC.")
    runs_at: datetime = Field(description="When the job runs its plan, by the time of a change.")
    ends_at: datetime = Field(description="When the next change is due.")
    rate: float = Field(description="Rate to plan for, records/s at the sources together.")
    reason: str = Field(description="The event or the season that it is for, in words.")
    slots: int | None = Field(description="Slots of its version; of one to come by the model. None where unknown.")
    price_per_hour: UsdPerHourInAll | None = Field(description="USD, likewise. None where unknown.")
    state: ChangeState
    version: int | None = Field(description="The version that was published for it, or already was for its rate.")
    remark: str | None = Field(description="More about its state, in words.")


@dataclass(frozen=True)
class ChangeRecords:
    """What is stored of a job's changes."""

    job: str
    asked: Mapping[str, CalendarChange]
    """By key."""
    taken: frozenset[str]
    """Keys of those that a DAG run has taken."""
    plans: Sequence[Plan]
    """Versions that may have been published for them."""
    in_force: PlansInForce
    obstacle: str | None
    """Why no change is asked for now, in words; None if nothing is known to keep it."""


def scheduled_change(
    entry: TimelineEntry,
    records: ChangeRecords,
    sized: Mapping[float, SizedRate],
    now: datetime,
    rescale_s: float,
    zone: ZoneInfo,
) -> ScheduledChange:
    """A change with its state.

    Args:
        sized: what the plan for a rate takes; rates that are missing are unknown.
        now: UTC.
        rescale_s: time of a change, seconds.
    """
    state, version, remark = _state(entry, records, now)
    plan = next((one for one in records.plans if one.version == version), None)
    size = sized.get(entry.scheduled.rate)
    if plan is not None:
        slots: int | None = plan.total_slots
        price = None if plan.resources is None else plan.resources.price_per_hour
    else:
        slots, price = (None, None) if size is None else (size.slots, size.price_per_hour)
        remark = remark or (None if size is None else size.why_not)
    return ScheduledChange(
        due_at=entry.due_at,
        runs_at=entry.due_at + timedelta(seconds=rescale_s),
        ends_at=entry.ends_at,
        rate=entry.scheduled.rate,
        reason=for_what(entry.scheduled, zone),
        slots=slots,
        price_per_hour=price,
        state=state,
        version=version,
        remark=remark,
    )


def _state(entry: TimelineEntry, records: ChangeRecords, now: datetime) -> tuple[ChangeState, int | None, str | None]:
    if entry.due_at > now:
        return "coming", None, None
    key = change_key(records.job, entry.scheduled)
    asked, version = records.asked.get(key), _published_for(key, records.plans)
    is_over, running = entry.ends_at <= now, records.in_force.at(now)
    if version is not None:
        if not is_over and running is not None and running.version == version:
            return "in force", version, None
        other = None if is_over or running is None else f"version {running.version} is in force"
        return "replanned", version, other
    if is_over:
        return "skipped", *_why_skipped(entry, records, asked)
    if running is not None and running.rate == entry.scheduled.rate:
        return "in force", running.version, None
    if asked is None:
        return "due", None, records.obstacle or "not asked for yet"
    taken = "a run of the DAG replan has taken it" if key in records.taken else "no run of the DAG replan has taken it"
    return "due", None, f"asked for; {taken}"


def _why_skipped(entry: TimelineEntry, records: ChangeRecords, asked: CalendarChange | None) -> tuple[int | None, str]:
    """The version that made the change needless, if there was one, and the cause in words."""
    for one in records.in_force.periods:
        if one.rate == entry.scheduled.rate and one.begin < entry.ends_at and one.end > entry.due_at:
            return one.version, f"version {one.version} was for this rate already"
    return None, "no change was asked for" if asked is None else "it was asked for, and no version for it is known"


def _published_for(key: str, plans: Sequence[Plan]) -> int | None:
    """The version whose first reason is the change; a rollback keeps that reason, but not as its first."""
    ending = f"triggered by {key}"
    return next((plan.version for plan in plans if plan.reasons and plan.reasons[0].endswith(ending)), None)
