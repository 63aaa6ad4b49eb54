"""One file in branches of a remote repository, fetched again only where a branch has moved."""

from dataclasses import dataclass

from pipelines.apply.gitops.git.program import git_on


@dataclass(frozen=True)
class FileInBranch:
    """The file at the newest commit of a branch."""

    commit: str
    text: str | None
    """None where the branch has no such file."""


class RemoteFile:
    """Reads the file; it remembers what it has read."""

    def __init__(self, repository: str, path: str) -> None:
        self._repository, self._path = repository, path
        self._known: dict[str, FileInBranch] = {}

    def read(self, *branches: str) -> dict[str, FileInBranch]:
        """The file in those of the branches that exist, all as they are at one moment.

        Raises:
            SluiceError: the repository cannot be read.
        """
        with git_on(self._repository) as git:
            found = {}
            for branch, commit in git.heads(*branches).items():
                known = self._known.get(branch)
                if known is None or known.commit != commit:
                    newest = git.fetch(branch)
                    known = self._known[branch] = FileInBranch(newest, git.file(newest, self._path))
                found[branch] = known
            return found
