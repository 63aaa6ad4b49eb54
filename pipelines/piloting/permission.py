"""Whether an autopilot in the mode `approved` may act: a person's answer, which holds for the rules that it was given for.

autopilots/J/asked-DIGEST.json        when the question about these rules was sent; created exclusively
autopilots/J/permission-DIGEST.json   the newest answer to it
autopilots/J/permission.json          the newest answer to any, from when there was one of a job
"""

from contextlib import suppress
from datetime import datetime
from typing import Final, Literal

from pydantic import Field

from models.schema import SCHEMA_VERSION, Format, Label, Name
from pipelines.inputs.operations.autopiloting import Autopiloting
from pipelines.store.digests import digest
from pipelines.store.workspace import Missing, Workspace, to_json

_LATE_S: Final = 3600.0
"""A question begins after its event was sent, and no answer in time is stored a little after that, as a rejection, seconds."""


class AutopilotPermission(Format):
    """A person's answer to whether an autopilot may act."""

    schema_version: Literal[1] = Field(SCHEMA_VERSION, description="Version of this format.")
    job: Name = Field(description="Job.")
    rules: str = Field(description="SHA-256 of the rules that it was given for.")
    granted: bool = Field(description="Whether it may act.")
    by: Label = Field(description="Who answered.")
    answered_at: datetime = Field(description="ISO 8601, UTC.")


class AskedPermission(Format):
    """A question that was sent."""

    schema_version: Literal[1] = Field(SCHEMA_VERSION, description="Version of this format.")
    job: Name = Field(description="Job.")
    asked_at: datetime = Field(description="ISO 8601, UTC.")


def rules_digest(rules: Autopiloting) -> str:
    """What a permission holds for: where the autopilot acts, by which policy, and within which limits."""
    later = (
        {"kubernetes", "context", "through"} if rules.kubernetes is None else set()
    )  # permissions are older than these
    return digest(rules.model_copy(update={"approval_s": 1.0}).model_dump(mode="json", by_alias=True, exclude=later))


def permission_of(workspace: Workspace, job: str, rules: Autopiloting) -> AutopilotPermission | None:
    """The answer for these rules; None if there is none yet. Raises Damaged."""
    wanted = rules_digest(rules)
    for key in (_key(job, wanted), f"autopilots/{job}/permission.json"):
        with suppress(Missing):
            found = workspace.read(key, AutopilotPermission)
            if found.rules == wanted:
                return found
    return None


def keep_permission(workspace: Workspace, permission: AutopilotPermission) -> None:
    """Store an answer, in place of an earlier one for the same rules."""
    workspace.write(_key(permission.job, permission.rules), permission)


def begin_question(workspace: Workspace, job: str, rules: Autopiloting, now: datetime) -> bool:
    """Whether the question for these rules is to be sent now: once, by one process, and again where no answer came of it."""
    if permission_of(workspace, job, rules) is not None:
        return False
    key, asked = f"autopilots/{job}/asked-{rules_digest(rules)}.json", AskedPermission(job=job, asked_at=now)
    try:
        workspace.create_bytes(key, to_json(asked))
    except FileExistsError:
        before = workspace.read(key, AskedPermission)
        if (now - before.asked_at).total_seconds() < rules.approval_s + _LATE_S:
            return False
        workspace.write(key, asked)
    return True


def _key(job: str, rules: str) -> str:
    return f"autopilots/{job}/permission-{rules}.json"
