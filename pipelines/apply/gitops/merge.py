"""Whether a proposed plan is merged: decided by what the file states in the target and in the plan's branch.

The content decides, not the history, so merge commits, squashes and rebases count alike.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal

from models.errors import InvalidInput, SluiceError
from pipelines.apply.gitops.git.remote_file import FileInBranch, RemoteFile
from pipelines.apply.gitops.proposal import Proposal
from pipelines.apply.gitops.stated import StatedPlan, stated_in

_SHOWN: Final = 3


@dataclass(frozen=True)
class MergeLook:
    """`ended`: it will not be merged as proposed."""

    state: Literal["waiting", "merged", "ended"]
    sentence: str
    commit: str | None = None
    """The target's, where it is merged."""


def merge_look(proposal: Proposal, target: FileInBranch | None, branch: FileInBranch | None) -> MergeLook:
    """Compare what the two branches have now with what was proposed.

    Args:
        target: None where the branch does not exist, and so `branch`.
    """
    plan, where = f"{proposal.job}@{proposal.version}", f"{proposal.path} in {proposal.target}"
    if target is None:
        return _ended(proposal, f"the branch {proposal.target!r} is gone from {proposal.repository}")
    stated = read_stated(proposal, target.text, proposal.target)
    if isinstance(stated, StatedPlan) and stated.includes(proposal.wanted):
        return MergeLook("merged", f"{proposal.target} has {plan} at commit {target.commit:.12}", target.commit)
    if stated != proposal.before:
        return _ended(proposal, f"{where} was changed otherwise: it {deviation(stated, proposal)}")
    if branch is None:
        return _ended(proposal, f"the branch {proposal.branch} was deleted, and {proposal.target} does not have {plan}")
    own = read_stated(proposal, branch.text, proposal.branch)
    if not (isinstance(own, StatedPlan) and own.includes(proposal.wanted)):
        return _ended(
            proposal, f"{proposal.path} in the branch {proposal.branch} was changed: it {deviation(own, proposal)}"
        )
    return MergeLook("waiting", f"{proposal.branch} is not merged into {proposal.target} yet")


class MergeWatch:
    """Looks at the repository again and again; a repository that does not answer may do so later."""

    def __init__(
        self,
        proposal: Proposal,
        *,
        obstacle: Callable[[], str | None] = lambda: None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """
        Args:
            obstacle: why the plan is not to be waited for any more, though it is not merged; None: it is.
        """
        self.look_every_s = proposal.look_every_s
        self._proposal, self._obstacle, self._now = proposal, obstacle, now
        self._file = RemoteFile(proposal.repository, proposal.path)

    def look(self) -> MergeLook:
        proposal = self._proposal
        try:
            found = self._file.read(proposal.target, proposal.branch)
        except SluiceError as error:
            look = MergeLook("waiting", str(error))
        else:
            look = merge_look(proposal, found.get(proposal.target), found.get(proposal.branch))
        if look.state != "waiting":
            return look
        try:
            obstacle = self._obstacle()
        except SluiceError as error:  # as where the job's file is being edited
            look, obstacle = MergeLook("waiting", str(error)), None
        if obstacle is not None:
            return _ended(proposal, obstacle)
        if self._now() >= proposal.until:
            return _ended(
                proposal, f"{look.sentence} after {proposal.merge_s:g} s; the branch stays as it is", again=True
            )
        return look


def _ended(proposal: Proposal, why: str, again: bool = False) -> MergeLook:
    what = "wait on" if again else "propose it once more"
    return MergeLook("ended", f"{why}; apply {proposal.job}@{proposal.version} again to {what}")


def read_stated(proposal: Proposal, text: str | None, branch: str) -> StatedPlan | str | None:
    """What the file states, or why it cannot be read; None where there is no file."""
    try:
        return stated_in(text, proposal.job, f"{proposal.path} in {branch}")
    except InvalidInput as error:
        return str(error)


def deviation(stated: StatedPlan | str | None, proposal: Proposal) -> str:
    """How a file differs from the plan, as the end of a sentence."""
    if stated is None:
        return "was removed"
    if isinstance(stated, str):
        return f"cannot be compared ({stated})"
    wanted = proposal.wanted
    if stated.plan != wanted.plan:
        return f"names {stated.plan or 'no plan'}, not {wanted.plan}"
    names = {c.vertex: c.name for c in proposal.changes}
    other = [
        f"{stated.tasks.get(vertex, 'no')} tasks of {names.get(vertex, vertex)!r}, not {tasks}"
        for vertex, tasks in wanted.tasks.items()
        if stated.tasks.get(vertex) != tasks
    ]
    more = f" and {len(other) - _SHOWN} more" if len(other) > _SHOWN else ""
    return f"has {'; '.join(other[:_SHOWN])}{more}"
