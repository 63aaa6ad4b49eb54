"""Pins: a job whose plan was rolled back keeps that plan until a person releases it; pins/<job>.json."""

from typing import Final, Literal

from pydantic import Field, TypeAdapter, ValidationError

from models.errors import InvalidInput
from models.schema import SCHEMA_VERSION, Format, Name, PositiveInt
from pipelines.store.workspace import Damaged, Missing, Workspace

FOLDER: Final = "pins"
_NAME: Final[TypeAdapter[str]] = TypeAdapter(Name)


class PlanPin(Format):
    """Holds a job at a version of its plan."""

    schema_version: Literal[1] = Field(SCHEMA_VERSION, description="Version of this format.")
    job: Name = Field(description="Job of the plan.")
    version: PositiveInt = Field(description="Version of the plan that stays in force.")
    by: str = Field(min_length=1, description="Who pinned it.")
    reason: str = Field(min_length=1, description="Why, in words.")
    pinned_at: str = Field(description="ISO 8601, UTC.")

    def __str__(self) -> str:
        return f"{self.job} is pinned to version {self.version} of its plan by {self.by} since {self.pinned_at}: {self.reason}"


class PinnedJob(InvalidInput):
    """The job is pinned, so no other plan is made for it."""

    def __init__(self, pin: PlanPin) -> None:
        super().__init__(f"{pin}; no other plan is made until `sluice plans unpin {pin.job}`")
        self.pin = pin


def pin_of(workspace: Workspace, job: str) -> PlanPin | None:
    """The pin of a job; None if it has none. Raises Damaged if its file is invalid."""
    try:
        return workspace.read(_key(job), PlanPin)
    except Missing:
        return None


def check_unpinned(workspace: Workspace, job: str) -> None:
    """Raises PinnedJob if the job is pinned."""
    if (pin := pin_of(workspace, job)) is not None:
        raise PinnedJob(pin)


def keep_pin(workspace: Workspace, pin: PlanPin) -> PlanPin | None:
    """Pin the job; returns the pin that this one replaces, None if there is none, or a damaged one."""
    before = _intact_pin(workspace, pin.job)
    workspace.write(_key(pin.job), pin)
    return before


def release_pin(workspace: Workspace, job: str) -> PlanPin | None:
    """Remove the pin of a job, even a damaged one, and return it; None if the job was not pinned, or its pin is damaged."""
    pin = _intact_pin(workspace, job)
    workspace.delete(_key(job))
    return pin


def _intact_pin(workspace: Workspace, job: str) -> PlanPin | None:
    try:
        return pin_of(workspace, job)
    except Damaged:
        return None


def _key(job: str) -> str:
    try:
        _NAME.validate_python(job)
    except ValidationError:
        raise InvalidInput(
            f"the name of a job must be letters, digits and . _ - and begin with a letter or digit, but got {job!r}"
        ) from None
    return f"{FOLDER}/{job}.json"
