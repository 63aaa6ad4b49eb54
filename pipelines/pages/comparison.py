"""The comparison of two versions of a plan."""

from pydantic import Field

from models.plan.changes import Difference, PlacementChange
from models.plan.differences import difference, placement_changes
from models.plan.equal_workers import GroupedChange, grouped_changes
from models.schema import Format
from pipelines.pages.versions import Outline, plan_of
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace


class VersionComparison(Format):
    """Two versions of a job's plan, and their difference."""

    job: str
    before: Outline
    after: Outline
    difference: Difference
    placement: tuple[PlacementChange, ...] = Field(description="Where tasks start or stop, by operator, then worker.")
    grouped: tuple[GroupedChange, ...] = Field(description="The same, with workers of the same change as one.")


def compare(workspace: Workspace, job: str, before: int, after: int) -> VersionComparison:
    """Compare two versions of a job's plan, in either direction.

    Raises:
        InvalidInput: no job with a plan has that name, or it lacks one of the versions.
        Damaged: the file of one is damaged.
    """
    store = PlanStore(workspace)
    old, new = plan_of(store, job, before), plan_of(store, job, after)
    changes = placement_changes(old, new)
    return VersionComparison(
        job=job,
        before=Outline.of(old),
        after=Outline.of(new),
        difference=difference(old, new),
        placement=changes,
        grouped=grouped_changes(changes),
    )
