"""Rehearsed plans of jobs that are deployed from a repository: proposed after the approval, verified after the merge."""

from collections.abc import Callable
from typing import Final

from flink_client.rest.answers import flinks_answers
from flink_client.rest.client import FlinkRest
from models.errors import InvalidInput, SluiceError
from models.plan.content import Plan
from pipelines.apply.applied import NOT_APPLIED, Applied
from pipelines.apply.gitops.merge import MergeLook, MergeWatch
from pipelines.apply.gitops.merging import not_merged, verify_merged
from pipelines.apply.gitops.proposal import Proposal
from pipelines.apply.gitops.proposing import observed_before, propose
from pipelines.apply.gitops.returning import with_return
from pipelines.apply.operating import OTHER_WAY, approved, check_unchanged
from pipelines.apply.record import keep_numbered, kept, record, recorded
from pipelines.apply.rehearsal import may_be_applied, merge_of
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace

_PROPOSED: Final = "proposed"


def propose_rehearsed(
    workspace: Workspace, key: str, approved_by: str | None, say: Callable[[str], None] = lambda what: None
) -> str | None:
    """Write a rehearsed plan into a branch; return the key of the proposal. None: its job is not deployed from a repository.

    Args:
        key: of the rehearsal.
        approved_by: the person; None where no approval is needed.

    Raises:
        InvalidInput: it may no longer be applied, it was not approved, or the running job has changed since.
        SluiceError: git failed, or Flink does not answer; nothing was changed.
    """
    rehearsal, plan, file, applying = approved(workspace, key, approved_by)
    if applying.repository is None:
        return None
    if rehearsal.method not in ("merge", "none"):
        raise InvalidInput(OTHER_WAY.format(plan=f"{plan.job}@{plan.version}"))
    with FlinkRest(rehearsal.flink_url) as rest:
        with flinks_answers(rest.url):
            planned = merge_of(rest, plan, file, applying, applying.repository)
        if approved_by is not None and not planned.is_done:
            check_unchanged(rehearsal, planned.flink_job, planned.changes)
        before = observed_before(rest, planned, applying.observe_s, say)
    proposal = propose(
        PlanStore(workspace),
        planned,
        flink=rehearsal.flink_url,
        flink_job=applying.job or plan.job,
        merge_s=applying.repository.merge_s,
        observe_s=applying.observe_s,
        before=before,
        approved_by=approved_by,
    )
    return keep_proposal(workspace, proposal)


def keep_proposal(workspace: Workspace, proposal: Proposal) -> str:
    """Store a proposal beside its plan; return its key."""
    return keep_numbered(workspace, proposal.job, proposal.version, _PROPOSED, proposal)


def watch_proposed(workspace: Workspace, key: str) -> MergeWatch:
    """Watch a stored proposal, until a newer plan takes its place or the job's file does not allow it any more."""
    proposal = workspace.read(key, Proposal)
    return MergeWatch(proposal, obstacle=lambda: may_be_applied(workspace, proposal.job, proposal.version))


def follow_merged(
    workspace: Workspace,
    rest: FlinkRest,
    plan: Plan,
    proposal: Proposal,
    commit: str | None,
    say: Callable[[str], None] = lambda what: None,
) -> Applied:
    """Verify the job after the merge of a plan; where that fails, propose the return to what the file stated before.

    Args:
        commit: of the target, which has the plan.

    Returns:
        The outcome; failures are recorded in it, not raised.
    """
    origin = _origin(workspace, proposal)
    before = None if origin is None else origin.observed
    applied = verify_merged(rest, plan, proposal, before, commit, say)
    if applied.outcome != "failed":
        return applied
    if origin is None:
        why = f"{proposal.target} had the plan already, and the job has run by it"
        return applied.model_copy(update={"reason": f"{applied.reason}; no return is proposed, since {why}"})
    say("proposing the return")
    ran = {} if origin.is_stated else {c.vertex: c.before for c in origin.changes if c.before is not None}
    return with_return(applied, proposal, ran)


def _origin(workspace: Workspace, proposal: Proposal) -> Proposal | None:
    """The proposal that the merged plan came by, as far as it is known; None where the job has run by the plan before.

    Where the target had the plan already, an earlier try may have proposed it, and have been stopped since.
    """
    if not proposal.is_stated:
        return proposal
    job, version = proposal.job, proposal.version
    earlier = [one for one in kept(workspace, job, version, _PROPOSED, Proposal) if not one.is_stated]
    origin = earlier[-1] if earlier else proposal
    since = [one for one in recorded(workspace, job, version) if (one.proposed_at or "") >= origin.proposed_at]
    return None if any(one.outcome == "applied" for one in since) else origin


def conclude_merged(workspace: Workspace, key: str, say: Callable[[str], None] = lambda what: None) -> str:
    """Follow the job after the merge, and record the outcome; a plan that fails has its return proposed.

    Args:
        key: of the proposal.

    Returns:
        The URI of the record.

    Raises:
        SluiceError: the job does not run as planned; the record says so, too.
    """
    proposal = workspace.read(key, Proposal)
    plan = PlanStore(workspace).get(proposal.job, proposal.version)
    commit = MergeWatch(proposal).look().commit
    with FlinkRest(proposal.flink) as rest:
        return keep_outcome(workspace, follow_merged(workspace, rest, plan, proposal, commit, say))


def conclude_not_merged(workspace: Workspace, key: str, look: MergeLook) -> str:
    """Record a proposal that will not be merged.

    Raises:
        SluiceError: always, with the reason.
    """
    return keep_outcome(workspace, not_merged(workspace.read(key, Proposal), look))


def keep_outcome(workspace: Workspace, applied: Applied) -> str:
    """Record an application; return the URI.

    Raises:
        SluiceError: the plan was not applied; the record says so, too.
    """
    uri = record(workspace, applied)
    if applied.outcome in NOT_APPLIED:
        raise SluiceError(f"{applied.job}@{applied.version} {applied.outcome}: {applied.reason} ({uri})")
    return uri
