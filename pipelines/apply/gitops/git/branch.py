"""One file in a branch of a git repository: committed where it differs, and pushed without force.

Nothing is checked out: the commit is made from git's objects in a temporary repository, so no working tree is touched.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from models.errors import InvalidInput
from pipelines.apply.gitops.git.program import Git, git_on
from pipelines.inputs.operations.repository import checked_path, checked_repository

_BLOB_MODE: Final = "100644"

Text = Callable[[str | None], str]


@dataclass(frozen=True)
class Committed:
    """The state of the branch afterwards."""

    commit: str | None
    """The new commit; None where the branch had the file already."""
    branch: str


def commit_file(
    repository: str, branch: str, path: str, text: Text, message: Text, start: str | None = None
) -> Committed:
    """Make a branch hold a file with this text.

    Args:
        repository: what `git fetch` takes.
        path: of the file in the repository.
        text: the file's new text, from its former one; None where there was none.
        message: the commit's message, likewise.
        start: branch that a new branch starts from; None: the default branch.

    Raises:
        InvalidInput: an argument is unusable.
        SluiceError: git failed, or the branch was pushed to meanwhile; nothing was changed.
    """
    _check(repository, path)
    with git_on(repository) as git:
        git("check-ref-format", "--branch", branch, fault=f"{branch!r:.100} is no name of a branch")
        parent = _fetched(git, branch, start)
        former = None if parent is None else git.file(parent, path)
        new = text(former)
        if former == new:
            return Committed(None, branch)
        return Committed(push_file(git, parent, branch, path, new, message(former)), branch)


def push_file(git: Git, parent: str | None, branch: str, path: str, text: str, message: str) -> str:
    """Commit a file on top of a commit that was fetched, and push that as the head of a branch. Returns the commit.

    Raises:
        SluiceError: git failed, or the branch has other commits; nothing was changed.
    """
    commit = _commit(git, parent, path, text, message)
    git(
        "push",
        "--quiet",
        git.repository,
        f"{commit}:refs/heads/{branch}",
        fault=f"{git.shown} did not take the commit on {branch!r}, so nothing was changed; if somebody pushed meanwhile, "
        "run this again",
    )
    return commit


def _fetched(git: Git, branch: str, start: str | None) -> str | None:
    """The commit to build on; None for an empty repository."""
    if git.heads(branch):
        return git.fetch(branch)
    return None if start is None and git.is_empty() else git.fetch(start)


def _commit(git: Git, parent: str | None, path: str, text: str, message: str) -> str:
    fault = f"{path!r} cannot be written into {git.shown}"
    if parent is not None:
        git("read-tree", parent, fault=fault)
    blob = git("hash-object", "-w", "--stdin", given=text, fault=fault).strip()
    git("update-index", "--add", "--cacheinfo", f"{_BLOB_MODE},{blob},{path}", fault=fault)
    tree = git("write-tree", fault=fault).strip()
    parents = () if parent is None else ("-p", parent)
    return git("commit-tree", tree, *parents, "-F", "-", given=message, fault=fault).strip()


def _check(repository: str, path: str) -> None:
    for option, check, given in (("--path", checked_path, path), ("--git", checked_repository, repository)):
        try:
            check(given)
        except ValueError as error:
            raise InvalidInput(f"{option} {error}") from None
