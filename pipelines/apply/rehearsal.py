"""The steps that applying a plan would take, stored for approval: plans/<job>/v000002-rehearsed-000001.json.

Only plans of jobs whose file allows it are rehearsed, and only rehearsed steps are applied.
"""

from typing import Any, Literal

from pydantic import Field

from flink_client.jobs.deployment import wanted_parallelism
from flink_client.jobs.restart import RestartProgram
from flink_client.jobs.running import find_named_job, running_job
from flink_client.rest.answers import flinks_answers
from flink_client.rest.client import FlinkRest
from models.errors import InvalidInput
from models.job import Job
from models.plan.content import Plan
from models.schema import SCHEMA_VERSION, Format, Name, Positive, PositiveInt
from pipelines.apply.applied import VertexChange
from pipelines.apply.export import ExportFormat, export
from pipelines.apply.gitops.proposing import PlannedMerge, merge_steps, planned_merge
from pipelines.apply.preparation import Preparation, changes_of, found_vertices, prepare
from pipelines.apply.record import keep_numbered
from pipelines.apply.steps import steps
from pipelines.inputs.job_files import operations_of
from pipelines.inputs.operations.applying import Applying
from pipelines.inputs.operations.repository import DeploymentRepository
from pipelines.inputs.parsing.files import read_as
from pipelines.planning.planned_job import file_beside, job_of
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace


class Rehearsal(Format):
    """The steps that would make Flink run a plan."""

    schema_version: Literal[1] = Field(SCHEMA_VERSION, description="Version of this format.")
    job: Name = Field(description="Job of the plan.")
    version: PositiveInt = Field(description="Version of the plan.")
    target_rate: Positive = Field(description="Target rate of the plan, records/s at the sources together.")
    mode: Literal["approved", "alone"] = Field(description="The mode in the job's file: operations.apply.mode.")
    flink_url: str = Field(description="REST address of the cluster, or connection:NAME.")
    flink_job: str = Field(description="Flink's id of the job.")
    method: Literal["none", "rescale", "restart", "settings", "merge"] = Field(
        description="How tasks would be changed: in the running job, by a restart, by exported settings, by a merge into the "
        "repository that the job is deployed from, or not at all."
    )
    changes: tuple[VertexChange, ...] = Field(description="All vertices that the plan knows.")
    steps: tuple[str, ...] = Field(description="The steps in words, in order.")
    advice: tuple[str, ...] = Field(description="Parts of the plan that would not be done.")
    settings: str | None = Field(None, description="The settings to export, if the job's file asks for that.")

    difference: str | None = Field(
        None,
        description="The change of the file in the repository, as a unified diff, if the job is deployed from one.",
    )

    @property
    def changes_nothing(self) -> bool:
        return self.method == "none"


def may_be_applied(workspace: Workspace, job: str, version: int) -> str | None:
    """Why a version may not be applied; None if it may.

    Raises:
        InvalidInput: the version does not exist, or the job's file is wrong.
    """
    store = PlanStore(workspace)
    plan, newest = store.get(job, version), store.current(job).version
    if version != newest:
        return f"{job}@{version} is not applied, since {job}@{newest} has taken its place"
    if operations_of(job_of(workspace, plan)).apply.mode == "never":
        return f"{job}@{version} is not applied, since the job's file does not allow it (operations.apply.mode)"
    return None


def rehearse(workspace: Workspace, job: str, version: int) -> tuple[str, Rehearsal]:
    """Determine and store the steps of applying a plan; nothing is changed. Returns their key, and them.

    Raises:
        InvalidInput: it may not be applied, or does not fit the running job.
        Infeasible: Flink could not run the plan.
        SluiceError: the job does not run, or Flink does not answer.
    """
    if (obstacle := may_be_applied(workspace, job, version)) is not None:
        raise InvalidInput(obstacle)
    plan = PlanStore(workspace).get(job, version)
    file = job_of(workspace, plan)
    applying = operations_of(file).apply
    with FlinkRest(str(applying.flink)) as rest, flinks_answers(rest.url):
        if applying.repository is not None:
            made = _merged(merge_of(rest, plan, file, applying, applying.repository), applying)
        elif applying.export:
            made = _exported(rest, plan, file, applying)
        else:
            made = _steps(rest, workspace, plan, file, applying)
    return keep_numbered(workspace, job, version, "rehearsed", made), made


def prepared(rest: FlinkRest, workspace: Workspace, plan: Plan, file: Job, applying: Applying) -> Preparation:
    """The steps of applying a plan to the job that the file names."""
    named = applying.program
    return prepare(
        rest,
        plan,
        job_id=flink_job(rest, plan, applying),
        vertices=None,
        job_file=file,
        program=None if named is None else read_as(file_beside(workspace, plan, named), RestartProgram),
    )


def flink_job(rest: FlinkRest, plan: Plan, applying: Applying) -> str:
    """Flink's id of the job, whether the file has its name, its id, or neither."""
    return find_named_job(rest, applying.job or plan.job)


def merge_of(
    rest: FlinkRest, plan: Plan, file: Job, applying: Applying, repository: DeploymentRepository
) -> PlannedMerge:
    """What a plan changes in the repository that the file names."""
    return planned_merge(rest, plan, repository, job=applying.job or plan.job, vertices=None, job_file=file)


def _merged(planned: PlannedMerge, applying: Applying) -> Rehearsal:
    return Rehearsal(
        **_of(planned.plan, applying),
        flink_job=planned.flink_job,
        method="none" if planned.is_done else "merge",
        changes=planned.changes,
        steps=tuple(merge_steps(planned, applying.observe_s)),
        advice=planned.advice,
        difference=planned.difference,
    )


def _steps(rest: FlinkRest, workspace: Workspace, plan: Plan, file: Job, applying: Applying) -> Rehearsal:
    preparation = prepared(rest, workspace, plan, file, applying)
    return Rehearsal(
        **_of(plan, applying),
        flink_job=preparation.job.id,
        method=preparation.method,
        changes=preparation.changes,
        steps=tuple(steps(preparation, timeout_s=applying.timeout_s, observe_s=applying.observe_s)),
        advice=preparation.advice,
    )


def _exported(rest: FlinkRest, plan: Plan, file: Job, applying: Applying) -> Rehearsal:
    """For jobs that are changed by their own deployment: the settings, with the ids of the running job."""
    job = running_job(rest, flink_job(rest, plan, applying))
    vertices = found_vertices(rest, plan, job, file)
    changes = changes_of(plan, vertices, wanted_parallelism(plan, vertices), job)
    form = ExportFormat(str(applying.export))
    return Rehearsal(
        **_of(plan, applying),
        flink_job=job.id,
        method="settings" if any(c.before != c.after for c in changes) else "none",
        changes=changes,
        steps=(f"write the settings ({form}) to the workspace, for the deployment of the job",),
        advice=(),
        settings=export(plan, form, vertices),
    )


def _of(plan: Plan, applying: Applying) -> dict[str, Any]:
    return {
        "job": plan.job,
        "version": plan.version,
        "target_rate": plan.target_rate,
        "mode": applying.mode,
        "flink_url": applying.flink,
    }
