"""One job's autopilot: its state, what it saw last, and its decisions."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from pydantic import Field

from models.errors import InvalidInput
from models.schema import NAME, Format
from pipelines.control.files import AutopilotFiles, AutopilotState, StopSwitch, autopilot_jobs
from pipelines.control.record import AutopilotDecision
from pipelines.pages.autopilot.condition import Condition, age, condition
from pipelines.pages.autopilot.recent import RecentDecisions
from pipelines.store.workspace import Damaged, Workspace

MOST_DECISIONS: Final = 100
"""Decisions that the page lists."""
_CHANGE_NOTHING: Final = ("none", "dry-run", "held-back")
_MOST_SHOWN: Final = 80
"""Most characters of a name in an error."""


class ListedDecision(Format):
    """A decision, with how many decisions of the same outcome followed it at once."""

    decision: AutopilotDecision
    repeated: int = Field(ge=0, description="Rounds that followed with the same outcome, which are not listed.")


class AutopilotDetail(Format):
    """The content of a job's page, without the figures."""

    state: AutopilotState
    condition: Condition = Field(description="What the autopilot does now.")
    switch: StopSwitch | None = Field(description="Who stopped it; null if it is not stopped.")
    state_age_s: float = Field(description="Age of the state, seconds.")
    decision_age_s: float | None = Field(description="Age of the newest round, seconds; null before the first.")
    budget_spent: float | None = Field(
        description="Share of records that were late over the share that may be; above 1 it is overspent. Null where the "
        "policy has no latency objective."
    )
    hours: float = Field(description="Time that the decisions are of, hours until now.")
    decisions: tuple[ListedDecision, ...] = Field(
        description=f"The newest one first, at most {MOST_DECISIONS}; those that repeat the one before are counted there."
    )
    more: int = Field(description="Decisions of that time that are not listed.")
    faults: tuple[str, ...] = Field(description="What could not be read, and why.")


def autopilot_files(workspace: Workspace, job: str) -> AutopilotFiles:
    """The files of a job's autopilot.

    Raises:
        InvalidInput: no job with an autopilot has that name.
    """
    if not re.fullmatch(NAME, job) or job not in autopilot_jobs(workspace):
        raise InvalidInput(f"There is no autopilot of a job named {job[:_MOST_SHOWN]!r}.")
    return AutopilotFiles(workspace, job)


def autopilot_detail(
    workspace: Workspace, recent: RecentDecisions, job: str, hours: float, now: datetime
) -> AutopilotDetail:
    """Read what is known of a job's autopilot.

    Raises:
        InvalidInput: no job with an autopilot has that name.
        Damaged: the state or the stop switch is damaged; a damaged decision is listed in `faults`.
    """
    files, faults = autopilot_files(workspace, job), []
    state, switch = files.state(), files.switch()
    if state is None:
        raise InvalidInput(f"The state of the autopilot of {job!r} was removed.")
    try:
        decisions: Sequence[AutopilotDecision] = recent.of(files, hours)
    except Damaged as error:
        decisions = ()
        faults.append(str(error))
    listed = _listed(decisions)
    ages = age(state, now)
    return AutopilotDetail(
        state=state,
        condition=condition(state, switch, now),
        switch=switch,
        state_age_s=ages.state_s,
        decision_age_s=ages.decision_s,
        budget_spent=budget_spent(state.newest),
        hours=hours,
        decisions=tuple(listed[:MOST_DECISIONS]),
        more=max(len(listed) - MOST_DECISIONS, 0),
        faults=tuple(faults),
    )


def budget_spent(decision: AutopilotDecision | None) -> float | None:
    """Late records over those that may be late; None where the policy has no objective, or allows none to be late."""
    outlook = None if decision is None else decision.outlook
    if outlook is None or outlook.late_share is None or not outlook.late_allowed:
        return None
    return outlook.late_share / outlook.late_allowed


def _listed(decisions: Sequence[AutopilotDecision]) -> list[ListedDecision]:
    """The newest one first; a quiet decision like the one before it is counted there instead."""
    listed: list[ListedDecision] = []
    for one in decisions:
        last = listed[-1] if listed else None
        if last is not None and _repeats(last.decision, one):
            listed[-1] = last.model_copy(update={"repeated": last.repeated + one.rounds})
        else:
            listed.append(ListedDecision(decision=one, repeated=one.rounds - 1))
    return listed[::-1]


def _repeats(before: AutopilotDecision, after: AutopilotDecision) -> bool:
    """Whether nothing was changed either time, for the same cause, by the same autopilot."""
    kinds = [
        (one.done, one.held, one.fence, None if one.rescale is None else one.rescale.after) for one in (before, after)
    ]
    return kinds[0] == kinds[1] and after.done in _CHANGE_NOTHING
