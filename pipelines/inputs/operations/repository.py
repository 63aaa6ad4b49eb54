"""The git repository that a job is deployed from: the block `operations.apply.repository` of its file."""

import re
from pathlib import PurePosixPath
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from models.schema import Format, Positive

_BRANCH: Final = r"^[A-Za-z0-9][A-Za-z0-9._/-]*$"
_LONGEST: Final = 500
_SCP: Final = re.compile(r"[^/\s]+:\S+")
"""`git@example.com:team/flink-jobs.git`, as SSH takes it."""


def checked_repository(repository: str) -> str:
    """What `git fetch` takes. Raises ValueError: it is none, or holds a password."""
    if repository.startswith("-") or not repository or not repository.isprintable():
        raise ValueError(f"must be an address or a path of a repository, but got {repository!r:.100}")
    if "://" in repository and urlsplit(repository).password is not None:
        raise ValueError("must not hold a password; use a credential helper of git, or SSH")
    return repository


def checked_path(path: str) -> str:
    """A file inside a repository. Raises ValueError: it is none."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or ".git" in (part.lower() for part in parts) or "\n" in path:
        raise ValueError(f"must be a file inside the repository, such as jobs/q5/sluice.yaml, but got {path!r:.100}")
    return path


def _checked_url(url: str) -> str:
    """An address that can be stored in records. Raises ValueError: it is relative, or holds a user that may be a token."""
    if url.lower().startswith(("http://", "https://")) and "@" in urlsplit(url).netloc:
        raise ValueError("must not hold a user or a password; use a credential helper of git, or SSH")
    if len(url) > _LONGEST:
        raise ValueError(f"must have at most {_LONGEST} characters, but has {len(url)}")
    checked_repository(url)
    if not (url.startswith("/") or "://" in url or _SCP.fullmatch(url)):
        raise ValueError(f"must be an address or an absolute path of a repository, but got {url[:100]!r}")
    return url


class DeploymentRepository(Format):
    """Where the resource of a job is kept that is deployed from a repository, as by Argo CD or Flux."""

    url: Annotated[str, AfterValidator(_checked_url)] = Field(
        description="The repository: what `git clone` takes, or an absolute path; without credentials, which git finds itself.",
    )
    path: Annotated[str, AfterValidator(checked_path)] = Field(
        max_length=500,
        description="File in it: the manifest of the FlinkDeployment, or the patch that Sluice writes.",
    )
    target: str | None = Field(
        None,
        pattern=_BRANCH,
        max_length=200,
        description="Branch that is deployed; default: the repository's default branch.",
    )
    prefix: str = Field(
        "sluice/",
        pattern=_BRANCH,
        max_length=100,
        description="Start of the names of branches that plans are written into: PREFIX, then JOB-VERSION.",
    )
    look_every_s: float = Field(30.0, ge=1, le=3600, description="Time between two looks for the merge, seconds.")
    merge_s: Positive = Field(604800.0, le=7776000, description="How long to wait for the merge, seconds.")
    deploy_s: Positive = Field(
        900.0, le=7200, description="Time from the merge until the job runs as planned, seconds."
    )

    def branch(self, job: str, version: int) -> str:
        """The branch that a version of a plan is written into: one of its own, so that no older one is in its way."""
        return f"{self.prefix}{job}-{version}"
