"""Events of rate changes, stored permanently: rate-changes/<job>/v000003-000001.json, ...

An event is stored once, with an exclusive create: if two processes follow the same job, one of them stores it, and a
restarted process knows the earlier events. The run that acts on an event first creates `v000003-000001-taken.json`, so
that an event may be sent again when its delivery is uncertain, but is acted on once.
"""

import re
from datetime import datetime
from typing import Final, Literal

from pydantic import Field

from models.scaling.rate_band import RateChange
from models.schema import SCHEMA_VERSION, Format, Name, PositiveInt
from pipelines.store.workspace import Damaged, Missing, Workspace, to_json

FOLDER: Final = "rate-changes"
_KEY: Final = re.compile(rf"{FOLDER}/[A-Za-z0-9][A-Za-z0-9._-]*/v\d{{6,}}-\d{{6,}}\.json")
_FILE: Final = re.compile(r"v(\d{6,})-(\d{6,})\.json")


class RateChangeEvent(Format):
    """A change of a job's source rate that triggers a replan."""

    schema_version: Literal[1] = Field(SCHEMA_VERSION, description="Version of this format.")
    job: Name = Field(description="Job whose source rate changed.")
    plan_version: PositiveInt = Field(description="Version of the plan that was in force.")
    number: PositiveInt = Field(description="Counts the events while that version was in force.")
    reported_at: datetime = Field(description="ISO 8601, UTC.")
    origin: str = Field(description="Where the rate was read, in words.")
    change: RateChange = Field(description="The old and the new rate, and the evidence.")

    @property
    def key(self) -> str:
        """Workspace key."""
        return f"{FOLDER}/{self.job}/v{self.plan_version:06d}-{self.number:06d}.json"


class TakenEvent(Format):
    """The run that acts on a change."""

    schema_version: Literal[1] = SCHEMA_VERSION
    by: str


def keep_event(workspace: Workspace, event: RateChangeEvent) -> bool:
    """Store an event; False if one with that number exists."""
    try:
        workspace.create_bytes(event.key, to_json(event))
    except FileExistsError:
        return False
    return True


def last_event(workspace: Workspace, job: str) -> RateChangeEvent | None:
    """The newest event of a job; damaged files are skipped, but their numbers stay used."""
    for *_, key in reversed(_event(workspace, job)):
        try:
            return workspace.read(key, RateChangeEvent)
        except Damaged:
            continue
    return None


def event_keys(workspace: Workspace, job: str) -> list[str]:
    """Keys of the events of a job, the oldest first."""
    return [key for *_, key in _event(workspace, job)]


def next_number(workspace: Workspace, job: str, plan_version: int) -> int:
    """Number of the next event while a version is in force."""
    return 1 + max((number for version, number, _ in _event(workspace, job) if version == plan_version), default=0)


def take(workspace: Workspace, key: str, by: str) -> bool:
    """Whether `by` may act on the change with this key: the first one to ask may, also when it asks again."""
    mark = _mark(key)
    try:
        workspace.create_bytes(mark, to_json(TakenEvent(by=by)))
    except FileExistsError:
        return workspace.read(mark, TakenEvent).by == by
    return True


def is_change(key: str) -> bool:
    """Whether this is the form of a change's key; the change need not exist."""
    return _KEY.fullmatch(key) is not None


def event_cause(workspace: Workspace, key: str) -> str | None:
    """The reason of a replan, in words; None if the change does not exist."""
    if not is_change(key):
        return None
    try:
        event = workspace.read(key, RateChangeEvent)
    except (Missing, Damaged):
        return None
    change = event.change
    return (
        f"triggered by {key}: the source rate was {change.new_rate:,.1f} records/s, {len(change.samples)} times in a row "
        f"outside of {change.low:,.1f} to {change.high:,.1f}, the band around {change.old_rate:,.1f} ({event.origin})"
    )


def is_taken(workspace: Workspace, key: str) -> bool:
    return workspace.exists(_mark(key))


def _mark(key: str) -> str:
    return f"{key.removesuffix('.json')}-taken.json"


def _event(workspace: Workspace, job: str) -> list[tuple[int, int, str]]:
    matches = ((_FILE.fullmatch(key.rpartition("/")[2]), key) for key in workspace.list(f"{FOLDER}/{job}"))
    return sorted((int(match[1]), int(match[2]), key) for match, key in matches if match)
