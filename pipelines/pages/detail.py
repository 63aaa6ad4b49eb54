"""A version of a plan with its applications, its pictures, and links to its lineage."""

from pydantic import Field

from models.plan.content import Plan
from models.plan.differences import same_deployment
from models.plan.equal_workers import WorkerGroup, equal_workers
from models.schema import Format
from pipelines.apply.applied import Applied
from pipelines.apply.record import recorded
from pipelines.pages.mlflow_pages import MlflowPages, mlflow_pages
from pipelines.pages.versions import plan_of, versions_of
from pipelines.store.pictures import Pictures, pictures_key, read_pictures
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Damaged, Missing, Workspace


class PlanDetail(Format):
    """The content of a version's page, without the figures."""

    plan: Plan
    workers: tuple[WorkerGroup, ...] = Field(description="The placement, with equal workers as one.")
    uri: str = Field(description="URI of the plan.")
    newest: int = Field(description="Newest version, damaged or not.")
    applied: tuple[Applied, ...] = Field(description="Its applications to Flink, the first one first.")
    pictures_of: int | None = Field(description="Version whose figures show this plan; None if none are stored.")
    mlflow: MlflowPages | None = Field(description="None if MLflow has no address that a browser can open.")
    faults: tuple[str, ...] = Field(description="What could not be read, and why.")


def plan_detail(workspace: Workspace, job: str, version: int) -> PlanDetail:
    """Read a version.

    Raises:
        InvalidInput: no job with a plan has that name, or it has no such version.
        Damaged: the plan's file is damaged; other damaged files are listed in `faults`.
    """
    store = PlanStore(workspace)
    plan = plan_of(store, job, version)
    faults: list[str] = []
    try:
        applied = tuple(recorded(workspace, job, version))
    except Damaged as error:
        applied = ()
        faults.append(str(error))
    return PlanDetail(
        plan=plan,
        workers=equal_workers(plan.placement),
        uri=store.uri(job, version),
        newest=versions_of(store, job)[-1],
        applied=applied,
        pictures_of=_pictured(workspace, store, plan),
        mlflow=mlflow_pages(workspace, plan),
        faults=tuple(faults),
    )


def plan_pictures(workspace: Workspace, job: str, version: int) -> Pictures:
    """The figures of a version's report; a rollback has those of the version that it deploys again.

    Raises:
        InvalidInput: no job with a plan has that name, or it has no such version.
        Missing: no figures are stored.
        Damaged: the file of the plan or of its figures is damaged.
    """
    store = PlanStore(workspace)
    pictured = _pictured(workspace, store, plan_of(store, job, version))
    if pictured is None:
        raise Missing(f"No pictures are stored for version {version} of the plan of {job!r}.")
    return read_pictures(workspace, job, pictured)


def _pictured(workspace: Workspace, store: PlanStore, plan: Plan) -> int | None:
    if workspace.exists(pictures_key(plan.job, plan.version)):
        return plan.version
    if plan.lineage.trigger != "rollback":
        return None
    for version in reversed(store.versions(plan.job)):
        if version < plan.version and workspace.exists(pictures_key(plan.job, version)):
            try:
                old = store.get(plan.job, version)
            except Damaged:
                continue
            if same_deployment(old, plan) and old.target_rate == plan.target_rate:
                return version
    return None
