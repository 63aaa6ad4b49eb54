"""Tasks of `apply_plan` for jobs that are deployed from a git repository."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sluice_airflow.reporting import reported, task_progress
from sluice_airflow.tasks.applying import PERSON, REJECTED, failure_notified
from sluice_airflow.tasks.plan_events import opened

if TYPE_CHECKING:
    from pipelines.apply.gitops.proposal import Proposal


def propose(rehearsal_uri: str, approved_by: str) -> str | None:
    """Write the plan into a branch, and return the URI of the proposal.

    None, without any step: the steps were rejected, or the job is not deployed from a repository.
    """
    if approved_by.startswith(REJECTED):
        return None
    with reported("merge"):
        from pipelines.apply.gitops.operating import propose_rehearsed
        from pipelines.apply.gitops.proposal import Proposal

        workspace, key = opened(rehearsal_uri)
        person = approved_by.removeprefix(PERSON) if approved_by.startswith(PERSON) else None
        with failure_notified(key.split("/")[1]):
            proposed = propose_rehearsed(workspace, key, person, lambda what: task_progress().say(f"   {what}"))
        if proposed is None:
            task_progress().say("   the job's file names no repository (operations.apply.repository)")
            return None
        task_progress().say(f"   {_proposed(workspace.read(proposed, Proposal))}")
        uri: str = workspace.uri(proposed)
        return uri


def is_stated(proposal_uri: str) -> bool:
    """Whether the branch that is deployed had the plan already, so that no merge is awaited."""
    from pipelines.apply.gitops.proposal import Proposal

    workspace, key = opened(proposal_uri)
    return bool(workspace.read(key, Proposal).is_stated)


def merged(event: Mapping[str, Any]) -> str:
    """The URI of the merged proposal, from the event of the trigger.

    Raises:
        SluiceError: it will not be merged; that is recorded.
    """
    with reported("merge"):
        from pipelines.apply.gitops.merge import MergeLook
        from pipelines.apply.gitops.operating import conclude_not_merged

        look = MergeLook(event["state"], event["sentence"])
        if look.state != "merged":
            workspace, key = opened(event["proposal"])
            with failure_notified(key.split("/")[1]):
                conclude_not_merged(workspace, key, look)
        task_progress().say(f"   {look.sentence}")
        return str(event["proposal"])


def apply_merged(proposal_uri: str) -> str:
    """Follow the job after the merge, and return the URI of the record.

    Raises:
        SluiceError: it does not run as planned; that is recorded, with the branch that returns from the plan.
    """
    with reported("apply"):
        from pipelines.apply.gitops.operating import conclude_merged

        workspace, key = opened(proposal_uri)
        with failure_notified(key.split("/")[1]):
            return conclude_merged(workspace, key, lambda what: task_progress().say(f"   {what}"))


def _proposed(proposal: "Proposal") -> str:
    if proposal.is_stated:
        return f"{proposal.target} of {proposal.repository} has the plan already"
    what = "has the plan already" if proposal.commit is None else f"is at {proposal.commit:.12} now"
    return f"the branch {proposal.branch} of {proposal.repository} {what}; merge it into {proposal.target}"
