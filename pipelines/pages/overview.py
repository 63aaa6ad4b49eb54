"""All jobs with their current plan, and how they do."""

from pydantic import Field

from models.plan import Plan
from models.schema import Format
from pipelines.pages.operation import ActualRate, Drift, operation
from pipelines.pages.versions import Outline
from pipelines.plan_store import PlanStore
from pipelines.workspace import Damaged, Workspace


class JobRow(Format):
    """A job with its newest intact plan."""

    job: str
    plan: Outline | None = Field(description="None where all versions are damaged.")
    actual: ActualRate | None = Field(description="The source rate last seen; None where nobody saw any.")
    drift: Drift | None = Field(description="The last look at production; None where nobody looked.")
    faults: tuple[str, ...] = Field(description="Newer versions and records that are damaged, and what is wrong.")


class Overview(Format):
    """All jobs that have a plan, by name."""

    jobs: tuple[JobRow, ...]


def overview(workspace: Workspace) -> Overview:
    """Read the current plan of each job. What is damaged is told in its row, and never hides the rest."""
    store = PlanStore(workspace)
    return Overview(jobs=tuple(_row(workspace, store, job) for job in store.jobs()))


def _row(workspace: Workspace, store: PlanStore, job: str) -> JobRow:
    plan, faults = _newest_intact(store, job)
    if plan is None:
        return JobRow(job=job, plan=None, actual=None, drift=None, faults=tuple(faults))
    seen = operation(workspace, plan)
    return JobRow(job=job, plan=Outline.of(plan), actual=seen.actual, drift=seen.drift, faults=(*faults, *seen.faults))


def _newest_intact(store: PlanStore, job: str) -> tuple[Plan | None, list[str]]:
    faults: list[str] = []
    for version in reversed(store.versions(job)):
        try:
            return store.get(job, version), faults
        except Damaged as error:
            faults.append(str(error))
    return None, faults
