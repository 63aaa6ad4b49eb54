"""Applying a rehearsed plan after an approval, or if the job's file needs none."""

from collections.abc import Callable
from typing import Final

from flink_client.rest.answers import flinks_answers
from flink_client.rest.client import FlinkRest
from models.errors import InvalidInput, SluiceError
from models.job import Job
from models.plan.content import Plan
from pipelines.apply.application import apply
from pipelines.apply.applied import NOT_APPLIED, Applied, VertexChange
from pipelines.apply.preparation import Preparation
from pipelines.apply.record import record
from pipelines.apply.rehearsal import Rehearsal, may_be_applied, prepared
from pipelines.inputs.job_files import operations_of
from pipelines.inputs.operations.applying import Applying
from pipelines.planning.planned_job import job_of
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace

_SUFFIX: Final = {"overrides": "txt", "requirements": "txt", "flinkdeployment": "yaml"}
OTHER_WAY: Final = (
    "the steps for {plan} were worked out for another value of 'repository' in the job's file (operations.apply); run the DAG "
    "apply_plan again to see the new steps"
)


def apply_rehearsed(
    workspace: Workspace, key: str, approved_by: str | None, say: Callable[[str], None] = lambda what: None
) -> str:
    """Execute the rehearsed steps and record the outcome, or write the rehearsed settings.

    Args:
        key: of the rehearsal.
        approved_by: the person; None where no approval is needed.

    Returns:
        The URI of the record, or of the settings.

    Raises:
        InvalidInput: it may no longer be applied, it was not approved, or the running job has changed since.
        SluiceError: applying failed, or was rolled back; the record says so, too.
    """
    rehearsal, plan, file, applying = approved(workspace, key, approved_by)
    if rehearsal.method == "merge" or applying.repository is not None:
        raise InvalidInput(OTHER_WAY.format(plan=f"{plan.job}@{plan.version}"))
    if rehearsal.settings is not None:
        return _write_settings(workspace, rehearsal, str(applying.export))
    with FlinkRest(rehearsal.flink_url) as rest:
        with flinks_answers(rest.url):
            preparation = prepared(rest, workspace, plan, file, applying)
        if approved_by is not None:
            _check_still_approved(rehearsal, preparation)
        applied = apply(rest, preparation, timeout_s=applying.timeout_s, observe_s=applying.observe_s, say=say)
    uri = record(workspace, applied.model_copy(update={"approved_by": approved_by}))
    _check_outcome(plan, applied, uri)
    return uri


def approved(workspace: Workspace, key: str, approved_by: str | None) -> tuple[Rehearsal, Plan, Job, Applying]:
    """A rehearsal that may be followed, its plan, the job's present file, and what that says of applying.

    Raises:
        InvalidInput: it may no longer be applied, or was not approved.
    """
    rehearsal = workspace.read(key, Rehearsal)
    obstacle = may_be_applied(workspace, rehearsal.job, rehearsal.version)
    if obstacle is not None:
        raise InvalidInput(obstacle)
    plan = PlanStore(workspace).get(rehearsal.job, rehearsal.version)
    file = job_of(workspace, plan)
    applying = operations_of(file).apply
    _check_approval(rehearsal, applying, approved_by)
    return rehearsal, plan, file, applying


def _check_approval(rehearsal: Rehearsal, applying: Applying, approved_by: str | None) -> None:
    plan = f"{rehearsal.job}@{rehearsal.version}"
    if applying.flink != rehearsal.flink_url:
        raise InvalidInput(
            f"{plan} was rehearsed on {rehearsal.flink_url}, but the job's file names another cluster now"
        )
    if applying.mode != "alone" and approved_by is None:
        raise InvalidInput(
            f"{plan} must be approved by a person, but was not; approve it, or set mode: alone in the job's file"
        )


def _check_still_approved(rehearsal: Rehearsal, preparation: Preparation) -> None:
    """Check that the steps are still the approved ones, or done already, as after a killed attempt."""
    if preparation.method != "none":
        check_unchanged(rehearsal, preparation.job.id, preparation.changes)


def check_unchanged(rehearsal: Rehearsal, job_id: str, changes: tuple[VertexChange, ...]) -> None:
    """Check that the running job is the one that was rehearsed on.

    Raises:
        InvalidInput: it has changed since.
    """
    if (job_id, changes) != (rehearsal.flink_job, rehearsal.changes):
        raise InvalidInput(
            f"the running job has changed since the steps for {rehearsal.job}@{rehearsal.version} were approved; run the DAG "
            f"apply_plan again to see the new steps"
        )


def _write_settings(workspace: Workspace, rehearsal: Rehearsal, form: str) -> str:
    key = f"plans/{rehearsal.job}/v{rehearsal.version:06d}-{form}.{_SUFFIX[form]}"
    workspace.write_bytes(key, str(rehearsal.settings).encode())
    return workspace.uri(key)


def _check_outcome(plan: Plan, applied: Applied, uri: str) -> None:
    if applied.outcome in NOT_APPLIED:
        raise SluiceError(f"{plan.job}@{plan.version} {applied.outcome}: {applied.reason} ({uri})")
