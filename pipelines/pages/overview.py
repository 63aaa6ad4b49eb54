"""All jobs with their current plan and state."""

from pydantic import Field

from models.schema import Format
from pipelines.pages.operation import ActualRate, Drift, Lag, RatePoint, Unfollowed, operation
from pipelines.pages.versions import Outline, outline_of
from pipelines.store.pins import PlanPin, pin_of
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Damaged, Workspace


class JobRow(Format):
    """A job with its newest intact plan."""

    job: str
    plan: Outline | None = Field(description="None if all versions are damaged.")
    actual: ActualRate | None = Field(description="The last known source rate; None if unknown.")
    rates: tuple[RatePoint, ...] = Field((), description="The newest observed rates, the first one first.")
    lag: Lag | None = Field(None, description="What waits before the sources; None if no autopilot has seen the job.")
    unfollowed: Unfollowed | None = Field(None, description="Why the source rate is not followed; None if it is.")
    pin: PlanPin | None = Field(
        None, description="The pin that keeps the job at a version of its plan; None without one."
    )
    drift: Drift | None = Field(description="The last check of production; None before the first.")
    faults: tuple[str, ...] = Field(description="Damaged newer versions and records, and their faults.")


class Overview(Format):
    """All jobs that have a plan, by name."""

    jobs: tuple[JobRow, ...]


def overview(workspace: Workspace) -> Overview:
    """Read the current plan of each job. A damaged file is reported in its row; everything else is still shown."""
    store = PlanStore(workspace)
    return Overview(jobs=tuple(_row(workspace, store, job) for job in store.jobs()))


def _row(workspace: Workspace, store: PlanStore, job: str) -> JobRow:
    outline, faults = _newest_intact(store, job)
    pin = None
    try:
        pin = pin_of(workspace, job)
    except Damaged as error:
        faults.append(str(error))
    if outline is None:
        return JobRow(job=job, plan=None, actual=None, pin=pin, drift=None, faults=tuple(faults))
    seen = operation(workspace, job, outline.version)
    return JobRow(
        job=job,
        plan=outline,
        actual=seen.actual,
        rates=seen.rates,
        lag=seen.lag,
        unfollowed=seen.unfollowed,
        pin=pin,
        drift=seen.drift,
        faults=(*faults, *seen.faults),
    )


def _newest_intact(store: PlanStore, job: str) -> tuple[Outline | None, list[str]]:
    faults: list[str] = []
    for version in reversed(store.versions(job)):
        try:
            return outline_of(store, job, version), faults
        except Damaged as error:
            faults.append(str(error))
    return None, faults
