"""Scheduled changes that replans were asked for: calendar-changes/<job>/20261127T065500Z-3000.json, ...

Named by when it was due and its rate, and created exclusively, so that a change is asked for once, however many processes
follow the calendar and however often its schedule is made again. The run that acts on it takes it as it takes a rate change.
"""

import re
from datetime import datetime
from typing import Final, Literal
from zoneinfo import ZoneInfo

from pydantic import Field

from models.calendar.schedule import ScheduledRate
from models.schema import SCHEMA_VERSION, Format, Name, PositiveInt
from models.wording import amount
from pipelines.store.workspace import Damaged, Missing, Workspace, to_json

FOLDER: Final = "calendar-changes"
_NAME: Final = r"\d{8}T\d{6}Z-\d+"
_KEY: Final = re.compile(rf"{FOLDER}/[A-Za-z0-9][A-Za-z0-9._-]*/{_NAME}\.json")
_FILE: Final = re.compile(rf"{_NAME}\.json")
RECENT: Final = 50
"""Newest changes among which the last one is looked for."""


class CalendarChange(Format):
    """A change that the calendar of a job asks for."""

    schema_version: Literal[1] = Field(SCHEMA_VERSION, description="Version of this format.")
    job: Name = Field(description="Job of the calendar.")
    plan_version: PositiveInt = Field(description="Version of the plan that was in force.")
    old_rate: float = Field(gt=0, description="Rate of that plan, records/s.")
    reported_at: datetime = Field(description="ISO 8601, UTC.")
    time_zone: str = Field(description="IANA time zone of the calendar.")
    scheduled: ScheduledRate = Field(description="The rate to plan for.")

    @property
    def key(self) -> str:
        """Workspace key."""
        return change_key(self.job, self.scheduled)

    @property
    def cause(self) -> str:
        """The reason of a replan, in words."""
        return f"calendar: {in_words(self.scheduled, ZoneInfo(self.time_zone))}; triggered by {self.key}"


def in_words(scheduled: ScheduledRate, zone: ZoneInfo) -> str:
    """What a rate is scheduled for: `Black Friday from 08:00 on Fri 27 Nov 2026`."""
    begins = scheduled.event_begins_at
    if scheduled.event is not None and begins is not None:
        return f"{scheduled.event} from {begins.astimezone(zone):%H:%M on %a %d %b %Y} ({zone.key})"
    at = f"{scheduled.rises_at.astimezone(zone):%H:%M on %a %d %b %Y} ({zone.key})"
    return f"season, {amount(scheduled.rate)} records/s at {at}"


def for_what(scheduled: ScheduledRate, zone: ZoneInfo) -> str:
    """The same for a table: `Black Friday at Fri 08:00`."""
    begins = scheduled.event_begins_at or scheduled.rises_at
    return f"{scheduled.event or 'season'} at {begins.astimezone(zone):%a %H:%M}"


def change_key(job: str, scheduled: ScheduledRate) -> str:
    """Workspace key of the change to a scheduled rate."""
    return f"{FOLDER}/{job}/{scheduled.starts_at:%Y%m%dT%H%M%SZ}-{scheduled.rate:.0f}.json"


def keep_change(workspace: Workspace, change: CalendarChange) -> bool:
    """Store a change; False if it exists."""
    try:
        workspace.create_bytes(change.key, to_json(change))
    except FileExistsError:
        return False
    return True


def last_change(workspace: Workspace, job: str) -> CalendarChange | None:
    """The one that was asked for last; damaged files are skipped."""
    names = [key for key in workspace.list(f"{FOLDER}/{job}") if _FILE.fullmatch(key.rpartition("/")[2])]
    found = [change for key in names[-RECENT:] if (change := read_change(workspace, key)) is not None]
    return max(found, key=lambda change: change.reported_at, default=None)


def changes_since(workspace: Workspace, job: str, since: datetime) -> dict[str, CalendarChange]:
    """The changes that were due at or after an instant (UTC), by key; damaged files are skipped."""
    first = f"{since:%Y%m%dT%H%M%SZ}"
    names = [key for key in workspace.list(f"{FOLDER}/{job}") if _FILE.fullmatch(key.rpartition("/")[2])]
    recent = (key for key in names if key.rpartition("/")[2] >= first)
    return {key: change for key in recent if (change := read_change(workspace, key)) is not None}


def read_change(workspace: Workspace, key: str) -> CalendarChange | None:
    """A change by its key; None if this is no such key, or the file is missing or damaged."""
    if not is_calendar_change(key):
        return None
    try:
        return workspace.read(key, CalendarChange)
    except (Missing, Damaged):
        return None


def is_calendar_change(key: str) -> bool:
    """Whether this is the form of a scheduled change's key; the change need not exist."""
    return _KEY.fullmatch(key) is not None
