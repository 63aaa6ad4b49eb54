"""`sluice plans apply` for a job that is deployed from a git repository: into a branch, then the wait for its merge."""

from collections.abc import Mapping
from typing import Any

from rich.text import Text

from flink_client.rest.answers import flinks_answers
from flink_client.rest.client import FlinkRest
from models.errors import InvalidInput, SluiceError
from models.job import Job
from models.plan.content import Plan
from pipelines.apply.applied import NOT_APPLIED, Applied
from pipelines.apply.gitops.merge import MergeWatch
from pipelines.apply.gitops.merging import await_merge, not_merged
from pipelines.apply.gitops.operating import follow_merged, keep_proposal
from pipelines.apply.gitops.proposal import Proposal
from pipelines.apply.gitops.proposing import PlannedMerge, merge_steps, observed_before, planned_merge, propose
from pipelines.apply.record import record
from pipelines.cli import Stopped
from pipelines.cli.output import console, print_json, progress_console
from pipelines.cli.plans.applied_view import print_advice, print_applied, say
from pipelines.inputs.operations.applying import Applying
from pipelines.inputs.operations.repository import DeploymentRepository
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace
from pipelines.terminal.tables import table


def apply_through_repository(
    workspace: Workspace,
    plan: Plan,
    applying: Applying,
    repository: DeploymentRepository,
    *,
    flink: str | None,
    token_variable: str | None,
    job_id: str | None,
    vertices: Mapping[str, str] | None,
    job_file: Job | None,
    timeout_s: float | None,
    observe_s: float,
    dry_run: bool,
    json: bool,
) -> None:
    """Write a plan into a branch, wait until it is merged and deployed, and record that; or print the steps.

    Args:
        flink: REST address of the cluster; None: the one in the job's file.
        timeout_s: how long to wait for the merge, seconds; None: as the job's file says.

    Raises:
        Stopped: Ctrl-C; the branch stays as it is.
        SluiceError: the plan was not merged, or the job does not run as planned.
    """
    address = flink or applying.flink
    if address is None:
        raise InvalidInput(
            "give --flink URL, or state 'flink' in operations.apply of the job's file: the job is verified after the merge"
        )
    with FlinkRest(address, token_variable=token_variable) as rest:
        named = job_id or applying.job or plan.job
        with flinks_answers(rest.url):
            planned = planned_merge(rest, plan, repository, job=named, vertices=vertices, job_file=job_file)
        if dry_run:
            _print_steps(planned, observe_s, json)
            return
        merge_s = repository.merge_s if timeout_s is None else timeout_s
        proposal = propose(
            PlanStore(workspace),
            planned,
            flink=rest.url,
            flink_job=named,
            merge_s=merge_s,
            observe_s=observe_s,
            before=observed_before(rest, planned, observe_s, say),
        )
        keep_proposal(workspace, proposal)
        applied = _followed(workspace, rest, plan, proposal)
    uri = record(workspace, applied)
    if json:
        print_json(applied)
    else:
        print_applied(plan, applied)
    say(f"recorded in {uri}")
    if applied.outcome in NOT_APPLIED:
        raise SluiceError(f"{plan.job}@{plan.version} was not applied: {applied.reason}")


def _followed(workspace: Workspace, rest: FlinkRest, plan: Plan, proposal: Proposal) -> Applied:
    name = f"{plan.job}@{plan.version}"
    if not proposal.is_stated:
        what = "has the plan already" if proposal.commit is None else f"is at {proposal.commit:.12} now"
        say(f"the branch {proposal.branch} of {proposal.repository} {what}; merge it into {proposal.target}")
    try:
        with progress_console.status(f"waiting until {proposal.until:%Y-%m-%d %H:%M} UTC for the merge of {name}"):
            look = await_merge(MergeWatch(proposal), say)
    except KeyboardInterrupt:
        raise Stopped(
            f"the branch {proposal.branch} of {proposal.repository} stays as it is, and the merge of {name} is not waited for; "
            "the same command waits for it again"
        ) from None
    if look.state == "ended":
        return not_merged(proposal, look)
    try:
        return follow_merged(workspace, rest, plan, proposal, look.commit, say)
    except KeyboardInterrupt:
        raise Stopped(
            f"{proposal.target} has {name}, and the job is not followed any more; the same command follows it again"
        ) from None


def _print_steps(planned: PlannedMerge, observe_s: float, json: bool) -> None:
    plan, todo = planned.plan, merge_steps(planned, observe_s)
    if json:
        print_json(_document(planned, todo))
        return
    where = f"{planned.target}:{planned.repository.path}"
    console.print(Text(f"{plan.job}@{plan.version} in {planned.repository.url} {where}", style="bold"))
    shown = table("operators", "vertex", "now", "plan", wrap=("operators", "vertex"))
    for change in planned.changes:
        shown.add_row(Text(", ".join(change.operators)), Text(change.name), str(change.before), str(change.after))
    console.print(shown)
    console.print(Text(planned.difference), soft_wrap=True)
    for number, step in enumerate(todo, start=1):
        console.print(Text(f"{number}. {step}"), soft_wrap=True)
    if not todo:
        console.print(f"{planned.target} states the plan already, and Flink runs it")
    print_advice(planned.advice)


def _document(planned: PlannedMerge, todo: list[str]) -> dict[str, Any]:
    return {
        "job": planned.plan.job,
        "version": planned.plan.version,
        "repository": planned.repository.url,
        "path": planned.repository.path,
        "target": planned.target,
        "branch": planned.branch,
        "flink_job": planned.flink_job,
        "method": "none" if planned.is_done else "merge",
        "changes": [change.model_dump(mode="json") for change in planned.changes],
        "difference": planned.difference,
        "steps": todo,
        "advice": list(planned.advice),
    }
