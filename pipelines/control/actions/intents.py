"""The journal of actions: each is written down before it is begun, and again when its end is recorded.

    autopilot/J/intents/NUMBER.json                what is about to be done; the decision's record names this number
    autopilot/J/intents/NUMBER-savepoint.json      the savepoint of a restart
    autopilot/J/intents/NUMBER-taking-back.json    the former tasks are about to be requested again
    autopilot/J/intents/NUMBER-taking-back-resource.json  they are about to be written into the FlinkDeployment again
    autopilot/J/intents/NUMBER-ended.json          its decision is recorded

An action that has no end is resumed by whoever holds the lease next. Each of its steps is idempotent: requirements are set to
the same value again; a savepoint and the job that starts from it have ids that the intent fixes, which Flink accepts once; a
FlinkDeployment has the intent's mark in it.
"""

import re
from datetime import datetime
from typing import Final, Literal

from pydantic import Field

from models.plan.parts import Placement
from models.schema import SCHEMA_VERSION, Format, Name, NonNegative, PositiveInt
from pipelines.control.record import Method, PolicyAdvice
from pipelines.store.workspace import Workspace, to_json

_FILE: Final = re.compile(r"(?P<number>\d{9,})(?P<step>-[a-z-]+)?\.json")
_ENDED: Final = "-ended"
TAKING_BACK: Final = "-taking-back"
RESOURCE_TAKING_BACK: Final = "-taking-back-resource"
SAVEPOINT: Final = "-savepoint"


class IntendedResource(Format):
    """The FlinkDeployment that an action changes, as it was when the action was intended."""

    reference: str = Field(description="NAMESPACE/NAME.")
    context: str | None = Field(description="Of the kubeconfig, or connection:NAME; null: the current one.")
    generation: PositiveInt = Field(description="Of the spec; one that was changed since is left alone.")
    error: str | None = Field(description="The operator's error, which is not of this action.")


class IntendedPlacement(Format):
    """What the cluster's placement hook is given, and what it had before."""

    file: str = Field(description="That the hook reads.")
    lines: str = Field(description="Its new content.")
    before: str = Field(description="Its content before.")
    tasks: Placement = Field(description="TaskManager -> vertex, by name -> number of its tasks there.")


class Intent(Format):
    """An action that is about to be taken."""

    schema_version: Literal[1] = SCHEMA_VERSION
    job: Name
    number: PositiveInt
    fence: PositiveInt
    intended_at: datetime
    flink_job: str
    method: Method
    purpose: Literal["rescale", "roll-back"]
    why: str
    names: dict[str, Name] = Field(description="Name of each vertex by id.")
    before: dict[str, PositiveInt] = Field(description="Tasks by vertex id.")
    wanted: dict[str, PositiveInt] = Field(description="Tasks by vertex id.")
    required_before: dict[str, PositiveInt] | None = Field(
        description="Requested tasks by vertex id before (in place)."
    )
    resource: IntendedResource | None = Field(
        None, description="Where a FlinkDeployment is changed: through it (resource), or after Flink (in place)."
    )
    placement: IntendedPlacement | None = Field(None, description="Where the tasks go (in place); null: Flink decides.")
    not_placed: str | None = Field(
        None, description="Why Flink decides where the tasks go, although there is a placement hook."
    )
    savepoint_trigger: str = Field(description="Id of the savepoint's request (restart).")
    new_job: str = Field(description="Flink's id of the job that is started (restart).")
    former_job: str = Field(description="Flink's id of the job that is started if it is taken back (restart).")
    settings: dict[str, str] = Field(default_factory=dict, description="Flink settings that change (restart).")
    advice: PolicyAdvice | None
    decision_s: NonNegative
    cut: str | None = None


class IntentStep(Format):
    """A step of an action that was reached."""

    schema_version: Literal[1] = SCHEMA_VERSION
    at: datetime
    said: str = ""


class IntentJournal:
    """The intents of one job."""

    def __init__(self, workspace: Workspace, job: str) -> None:
        self._workspace, self._folder = workspace, f"autopilot/{job}/intents"

    def holds(self, intent: Intent) -> bool:
        """Store it, exclusively, unless it is; False if another one has its number."""
        try:
            self._workspace.create_bytes(self._key(intent.number), to_json(intent))
        except FileExistsError:
            return self._workspace.read(self._key(intent.number), Intent).new_job == intent.new_job
        return True

    def mark(self, number: int, step: str, step_reached: IntentStep) -> None:
        """Note that a step of it was reached."""
        self._workspace.write(self._key(number, step), step_reached)

    def marked(self, number: int, step: str) -> IntentStep | None:
        key = self._key(number, step)
        return self._workspace.read(key, IntentStep) if self._workspace.exists(key) else None

    def begun(self, number: int) -> bool:
        """Whether a step of it was noted."""
        return bool(self._steps().get(number, set()) - {""})

    def end(self, number: int, at: datetime) -> None:
        self.mark(number, _ENDED, IntentStep(at=at))

    def open_intent(self) -> Intent | None:
        """The action that has no end; there is at most one."""
        found = self._steps()
        unended = [number for number, steps in found.items() if _ENDED not in steps]
        return self._workspace.read(self._key(max(unended)), Intent) if unended else None

    def newest_number(self) -> int:
        return max(self._steps(), default=0)

    def _steps(self) -> dict[int, set[str]]:
        found: dict[int, set[str]] = {}
        for key in self._workspace.list(self._folder):
            if match := _FILE.fullmatch(key.rpartition("/")[2]):
                found.setdefault(int(match["number"]), set()).add(match["step"] or "")
        return found

    def _key(self, number: int, step: str = "") -> str:
        return f"{self._folder}/{number:09d}{step}.json"
