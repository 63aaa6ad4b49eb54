"""What is reported of an autopilot: rescales that were done or failed, that a person must let it act, and that more records
were late than may be.

autopilots/J/budget-spent-DAY.json   this was reported on that day; created exclusively
"""

from datetime import datetime
from typing import Final, Literal

from pydantic import Field

from models.schema import Format, Name, PositiveInt
from pipelines.control.record import AutopilotDecision, Done
from pipelines.pages.autopilot.detail import budget_spent
from pipelines.store.workspace import Workspace, to_json

_REPORTED: Final[tuple[Done, ...]] = ("rescaled", "refused", "failed", "rolled-back")


class PilotEvent(Format):
    """One thing that is reported, with the decision that it comes from."""

    job: Name
    kind: Literal["rescaled", "refused", "failed", "rolled-back", "permission-needed", "budget-spent"]
    number: PositiveInt = Field(description="Number of the decision.")
    at: datetime
    policy: str
    reason: str
    before: dict[str, int] = Field(description="Tasks by vertex.")
    after: dict[str, int] = Field(description="Tasks that were wanted.")
    downtime_s: float | None
    rules: str | None = Field(None, description="SHA-256 of the rules that need permission; absent from other events.")

    @property
    def did_harm(self) -> bool:
        """Whether a person should look at the job."""
        return self.kind in ("failed", "rolled-back")


def rescale_event(decision: AutopilotDecision) -> PilotEvent | None:
    """The event of a rescale that was tried; None of any other decision."""
    return _event(decision, decision.done) if decision.done in _REPORTED else None


def permission_event(decision: AutopilotDecision, rules: str) -> PilotEvent:
    """The event of a dry run that wants to act.

    Args:
        rules: their digest.
    """
    return _event(decision, "permission-needed").model_copy(update={"rules": rules})


def budget_event(workspace: Workspace, decision: AutopilotDecision) -> PilotEvent | None:
    """The event of a lateness budget that is spent: once a day, by one process; None otherwise."""
    spent = budget_spent(decision)
    if spent is None or spent < 1:
        return None
    event = _event(decision, "budget-spent", f"{spent:.0%} of the records that may be late were late")
    try:
        workspace.create_bytes(
            f"autopilots/{decision.job}/budget-spent-{decision.decided_at.date().isoformat()}.json", to_json(event)
        )
    except FileExistsError:
        return None
    return event


def _event(decision: AutopilotDecision, kind: str, reason: str | None = None) -> PilotEvent:
    taken = decision.rescale
    return PilotEvent.model_validate(
        {
            "job": decision.job,
            "kind": kind,
            "number": decision.number,
            "at": decision.decided_at,
            "policy": decision.policy,
            "reason": reason or decision.reason,
            "before": {} if taken is None else taken.before,
            "after": {} if taken is None else taken.after,
            "downtime_s": None if taken is None else taken.downtime_s,
        }
    )
