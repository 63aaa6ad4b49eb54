"""Where an autopilot keeps what it knows, by job.

    autopilots/J/state.json                  its state: who runs it, since when, and the newest round
    autopilots/J/stopped.json                the stop switch: while it is there, nothing is rescaled
    autopilot/J/decisions/DATE/NUMBER.json   a decision; created exclusively, never changed
    autopilot/J/leases/NUMBER.json           the right to act; the highest number has it
    autopilot/J/intents/NUMBER.json          an action that is about to be taken; NUMBER-ended.json once its end is recorded

Readers need no lock: a file is there whole or not at all.
"""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Final, Literal, TypeVar

from pydantic import Field

from models.scaling.control.limits import ControlLimits
from models.schema import SCHEMA_VERSION, Format, Label, Name, NonNegative, PositiveInt
from pipelines.control.record import AutopilotDecision
from pipelines.store.workspace import Missing, Workspace, to_json

STATES: Final = "autopilots"
FOLDER: Final = "autopilot"
_STATE: Final = re.compile(rf"{STATES}/(?P<job>[^/]+)/state\.json")
_DECISION: Final = re.compile(r"(?P<day>\d{4}-\d\d-\d\d)/(?P<number>\d{9,})\.json")

_Format = TypeVar("_Format", bound=Format)
Phase = Literal["observing", "acting", "stopped", "ended"]
"""observing: it may act; acting: a rescale is under way; stopped: by the switch; ended: its process is."""


class AutopilotState(Format):
    """The newest state of a job's autopilot; replaced every few seconds while it runs."""

    schema_version: Literal[1] = Field(SCHEMA_VERSION, description="Version of this format.")
    job: Name = Field(description="Job, as the autopilot was named for it.")
    flink_url: str = Field(description="REST address of the Flink, without a password, or connection:NAME.")
    flink_name: Label = Field(description="Name or id of the job on that Flink.")
    flink_job: str | None = Field(None, description="Flink's id of the job; null before it was found.")
    resource: str | None = Field(None, description="NAMESPACE/NAME of the FlinkDeployment that it changes, if any.")
    policy: str = Field(description="Name of the policy.")
    settings: dict[str, str | float | bool] = Field(description="What its settings differ from the defaults in.")
    dry_run: bool = Field(description="Whether it changes nothing.")
    limits: ControlLimits = Field(description="What it may do at most.")
    phase: Phase = Field(description="What it does now.")
    fence: PositiveInt = Field(description="Number of its lease.")
    holder: str = Field(description="Process and host that run it.")
    started_at: datetime = Field(description="ISO 8601, UTC.")
    beat_at: datetime = Field(
        description="When this was written, ISO 8601, UTC; older than half a minute: it has ended or hangs."
    )
    every_s: NonNegative = Field(description="Time between two rounds.")
    required: dict[str, PositiveInt] | None = Field(
        None, description="Requested tasks by vertex id, as seen or set last; null where Flink takes no such request."
    )
    rescales_in_a_day: int = Field(ge=0, description="Rescales in the last 24 hours, rolled-back ones included.")
    rolled_back_in_a_day: int = Field(ge=0, description="Those of them that failed or were rolled back.")
    backing_off_until: datetime | None = Field(None, description="After rescales that failed; null if it is not.")
    respects_until: datetime | None = Field(None, description="After a rescale by someone else; null if it does not.")
    newest: AutopilotDecision | None = Field(
        description="The newest round, which need not have a record of its own; null before the first."
    )


class StopSwitch(Format):
    """Keeps an autopilot from acting, until it is removed."""

    schema_version: Literal[1] = Field(SCHEMA_VERSION, description="Version of this format.")
    job: Name = Field(description="Job, as the autopilot was named for it.")
    by: Label = Field(description="Who stopped it.")
    reason: str = Field("", description="Why.")
    stopped_at: datetime = Field(description="ISO 8601, UTC.")


class AutopilotFiles:
    """The files of one job's autopilot."""

    def __init__(self, workspace: Workspace, job: str) -> None:
        self.workspace, self.job = workspace, job
        self._folder = f"{FOLDER}/{job}/decisions"

    # --- state and switch

    def state(self) -> AutopilotState | None:
        """The newest state; None if no autopilot has run.

        Raises:
            Damaged: the file is truncated or not valid.
        """
        return _read_or_none(self.workspace, _state_key(self.job), AutopilotState)

    def keep_state(self, state: AutopilotState) -> None:
        self.workspace.write(_state_key(self.job), state)

    def switch(self) -> StopSwitch | None:
        """The stop switch; None while the autopilot may act. Raises Damaged."""
        return _read_or_none(self.workspace, _switch_key(self.job), StopSwitch)

    def stop(self, switch: StopSwitch) -> StopSwitch:
        """Keep the autopilot from acting, if it is not stopped already; returns the switch that holds."""
        try:
            self.workspace.create_bytes(_switch_key(self.job), to_json(switch))
        except FileExistsError:
            return self.switch() or switch
        return switch

    def resume(self) -> bool:
        """Let the autopilot act again; False if it was not stopped."""
        was = self.workspace.exists(_switch_key(self.job))
        self.workspace.delete(_switch_key(self.job))
        return was

    # --- decisions

    def keep(self, decision: AutopilotDecision) -> str:
        """Store a decision permanently. Returns its key.

        Raises:
            FileExistsError: a decision with this number exists.
        """
        day = decision.decided_at.date().isoformat()
        key = f"{self._folder}/{day}/{decision.number:09d}.json"
        self.workspace.create_bytes(key, to_json(decision))
        return key

    def decisions(self, since: datetime | None = None, after: int = 0) -> Iterator[AutopilotDecision]:
        """Decisions, the first one first, read one by one.

        Args:
            since: those taken at that time or later; only the folders of these days are listed.
            after: those with a higher number.

        Raises:
            Damaged: a file is truncated or not valid.
        """
        for number, key in self._all(since):
            if number > after:
                decision = self.workspace.read(key, AutopilotDecision)
                if since is None or decision.decided_at >= since:
                    yield decision

    def newest_number(self) -> int:
        """Of the stored decisions; 0 without any."""
        return max((number for number, _ in self._all(None)), default=0)

    def _all(self, since: datetime | None) -> list[tuple[int, str]]:
        """Number and key of the decisions from a day on, in the order of their numbers."""
        folders = [self._folder] if since is None else [f"{self._folder}/{day}" for day in _days(since)]
        keys = [key for folder in folders for key in self.workspace.list(folder)]
        found = ((_DECISION.fullmatch(key.removeprefix(f"{self._folder}/")), key) for key in keys)
        return sorted((int(match["number"]), key) for match, key in found if match)


def _days(since: datetime) -> list[date]:
    """UTC days from a time to now; one more for writers whose clocks are ahead."""
    first, last = since.astimezone(UTC).date(), datetime.now(UTC).date() + timedelta(days=1)
    return [first + timedelta(days=n) for n in range((last - first).days + 1)]


def autopilot_jobs(workspace: Workspace) -> list[str]:
    """Jobs that have, or had, an autopilot."""
    matches = map(_STATE.fullmatch, workspace.list(STATES))
    return [match["job"] for match in matches if match]


def _state_key(job: str) -> str:
    return f"{STATES}/{job}/state.json"


def _switch_key(job: str) -> str:
    return f"{STATES}/{job}/stopped.json"


def _read_or_none(workspace: Workspace, key: str, model: type[_Format]) -> _Format | None:
    try:
        return workspace.read(key, model)
    except Missing:
        return None
