"""Tasks of `autopilot_jobs`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sluice_airflow.notices.notifying import notify
from sluice_airflow.reporting import reported, task_progress
from sluice_airflow.unread import what_is_understood

if TYPE_CHECKING:
    from pipelines.inputs.operations.autopiloting import Autopiloting
    from pipelines.piloting.events import PilotEvent
    from pipelines.store.workspace import Workspace


@dataclass(frozen=True)
class PermissionQuestion:
    """The question whether an autopilot may act."""

    subject: str
    body: str
    """Markdown."""
    patience_s: float


def report(extras: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Say what these events report, or which jobs have an autopilot where there is none.

    Returns:
        What to ask a person about: each a `job`, and the digest of the `rules` that need permission.
    """
    with reported("events"):
        progress, found = task_progress(), _events(extras)
        if not extras:
            from pipelines.piloting.pilot import piloted_jobs
            from pipelines.store.workspace import Workspace

            jobs = piloted_jobs(Workspace())
            named = ", ".join(jobs) or "no job, since no file has operations.autopilot"
            progress.say(f"events: the triggerer runs autopilots of {named}")
        for event in found:
            progress.say(f"events: {event.job}: {event.kind} at {event.at:%F %T} UTC: {event.reason}")
            if event.kind == "budget-spent":
                notify("budget-spent", event.job, f"{event.job} has spent its lateness budget", event.reason)
            elif event.kind == "refused" or event.did_harm:
                notify("apply-failed", event.job, f"a rescale of {event.job} was {event.kind}", event.reason)
        needed = {(event.job, event.rules) for event in found if event.rules is not None}
        return [{"job": job, "rules": rules} for job, rules in sorted(needed)]


def harm(extras: Sequence[Mapping[str, Any]]) -> str | None:
    """What failed or was rolled back, in words; None if nothing was."""
    found = [f"{event.job}: {event.kind}: {event.reason}" for event in _events(extras) if event.did_harm]
    return "; ".join(found) or None


def question(job: str, wanted: str) -> PermissionQuestion | None:
    """The question about a job's autopilot; None if its file does not have these rules now, or an answer is there.

    Args:
        wanted: digest of the rules.
    """
    from pipelines.control.files import AutopilotFiles
    from pipelines.piloting.permission import permission_of, rules_digest

    workspace, rules = _rules(job)
    if rules is None or rules_digest(rules) != wanted or permission_of(workspace, job, rules) is not None:
        return None
    state = AutopilotFiles(workspace, job).state()
    newest = None if state is None else state.newest
    limits = rules.limits.model_dump(mode="json", exclude_defaults=True, exclude={"schema_version"})
    lines = [
        f"The policy {rules.policy} has watched {rules.job or job} on {rules.flink} in a dry run.",
        "" if newest is None else f"Last decision: {newest.reason}",
        "Limits: " + (", ".join(f"{name} {value}" for name, value in limits.items()) or "the defaults"),
        f"What it would have done: `sluice autopilot log {job}`, or the page *Autopilots*.",
        "Approving lets it act until the block `operations.autopilot` of the job's file changes. Its page has a button that "
        "stops it at any time.",
    ]
    return PermissionQuestion(
        subject=f"Let the autopilot with policy {rules.policy} rescale {job}?",
        body="\n\n".join(line for line in lines if line),
        patience_s=rules.approval_s,
    )


def answer(job: str, rules: str, granted: bool, by: str) -> str:
    """Store a person's answer; says what follows from it.

    Args:
        rules: digest of those that the person was asked about, which the job's file may no longer have.
    """
    from datetime import UTC, datetime

    from pipelines.piloting.permission import AutopilotPermission, keep_permission, rules_digest

    workspace, now = _rules(job)
    keep_permission(
        workspace,
        AutopilotPermission(job=job, rules=rules, granted=granted, by=by, answered_at=datetime.now(UTC)),
    )
    said = f"the autopilot of {job} {'may act' if granted else 'stays in its dry run'}, as {by} decided"
    asked = now is not None and rules_digest(now) == rules
    return said if asked else f"{said}, but only by the rules that the question showed, which its file no longer has"


def _rules(job: str) -> "tuple[Workspace, Autopiloting | None]":
    from pipelines.following.jobs import job_file
    from pipelines.inputs.job_files import operations_of
    from pipelines.store.workspace import Workspace

    workspace = Workspace()
    return workspace, operations_of(job_file(workspace, job)).autopilot


def _events(extras: Sequence[Mapping[str, Any]]) -> "list[PilotEvent]":
    """Raises InvalidInput: none of the events is an autopilot's."""
    return what_is_understood(extras, _event)


def _event(content: Mapping[str, Any]) -> "PilotEvent":
    from pipelines.inputs.parsing.files import validate_as
    from pipelines.piloting.events import PilotEvent

    return validate_as(dict(content), PilotEvent, "an event of sluice-autopilot")
