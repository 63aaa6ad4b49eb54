"""Stored reports: drift/<job>/v000001.json, v000002.json, ..."""

import re
from typing import Final

from pipelines.drift.record import DriftReport
from pipelines.store.workspace import Workspace, to_json

FOLDER: Final = "drift"
_FILE: Final = re.compile(r"v(\d{6,})\.json")


def drift_key(job: str, version: int) -> str:
    """Workspace key of a report."""
    return f"{FOLDER}/{job}/v{version:06d}.json"


def versions(workspace: Workspace, job: str) -> list[int]:
    """Versions of the reports on a job's production, ascending."""
    # Requests for measurements are in a folder below.
    prefix = f"{FOLDER}/{job}/"
    matches = (_FILE.fullmatch(key.removeprefix(prefix)) for key in workspace.list(f"{FOLDER}/{job}"))
    return sorted(int(match[1]) for match in matches if match)


def latest_drift(workspace: Workspace, job: str) -> DriftReport | None:
    """The newest report on a job's production; None before the first check.

    Raises:
        Damaged: its file is damaged.
    """
    found = versions(workspace, job)
    return workspace.read(drift_key(job, found[-1]), DriftReport) if found else None


def keep(workspace: Workspace, report: DriftReport) -> DriftReport:
    """Store the report as the newest version, which it gets."""
    while True:
        version = max(versions(workspace, report.job), default=0) + 1
        numbered = report.model_copy(update={"version": version})
        try:
            workspace.create_bytes(drift_key(report.job, version), to_json(numbered))
        except FileExistsError:
            continue  # another process took that version
        return numbered
