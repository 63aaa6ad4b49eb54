"""Queues of runs, one for each job, in the workspace: turns/<job>/000001.json, ...

Each run draws a number, and continues once no run with a lower number is active. A run that has ended, in whatever way,
blocks no other, so nothing needs to be released.
"""

import re
from collections.abc import Callable
from typing import Final, Literal

from models.schema import SCHEMA_VERSION, Format
from pipelines.store.workspace import Missing, Workspace, to_json

FOLDER: Final = "turns"
_FILE: Final = re.compile(r"(\d{6,})\.json")

UnderWay = Callable[[str], bool]
"""Whether a run is queued or running, by its id."""


class Drawn(Format):
    """The run that drew a number."""

    schema_version: Literal[1] = SCHEMA_VERSION
    dag_run: str


def draw(workspace: Workspace, job: str, dag_run: str) -> int:
    """The run's number in its job's queue. A run that starts again goes to the end of the queue."""
    while True:
        row = _row(workspace, job)
        last = max(row, default=0)
        if row.get(last) == dag_run:
            return last
        for number in (number for number, run in row.items() if run == dag_run):
            workspace.delete(_key(job, number))
        try:
            workspace.create_bytes(_key(job, last + 1), to_json(Drawn(dag_run=dag_run)))
        except FileExistsError:  # drawn by another run
            continue
        return last + 1


def first_before(workspace: Workspace, job: str, number: int, under_way: UnderWay) -> str | None:
    """The active run to wait for; None if it is the number's turn. Numbers of runs that have ended are removed."""
    for earlier, run in _row(workspace, job).items():
        if earlier < number:
            if under_way(run):
                return run
            workspace.delete(_key(job, earlier))
    return None


def _row(workspace: Workspace, job: str) -> dict[int, str]:
    """Numbers and their runs, ascending."""
    row = {}
    for key in workspace.list(f"{FOLDER}/{job}"):
        if match := _FILE.fullmatch(key.rpartition("/")[2]):
            try:
                row[int(match[1])] = workspace.read(key, Drawn).dag_run
            except Missing:  # removed meanwhile, since its run has ended
                continue
    return dict(sorted(row.items()))


def _key(job: str, number: int) -> str:
    return f"{FOLDER}/{job}/{number:06d}.json"
