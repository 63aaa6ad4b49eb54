"""Whether an autopilot in the mode `approved` may act: a person's answer, which holds for the rules that it was given for.

autopilots/J/asked-DIGEST.json   the question has been sent; created exclusively
autopilots/J/permission.json     the newest answer
"""

from datetime import datetime
from typing import Literal

from pydantic import Field

from models.schema import SCHEMA_VERSION, Format, Label, Name
from pipelines.inputs.operations.autopiloting import Autopiloting
from pipelines.store.digests import digest
from pipelines.store.workspace import Missing, Workspace, to_json


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
    try:
        found = workspace.read(_key(job), AutopilotPermission)
    except Missing:
        return None
    return found if found.rules == rules_digest(rules) else None


def keep_permission(workspace: Workspace, permission: AutopilotPermission) -> None:
    """Store an answer, in place of an earlier one."""
    workspace.write(_key(permission.job), permission)


def begin_question(workspace: Workspace, job: str, rules: Autopiloting, now: datetime) -> bool:
    """Whether the question for these rules is to be sent now: once, by one process."""
    asked = AskedPermission(job=job, asked_at=now)
    try:
        workspace.create_bytes(f"autopilots/{job}/asked-{rules_digest(rules)}.json", to_json(asked))
    except FileExistsError:
        return False
    return True


def _key(job: str) -> str:
    return f"autopilots/{job}/permission.json"
