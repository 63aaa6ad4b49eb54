"""What became of plans, beside them in the workspace: plans/<job>/v000002-applied-000001.json, -000002.json, ..."""

import re

from models.applied import Applied
from pipelines.plan_store import FOLDER
from pipelines.workspace import Workspace, to_json

_FILE = re.compile(r"v(?P<version>\d{6,})-applied-(?P<number>\d{6,})\.json")


def record(workspace: Workspace, applied: Applied) -> str:
    """Keep an application of a plan for good; of several writers none replaces another's. Returns its URI."""
    while True:
        number = 1 + max((n for n, _ in _recorded(workspace, applied.job, applied.version)), default=0)
        key = f"{FOLDER}/{applied.job}/v{applied.version:06d}-applied-{number:06d}.json"
        try:
            workspace.create_bytes(key, to_json(applied))
        except FileExistsError:
            continue
        return workspace.uri(key)


def recorded(workspace: Workspace, job: str, version: int) -> list[Applied]:
    """All applications of a version, the first one first.

    Raises:
        Damaged: a file is truncated or not valid.
    """
    return [workspace.read(key, Applied) for _, key in _recorded(workspace, job, version)]


def _recorded(workspace: Workspace, job: str, version: int) -> list[tuple[int, str]]:
    matches = ((_FILE.fullmatch(key.rsplit("/", 1)[-1]), key) for key in workspace.list(f"{FOLDER}/{job}"))
    return sorted((int(m["number"]), key) for m, key in matches if m and int(m["version"]) == version)
