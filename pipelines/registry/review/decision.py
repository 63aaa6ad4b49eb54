"""What people decide about models, and the pages that they decide from."""

from datetime import UTC, datetime
from typing import Final

from models.errors import InvalidInput
from pipelines.registry.models import (
    APPROVED,
    CHAMPION,
    REJECTED,
    VersionInfo,
    find_version,
    promote,
    set_review,
)
from pipelines.registry.review.pages import pages_address, run_link, version_link
from pipelines.registry.tracking import Tracking, mlflow_errors, open_tracking
from pipelines.store.workspace import Workspace

LONGEST_REASON: Final = 1000
LONGEST_NAME: Final = 200


def decide(workspace: Workspace, job: str, version: int | str, approve: bool, by: str, reason: str) -> VersionInfo:
    """Take a person's decision: approving makes the version the champion, rejecting keeps the champion.

    Both may be done whatever the review said before, and the last decision counts. Who decided and why is kept with
    the version and with its runs.

    Raises:
        InvalidInput: no such version; no name or no reason; the champion is to be rejected.
        ChangedModel: the version is not what was registered.
    """
    by = _checked("the name of who decides", by, LONGEST_NAME)
    reason = _checked("the reason of a decision", reason, LONGEST_REASON)
    tracking = open_tracking(workspace)
    with mlflow_errors(tracking):
        info = find_version(tracking, job, version)
        if approve:
            promote(workspace, tracking, info, APPROVED, by, reason)
        elif CHAMPION in info.aliases:
            raise InvalidInput(
                f"{info.uri} is the champion, which plans are made with, so it cannot be rejected; approve another version "
                f"with `sluice models approve {job}@VERSION --reason WHY`"
            )
        else:
            set_review(tracking, info.selection, REJECTED, by, reason)
        _describe(tracking, info, f"{'Approved' if approve else 'Rejected'} by {by} on {_today()}: {reason}")
        return find_version(tracking, job, info.version)


def review_page(workspace: Workspace, info: VersionInfo) -> str:
    """Markdown that leads to MLflow's pages of a review and its model; in words where no server is known."""
    tracking = open_tracking(workspace)
    if pages_address(tracking) is None:
        return (
            f"In MLflow: the run {info.review_run_id} of the experiment {info.selection.experiment}, and version "
            f"{info.version} of the model {info.job}."
        )
    version = f"[{info.uri} in MLflow]({version_link(tracking, info.job, info.version)})"
    if not info.review_run_id:
        return version
    with mlflow_errors(tracking):
        review = run_link(tracking, tracking.experiment(info.job), info.review_run_id)
    return f"[Challenger and champion side by side in MLflow]({review}) · {version}"


def _checked(what: str, text: str, longest: int) -> str:
    """One line of text that is not empty."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    if not line or len(line) > longest:
        raise InvalidInput(f"{what} must have 1 to {longest} characters, but got {len(line)}; say it in a sentence")
    return line


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


def _describe(tracking: Tracking, info: VersionInfo, decided: str) -> None:
    """Put the decision at the head of the description, and leave what it was decided from."""
    description = f"**{decided}**\n\n{info.description}".strip()
    tracking.client.update_model_version(info.job, str(info.version), description=description)
