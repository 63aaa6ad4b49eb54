"""What people may change of a job: whether its newest plan may be applied, what that changes, and what was applied."""

from collections.abc import Sequence

from pydantic import Field

from models.errors import SluiceError
from models.plan.changes import Difference
from models.plan.content import Plan
from models.plan.differences import difference
from models.schema import Format
from pipelines.apply.applied import Applied
from pipelines.apply.record import recorded
from pipelines.apply.rehearsal import may_be_applied
from pipelines.inputs.job_files import operations_of
from pipelines.pages.operation import ActualRate, operation
from pipelines.pages.versions import Outline, versions_of
from pipelines.planning.planned_job import job_of
from pipelines.store.pins import PlanPin, pin_of
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Damaged, Workspace


class ApplyOutlook(Format):
    """What applying the newest plan would do."""

    why_not: str | None = Field(description="Why it may not be applied; None if it may.")
    asks_first: bool = Field(description="Whether a person approves the steps before anything is changed.")
    runs_now: int | None = Field(description="Version that was applied last; None if Sluice applied none.")
    changes: Difference | None = Field(description="From that version to the newest; None without an intact one.")


class Operating(Format):
    """The content of the page on which a job is changed."""

    job: str
    current: Outline = Field(description="The newest plan.")
    older: tuple[int, ...] = Field(description="Versions that can be rolled back to, the newest first.")
    pin: PlanPin | None = Field(description="None if the job is not pinned.")
    actual: ActualRate | None = Field(description="The last known source rate; None if unknown.")
    outlook: ApplyOutlook
    applied: tuple[Applied, ...] = Field(description="All applications of any version to Flink, the newest first.")
    faults: tuple[str, ...] = Field(description="What could not be read, and why.")


def operating(workspace: Workspace, job: str) -> Operating:
    """Read what the page shows.

    Raises:
        InvalidInput: no job with a plan has that name.
        Damaged: all versions are damaged, or the pin is; damaged applications are listed in `faults`.
    """
    store = PlanStore(workspace)
    versions = versions_of(store, job)
    current = store.current(job)
    faults: list[str] = []
    applied: list[Applied] = []
    for version in versions:
        try:
            applied += recorded(workspace, job, version)
        except SluiceError as error:
            faults.append(str(error))
    applied.sort(key=lambda one: one.started_at, reverse=True)
    return Operating(
        job=job,
        current=Outline.of(current),
        older=tuple(version for version in reversed(versions) if version < current.version),
        pin=pin_of(workspace, job),
        actual=operation(workspace, job, current.version).actual,
        outlook=_outlook(workspace, store, current, applied),
        applied=tuple(applied),
        faults=tuple(faults),
    )


def _outlook(workspace: Workspace, store: PlanStore, current: Plan, applied: Sequence[Applied]) -> ApplyOutlook:
    runs_now = next((one.version for one in applied if one.outcome in ("applied", "unchanged")), None)
    try:
        changes = None if runs_now is None else difference(store.get(current.job, runs_now), current)
    except Damaged:
        changes = None
    try:
        why_not = may_be_applied(workspace, current.job, current.version)
        asks_first = operations_of(job_of(workspace, current)).apply.mode != "alone"
    except SluiceError as error:
        why_not, asks_first = str(error), True
    return ApplyOutlook(why_not=why_not, asks_first=asks_first, runs_now=runs_now, changes=changes)
