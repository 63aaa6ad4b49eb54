"""One file in a branch of a git repository: committed where it differs, and pushed without force.

Nothing is checked out: the commit is made from git's objects in a temporary repository, so no working tree is touched.
"""

import os
import re
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.parse import urlsplit

from models.errors import InvalidInput, SluiceError

_TIMEOUT_S: Final = 120
_LONGEST: Final = 400
_NEW: Final = "refs/sluice/new"
_PASSWORD: Final = re.compile(r"//[^/@\s]+@")
_BLOB_MODE: Final = "100644"


Text = Callable[[str | None], str]


@dataclass(frozen=True)
class Committed:
    """The state of the branch afterwards."""

    commit: str | None
    """The new commit; None where the branch had the file already."""
    branch: str


def commit_file(repository: str, branch: str, path: str, text: Text, message: Text) -> Committed:
    """Make a branch hold a file with this text; a branch that does not exist starts from the default branch.

    Args:
        repository: what `git fetch` takes.
        path: of the file in the repository.
        text: the file's new text, from its former one; None where there was none.
        message: the commit's message, likewise.

    Raises:
        InvalidInput: an argument is unusable.
        SluiceError: git failed, or the branch was pushed to meanwhile; nothing was changed.
    """
    _check(repository, path)
    with tempfile.TemporaryDirectory(prefix="sluice-git-") as folder:
        git = _Git(Path(folder), repository)
        git("check-ref-format", "--branch", branch, fault=f"--branch {branch!r:.100} is no name of a branch")
        parent = _fetched(git, branch)
        former = None if parent is None else git.file(parent, path)
        new = text(former)
        if former == new:
            return Committed(None, branch)
        commit = _commit(git, parent, path, new, message(former))
        git(
            "push",
            "--quiet",
            repository,
            f"{commit}:refs/heads/{branch}",
            fault=f"{git.shown} did not take the commit on {branch!r}, so nothing was changed; if somebody pushed meanwhile, "
            "export the plan again",
        )
        return Committed(commit, branch)


def _fetched(git: "_Git", branch: str) -> str | None:
    """The commit to build on; None for an empty repository."""
    unreachable = f"the git repository {git.shown} cannot be read"
    heads = git("ls-remote", git.repository, "HEAD", f"refs/heads/{branch}", fault=unreachable).split()
    for ref in (f"refs/heads/{branch}", "HEAD"):
        if ref in heads:
            git("fetch", "--quiet", "--depth", "1", "--no-tags", git.repository, f"{ref}:{_NEW}", fault=unreachable)
            return git("rev-parse", _NEW, fault=unreachable).strip()
    return None


def _commit(git: "_Git", parent: str | None, path: str, text: str, message: str) -> str:
    fault = f"{path!r} cannot be written into {git.shown}"
    if parent is not None:
        git("read-tree", parent, fault=fault)
    blob = git("hash-object", "-w", "--stdin", given=text, fault=fault).strip()
    git("update-index", "--add", "--cacheinfo", f"{_BLOB_MODE},{blob},{path}", fault=fault)
    tree = git("write-tree", fault=fault).strip()
    parents = () if parent is None else ("-p", parent)
    return git("commit-tree", tree, *parents, "-F", "-", given=message, fault=fault).strip()


class _Git:
    """The git program in a repository of its own, with the settings and credentials of the user."""

    def __init__(self, folder: Path, repository: str) -> None:
        self.repository, self.shown = repository, repr(_PASSWORD.sub("//", repository))[:200]
        self._folder = folder
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_DIR")}
        for name in ("GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR", "GIT_NAMESPACE"):
            self._environment.pop(name, None)
        self._environment |= {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
        self("init", "--quiet", "--bare", fault="git cannot start a repository")
        if not self._has_identity():
            for role in ("AUTHOR", "COMMITTER"):
                self._environment |= {f"GIT_{role}_NAME": "Sluice", f"GIT_{role}_EMAIL": "sluice@localhost"}

    def __call__(self, *arguments: str, fault: str, given: str | None = None) -> str:
        """Standard output of a command.

        Raises:
            SluiceError: it failed; the message has `fault` and git's own words.
        """
        done = self._run(arguments, given, fault)
        if done.returncode != 0:
            said = " ".join(_PASSWORD.sub("//", done.stderr).split())[:_LONGEST]
            error = InvalidInput if arguments[0] == "check-ref-format" else SluiceError
            raise error(f"{fault} (git: {said or 'no reason was given'})")
        return done.stdout

    def file(self, commit: str, path: str) -> str | None:
        """The text of a file; None where the commit has none of that path."""
        done = self._run(("cat-file", "blob", f"{commit}:{path}"), None, f"{path!r} cannot be read")
        return done.stdout if done.returncode == 0 else None

    def _has_identity(self) -> bool:
        return self._run(("var", "GIT_COMMITTER_IDENT"), None, "git has no identity").returncode == 0

    def _run(self, arguments: tuple[str, ...], given: str | None, fault: str) -> subprocess.CompletedProcess[str]:
        try:
            done = subprocess.run(
                ["git", *arguments],
                cwd=self._folder,
                env=self._environment,
                input=(given or "").encode(),
                capture_output=True,
                timeout=_TIMEOUT_S,
            )
        except FileNotFoundError as error:
            raise SluiceError("the program git was not found on the PATH; install it") from error
        except subprocess.TimeoutExpired as error:
            raise SluiceError(f"{fault}: git {arguments[0]} did not end within {_TIMEOUT_S} s") from error
        out, said = (stream.decode(errors="replace") for stream in (done.stdout, done.stderr))
        return subprocess.CompletedProcess(done.args, done.returncode, out, said)


def _check(repository: str, path: str) -> None:
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or ".git" in (part.lower() for part in parts) or "\n" in path:
        raise InvalidInput(
            f"--path must be a file inside the repository, such as jobs/q5/sluice.yaml, but got {path!r:.100}"
        )
    if repository.startswith("-") or not repository:
        raise InvalidInput(f"--git must be an address or a path of a repository, but got {repository!r:.100}")
    if "://" in repository and urlsplit(repository).password is not None:
        raise InvalidInput("--git must not hold a password; use a credential helper of git, or SSH")
