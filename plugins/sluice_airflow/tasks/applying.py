"""Tasks of `apply_plan`."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from models.wording import amount
from sluice_airflow.notices.notifying import notify
from sluice_airflow.reporting import reported, task_progress
from sluice_airflow.tasks.plan_events import opened, plan_of, plans_of

if TYPE_CHECKING:
    from pipelines.apply.rehearsal import Rehearsal

PERSON, REJECTED = "person:", "rejected:"
"""Prefixes of the name in a decision."""


@dataclass(frozen=True)
class Question:
    """The question to the approver."""

    subject: str
    body: str
    """Markdown."""
    patience_s: float


def plans_to_apply(params: Mapping[str, Any], extras: Sequence[Mapping[str, Any]]) -> list[str]:
    """URIs of the plans that may be applied: the newest of each job in the asset events, or the one in the parameters.

    Raises:
        InvalidInput: an event carries no plan's URI, or the plan in the parameters may not be applied.
    """
    with reported("plans"):
        from models.errors import InvalidInput, SluiceError
        from pipelines.apply.rehearsal import may_be_applied
        from pipelines.store.plans import PlanStore
        from pipelines.store.workspace import Workspace

        workspace, progress = Workspace(), task_progress()
        store, found = PlanStore(workspace), []
        if params.get("job"):
            job = str(params["job"])
            version = int(params["version"]) if params.get("version") else store.current(job).version
            if (obstacle := may_be_applied(workspace, job, version)) is not None:
                raise InvalidInput(obstacle)
            found.append(store.uri(job, version))
        for job, version in dict(sorted(plans_of(extras))).items():
            try:
                obstacle = may_be_applied(workspace, job, version)
            except SluiceError as error:  # of one job; plans of other jobs are applied
                obstacle = f"{job}@{version} is not applied: {error}"
            if obstacle is None:
                found.append(store.uri(job, version))
            else:
                progress.say(f"   {obstacle}")
        return list(dict.fromkeys(found))


def rehearse(plan_uri: str) -> str | None:
    """Determine the steps of applying a plan, and return their URI; None if Flink runs the plan already."""
    with reported("rehearse"):
        from pipelines.apply.rehearsal import rehearse as work_out
        from pipelines.store.workspace import Workspace

        workspace = Workspace()
        job, version = plan_of({"uri": plan_uri})
        with failure_notified(job):
            key, rehearsal = work_out(workspace, job, version)
        progress = task_progress()
        for step in rehearsal.steps:
            progress.say(f"   {step}")
        if rehearsal.changes_nothing:
            progress.say("   Flink runs this plan already")
            return None
        return workspace.uri(key)


def question(rehearsal_uri: str) -> Question | None:
    """The question about the steps; None if the job's file needs no approval."""
    workspace, key = opened(rehearsal_uri)
    from pipelines.apply.rehearsal import Rehearsal
    from pipelines.inputs.job_files import operations_of
    from pipelines.planning.planned_job import job_of
    from pipelines.store.plans import PlanStore

    rehearsal = workspace.read(key, Rehearsal)
    plan = PlanStore(workspace).get(rehearsal.job, rehearsal.version)
    applying = operations_of(job_of(workspace, plan)).apply
    if applying.mode == "alone":
        return None
    return Question(
        subject=f"Apply {rehearsal.job}@{rehearsal.version}, for {amount(rehearsal.target_rate)} records/s?",
        body=_body(rehearsal, plan.reasons[0], rehearsal_uri),
        patience_s=applying.approval_s,
    )


def apply_rehearsed(rehearsal_uri: str, approved_by: str) -> str | None:
    """Apply the steps and return the URI of the record; None, without any step, if they were rejected."""
    with reported("apply"):
        if approved_by.startswith(REJECTED):
            task_progress().say(f"   rejected by {approved_by.removeprefix(REJECTED)}")
            return None
        from pipelines.apply.operating import apply_rehearsed as do

        workspace, key = opened(rehearsal_uri)
        person = approved_by.removeprefix(PERSON) if approved_by.startswith(PERSON) else None
        with failure_notified(key.split("/")[1]):
            return do(workspace, key, person, lambda what: task_progress().say(f"   {what}"))


@contextmanager
def failure_notified(job: str) -> Iterator[None]:
    """Notify of an error of the job's application."""
    from models.errors import SluiceError

    try:
        yield
    except SluiceError as error:
        notify("apply-failed", job, f"a plan of {job} was not applied", str(error))
        raise


def _body(rehearsal: "Rehearsal", reason: str, uri: str) -> str:
    changes = [
        f"| {', '.join(c.operators)} | {c.before} | {c.after} |" for c in rehearsal.changes if c.before != c.after
    ]
    table = ["| operators | tasks now | in the plan |", "|---|---|---|", *changes] if changes else []
    steps = [f"{number}. {step}" for number, step in enumerate(rehearsal.steps, start=1)]
    advice = [f"- not done: {one}" for one in rehearsal.advice]
    settings = ["```", rehearsal.settings.rstrip(), "```"] if rehearsal.settings else []
    difference = ["```diff", rehearsal.difference.rstrip(), "```"] if rehearsal.difference else []
    parts = [
        [f"{reason[:1].upper()}{reason[1:]}."],
        table,
        steps,
        advice,
        settings,
        difference,
        [f"On {rehearsal.flink_url}; {uri}"],
    ]
    return "\n\n".join("\n".join(part) for part in parts if part)
