"""Applications of plans, stored beside them: plans/<job>/v000002-applied-000001.json, -000002.json, ..."""

import re
from datetime import datetime
from typing import Final, TypeVar

from pydantic import BaseModel

from pipelines.apply.applied import Applied
from pipelines.store.plans import FOLDER
from pipelines.store.workspace import Damaged, Workspace, to_json

Document = TypeVar("Document", bound=BaseModel)

_APPLIED: Final = "applied"
_FILE: Final = re.compile(r"v(?P<version>\d{6,})-(?P<kind>[a-z]+)-(?P<number>\d{6,})\.json")


def record(workspace: Workspace, applied: Applied) -> str:
    """Store an application of a plan permanently; concurrent writers do not replace each other's. Returns its URI."""
    return workspace.uri(keep_numbered(workspace, applied.job, applied.version, _APPLIED, applied))


def recorded(workspace: Workspace, job: str, version: int) -> list[Applied]:
    """All applications of a version, the first one first.

    Raises:
        Damaged: a file is truncated or not valid.
    """
    return kept(workspace, job, version, _APPLIED, Applied)


def recorded_of_job(workspace: Workspace, job: str) -> tuple[list[Applied], list[str]]:
    """All applications of any version by when they began, and the faults of those whose files are damaged."""
    found: list[Applied] = []
    faults: list[str] = []
    for key in workspace.list(f"{FOLDER}/{job}"):
        match = _FILE.fullmatch(key.rsplit("/", 1)[-1])
        if match is None or match["kind"] != _APPLIED:
            continue
        try:
            found.append(workspace.read(key, Applied))
        except Damaged as error:
            faults.append(str(error))
    return sorted(found, key=lambda one: datetime.fromisoformat(one.started_at)), faults


def kept(workspace: Workspace, job: str, version: int, kind: str, form: type[Document]) -> list[Document]:
    """All documents of a kind beside a version of a plan, the first one first.

    Raises:
        Damaged: a file is truncated or not valid.
    """
    return [workspace.read(key, form) for _, key in _numbered(workspace, job, version, kind)]


def keep_numbered(workspace: Workspace, job: str, version: int, kind: str, document: BaseModel) -> str:
    """Store a document beside a version of a plan, under the next number of its kind. Returns its key."""
    while True:
        number = 1 + max((n for n, _ in _numbered(workspace, job, version, kind)), default=0)
        key = f"{FOLDER}/{job}/v{version:06d}-{kind}-{number:06d}.json"
        try:
            workspace.create_bytes(key, to_json(document))
        except FileExistsError:
            continue
        return key


def _numbered(workspace: Workspace, job: str, version: int, kind: str) -> list[tuple[int, str]]:
    matches = ((_FILE.fullmatch(key.rsplit("/", 1)[-1]), key) for key in workspace.list(f"{FOLDER}/{job}"))
    found = ((m, key) for m, key in matches if m and m["kind"] == kind and int(m["version"]) == version)
    return sorted((int(m["number"]), key) for m, key in found)
