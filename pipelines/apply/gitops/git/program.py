"""The git program on a remote repository, with the settings and credentials of the user; no forge's interface is used."""

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from models.errors import InvalidInput, SluiceError

_TIMEOUT_S: Final = 120
_LONGEST: Final = 400
_PASSWORD: Final = re.compile(r"//[^/@\s]+@")
_OWN: Final = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR", "GIT_NAMESPACE")
_HEAD: Final = "refs/heads/"


class Git:
    """Runs git in an empty repository of its own, so that no working tree is touched."""

    def __init__(self, folder: Path, repository: str) -> None:
        self.repository, self.shown = repository, repr(without_user(repository))[:200]
        self.unreachable = f"the git repository {self.shown} cannot be read"
        self._folder = folder
        self._environment = {name: value for name, value in os.environ.items() if name not in _OWN}
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

    def heads(self, *branches: str) -> dict[str, str]:
        """The commits of those of the branches that the repository has, all read at one moment."""
        refs = [f"{_HEAD}{branch}" for branch in branches]
        listed = self("ls-remote", "--heads", self.repository, *refs, fault=self.unreachable).splitlines()
        found = {ref: commit for commit, ref in (line.split("\t", 1) for line in listed)}
        return {branch: found[f"{_HEAD}{branch}"] for branch in branches if f"{_HEAD}{branch}" in found}

    def default_branch(self) -> str | None:
        """The branch that a clone checks out; None where the repository is empty, or does not say."""
        listed = self("ls-remote", "--symref", self.repository, "HEAD", fault=self.unreachable).splitlines()
        named = [line.split()[1] for line in listed if line.startswith(f"ref: {_HEAD}")]
        return named[0].removeprefix(_HEAD) if named and len(listed) > 1 else None

    def is_empty(self) -> bool:
        return not self("ls-remote", self.repository, "HEAD", fault=self.unreachable).strip()

    def fetch(self, branch: str | None, depth: int = 1) -> str:
        """Get the newest commits of a branch; return the id of the newest. None: the default branch."""
        remote, ref = (
            ("HEAD", "refs/sluice/HEAD") if branch is None else (f"{_HEAD}{branch}", f"refs/sluice/heads/{branch}")
        )
        fetched = ("--quiet", "--depth", str(depth), "--no-tags", self.repository, f"+{remote}:{ref}")
        self("fetch", *fetched, fault=self.unreachable)
        return self("rev-parse", ref, fault=self.unreachable).strip()

    def file(self, commit: str, path: str) -> str | None:
        """The text of a file; None where the commit has none of that path."""
        done = self._run(("cat-file", "blob", f"{commit}:{path}"), None, f"{path!r} cannot be read")
        return done.stdout if done.returncode == 0 else None

    def changes_of(self, commit: str, path: str) -> list[str]:
        """Commits that changed a file on the way to one, the newest first; merged branches count as their merge.

        The last of those that were fetched may not be among them: its parent is needed to see that it changed the file.
        """
        fault = f"the history of {path!r} cannot be read"
        listed = self(
            "log", "--first-parent", "--format=%H %P", commit, "--", f":(literal){path}", fault=fault
        ).splitlines()
        return [line.split()[0] for line in listed if " " in line.strip()]

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


@contextmanager
def git_on(repository: str) -> Iterator[Git]:
    """Git on a remote repository, in a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="sluice-git-") as folder:
        yield Git(Path(folder), repository)


def without_user(repository: str) -> str:
    """The address for messages."""
    return _PASSWORD.sub("//", repository)
