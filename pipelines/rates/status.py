"""The state of following a job's source rate: rate-status/<job>.json, written when it changes."""

from datetime import datetime
from typing import Final, Literal

from pydantic import Field

from models.schema import SCHEMA_VERSION, Format, Name
from pipelines.store.workspace import Damaged, Workspace

_FOLDER: Final = "rate-status"
State = Literal["followed", "unreadable", "held", "pinned"]


class RateStatus(Format):
    """Whether the source rate of a job is followed now."""

    schema_version: Literal[1] = Field(SCHEMA_VERSION, description="Version of this format.")
    job: Name = Field(description="Job whose source rate is followed.")
    state: State = Field(
        description="'unreadable': it cannot be read; 'held': the rate read is what an overloaded job achieves, or one "
        "that may be catching up, so it is not reported; 'pinned': a person keeps the job at a version of its plan."
    )
    since: datetime = Field(description="When this state began: ISO 8601, UTC.")
    reason: str = Field("", description="Why, in words; empty while the rate is followed.")


def keep_status(workspace: Workspace, job: str, state: State, reason: str, now: datetime) -> None:
    """Store the state; its start time stays for as long as the state lasts."""
    before = read_status(workspace, job)
    if before is not None and (before.state, before.reason) == (state, reason):
        return
    since = before.since if before is not None and before.state == state else now
    workspace.write(_key(job), RateStatus(job=job, state=state, since=since, reason=reason))


def read_status(workspace: Workspace, job: str) -> RateStatus | None:
    """The state; None if the rate was never followed, or the record is damaged."""
    try:
        return workspace.read(_key(job), RateStatus) if workspace.exists(_key(job)) else None
    except Damaged:
        return None


def _key(job: str) -> str:
    return f"{_FOLDER}/{job}.json"
