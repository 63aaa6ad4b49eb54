"""All jobs that have an autopilot, in a row each."""

from datetime import datetime

from pydantic import Field

from models.errors import SluiceError
from models.scaling.control.limits import Limit
from models.schema import Format
from pipelines.control.files import AutopilotFiles, AutopilotState, StopSwitch, autopilot_jobs
from pipelines.pages.autopilot.condition import Condition, age, condition
from pipelines.store.workspace import Workspace


class AutopilotRow(Format):
    """A job with its autopilot. All but the job is null where the state cannot be read."""

    job: str
    condition: Condition | None = Field(description="What it does now.")
    held: Limit | None = Field(None, description="Which limit holds it back.")
    dry_run: bool | None = Field(None, description="Whether it changes nothing.")
    policy: str | None = Field(None, description="Name of the policy.")
    switch: StopSwitch | None = Field(None, description="Who stopped it; null if it is not stopped.")
    arriving_rate: float | None = Field(None, description="Records/s that arrive; null if unknown.")
    lag_s: float | None = Field(None, description="Seconds to catch up; null if unknown.")
    tasks: int | None = Field(None, description="Tasks of all vertices; null if unknown.")
    price_per_hour: float | None = Field(None, description="Price of the job's slots, USD per hour; null if unknown.")
    rescales_in_a_day: int | None = Field(None, description="Rescales in the last 24 hours.")
    rolled_back_in_a_day: int | None = Field(None, description="Those of them that failed or were rolled back.")
    decided_at: datetime | None = Field(None, description="Time of the newest round.")
    decision_age_s: float | None = Field(None, description="Age of the newest round, seconds.")
    state_age_s: float | None = Field(None, description="Age of the state, seconds.")
    reason: str | None = Field(None, description="Of the newest round.")
    fault: str | None = Field(None, description="Why a file cannot be read.")


def autopilot_rows(workspace: Workspace, now: datetime) -> tuple[AutopilotRow, ...]:
    """A row for each job, by name. A damaged file is reported in its row; the other jobs are shown."""
    return tuple(_row(AutopilotFiles(workspace, job), now) for job in sorted(autopilot_jobs(workspace)))


def _row(files: AutopilotFiles, now: datetime) -> AutopilotRow:
    try:
        state, switch = files.state(), files.switch()
    except SluiceError as error:
        return AutopilotRow(job=files.job, condition=None, fault=str(error))
    if state is None:  # removed since the jobs were listed
        return AutopilotRow(job=files.job, condition=None, fault="its state was removed")
    return _filled(state, switch, now)


def _filled(state: AutopilotState, switch: StopSwitch | None, now: datetime) -> AutopilotRow:
    newest, ages = state.newest, age(state, now)
    seen = None if newest is None else newest.seen
    return AutopilotRow(
        job=state.job,
        condition=condition(state, switch, now),
        held=None if newest is None else newest.held,
        dry_run=state.dry_run,
        policy=state.policy,
        switch=switch,
        arriving_rate=None if seen is None else seen.arriving_rate,
        lag_s=None if seen is None else seen.lag_s,
        tasks=None if seen is None else seen.tasks,
        price_per_hour=None if seen is None else seen.price_per_hour,
        rescales_in_a_day=state.rescales_in_a_day,
        rolled_back_in_a_day=state.rolled_back_in_a_day,
        decided_at=None if newest is None else newest.decided_at,
        decision_age_s=ages.decision_s,
        state_age_s=ages.state_s,
        reason=None if newest is None else newest.reason,
    )
