"""The return from a merged plan that does harm: the values before it, in a branch of their own, which people merge or not.

Only what Sluice had written changes: the tasks of the plan's vertices, and the plan's name. They are taken from the file
before the commit that brought the plan, and written into the file as it is now.
"""

from collections.abc import Mapping
from typing import Final

from flink_client.overrides import OVERRIDES_OPTION, overrides
from models.errors import SluiceError
from pipelines.apply.applied import Applied, ProposedReturn
from pipelines.apply.export import ANNOTATION
from pipelines.apply.gitops.git.branch import push_file
from pipelines.apply.gitops.git.program import Git, git_on
from pipelines.apply.gitops.manifest import edited_manifest
from pipelines.apply.gitops.merge import deviation, read_stated
from pipelines.apply.gitops.proposal import Proposal
from pipelines.apply.gitops.stated import StatedPlan

_COMMITS: Final = 100
"""Newest commits of the target, among which the one that brought the plan is looked for."""


def with_return(applied: Applied, proposal: Proposal, ran: Mapping[str, int]) -> Applied:
    """The record of a merged plan that failed, with the return that was proposed, or why none was.

    Args:
        ran: tasks by vertex id that Flink ran before the plan, for vertices whose tasks the file did not state. Their overrides
            are not removed, since the operator would redeploy the job then.
    """
    try:
        made, former = _propose_return(applied.reason, proposal, ran)
    except SluiceError as error:
        return applied.model_copy(update={"reason": f"{applied.reason}; no return is proposed, since {error}"})
    to_do = f"merge the branch {made.branch} of {proposal.repository} into {proposal.target} to return to {former}"
    return applied.model_copy(update={"reason": f"{applied.reason}; {to_do}", "proposed_return": made})


def _propose_return(why: str, proposal: Proposal, ran: Mapping[str, int]) -> tuple[ProposedReturn, str]:
    """Write the return into its branch, unless it is there; what it returns to, in words.

    Raises:
        SluiceError: why there is none; nothing was changed.
    """
    path = proposal.path
    with git_on(proposal.repository) as git:
        head = git.fetch(proposal.target, _COMMITS)
        text = git.file(head, path)
        now = read_stated(proposal, text, proposal.target)
        if text is None or not isinstance(now, StatedPlan) or not now.includes(proposal.wanted):
            raise SluiceError(f"{path} in {proposal.target} was changed since: it {deviation(now, proposal)}")
        reverts = _commit_that_brought(git, head, proposal)
        former = _former(git, reverts, proposal, ran)
        branch, name = f"{proposal.branch}-return-{reverts:.8}", former.plan or "what the file stated before"
        if branch in git.heads(branch):
            commit = git.fetch(branch)
            own = read_stated(proposal, git.file(commit, path), branch)
            if not (isinstance(own, StatedPlan) and own.includes(former)):
                raise SluiceError(
                    f"the branch {branch} of {git.shown} is there already with other content; delete it, or revert commit "
                    f"{reverts:.12} yourself"
                )
            return ProposedReturn(branch=branch, commit=commit, reverts=reverts), name
        tasks = {v: n for v, n in now.tasks.items() if v in former.tasks or v not in proposal.wanted.tasks}
        patch = {
            "metadata": {"annotations": {ANNOTATION: former.plan}},
            "spec": {"flinkConfiguration": {OVERRIDES_OPTION: overrides(tasks | former.tasks) or None}},
        }
        new = edited_manifest(text, proposal.job, patch, path)
        commit = push_file(git, head, branch, path, new, _message(why, proposal, former, name, reverts))
    return ProposedReturn(branch=branch, commit=commit, reverts=reverts), name


def _commit_that_brought(git: Git, head: str, proposal: Proposal) -> str:
    """The commit since which the target states the plan.

    Raises:
        SluiceError: it is older than what was fetched.
    """

    def states_plan(commit: str) -> bool:
        stated = read_stated(proposal, git.file(commit, proposal.path), commit)
        return isinstance(stated, StatedPlan) and stated.includes(proposal.wanted)

    found = None
    for commit in git.changes_of(head, proposal.path):
        if not states_plan(commit):
            break
        found = commit
    if found is None or states_plan(f"{found}^"):
        raise SluiceError(
            f"{proposal.target} has had {proposal.wanted.plan} for more than {_COMMITS} commits; revert it yourself"
        )
    return found


def _former(git: Git, reverts: str, proposal: Proposal, ran: Mapping[str, int]) -> StatedPlan:
    """What the file stated of the plan's vertices before a commit.

    Raises:
        SluiceError: there is nothing to return to.
    """
    path, plan = proposal.path, proposal.wanted.plan
    stated = read_stated(proposal, git.file(f"{reverts}^", path), f"{reverts:.12}^")
    if stated is None:
        raise SluiceError(
            f"{path} came with {plan}, its first version, so there is nothing to return to; state other tasks in it, or revert "
            f"commit {reverts:.12}"
        )
    if isinstance(stated, str):
        raise SluiceError(f"there is nothing to return to: {stated}")
    known = dict(ran) | stated.tasks
    former = StatedPlan(plan=stated.plan, tasks={v: known[v] for v in proposal.wanted.tasks if v in known})
    if former.tasks == proposal.wanted.tasks:
        raise SluiceError(f"{path} stated the same tasks before {plan}")
    return former


def _message(why: str, proposal: Proposal, former: StatedPlan, name: str, reverts: str) -> str:
    names = {c.vertex: c.name for c in proposal.changes}
    changed = [
        f"- {names.get(vertex, vertex)}: {tasks} -> {former.tasks.get(vertex, 'no')} tasks"
        for vertex, tasks in proposal.wanted.tasks.items()
        if former.tasks.get(vertex) != tasks
    ]
    return "\n".join(
        [
            f"Return from {proposal.wanted.plan} to {name}",
            "",
            f"What was seen: {why}.",
            "",
            f"Reverts what commit {reverts} wrote for the plan, and nothing else of the file:",
            *changed,
            "",
        ]
    )
