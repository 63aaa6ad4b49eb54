"""The steps of an evaluation that a scheduler runs; each reads the results of the one before from the workspace.

A request is stored under its digest. Replays are stored one by one, so later steps read them, and a killed step resumes
with the missing ones.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from pipelines.arena.choice import PolicyChoice, choose
from pipelines.arena.evaluation import Evaluation, cells, evaluate
from pipelines.arena.grid import FOLDER
from pipelines.arena.request import LISTS, EvaluationRequest
from pipelines.inputs.parsing.files import validate_as
from pipelines.progress import Progress
from pipelines.store.digests import digest
from pipelines.store.workspace import Workspace


def keep_request(workspace: Workspace, asked: Mapping[str, Any], origin: str) -> str:
    """Validate the fields of an EvaluationRequest as far as possible without a replay, and store it; returns its key.

    Args:
        asked: the fields of a request; lists may be texts of names with commas between them.
        origin: of the fields, for messages.

    Raises:
        InvalidInput, Infeasible: as `pipelines.arena.evaluation.cells`.
    """
    lists = {name: _names(asked[name]) for name in LISTS if name in asked}
    request = validate_as({**asked, **lists}, EvaluationRequest, origin=origin)
    cells(request)
    key = f"{FOLDER}/requests/{digest(request)[:32]}.json"
    workspace.write(key, request)
    return key


def read_request(workspace: Workspace, key: str) -> EvaluationRequest:
    """A stored request; raises Missing or Damaged."""
    return workspace.read(key, EvaluationRequest)


def replay(workspace: Workspace, key: str, progress: Progress, on_spark: bool = False) -> Evaluation:
    """The results of the request stored under the key; stored cells are not replayed again."""
    request = read_request(workspace, key)
    if not on_spark:
        return evaluate(request, workspace, progress)
    from pipelines.arena.on_spark import replay_on_spark

    return evaluate(request, workspace, progress, compute=replay_on_spark)


def report(workspace: Workspace, key: str, progress: Progress) -> str:
    """Write the page, and log the evaluation to MLflow; returns the page's key."""
    from pipelines.arena.log import log_evaluation
    from pipelines.arena.report.page import write_report

    request, evaluation = read_request(workspace, key), replay(workspace, key, progress)
    page = write_report(request, evaluation, workspace)
    for job, run in log_evaluation(request, evaluation, workspace).items():
        progress.say(f"report: MLflow run {run} of {job}")
    return page


def jobs_of(workspace: Workspace, key: str) -> list[str]:
    """Names of the jobs of a request, in its order."""
    return list(dict.fromkeys(cell.job.name for cell in cells(read_request(workspace, key))))


def choose_policy(workspace: Workspace, key: str, job: str, progress: Progress) -> PolicyChoice:
    """Store the policy chosen for the job; the same evaluation makes no second version."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    request, evaluation = read_request(workspace, key), replay(workspace, key, progress)
    choice = choose(request, evaluation, job, workspace, now)
    progress.say(f"choose: {job}@{choice.version}: {choice.reason}")
    return choice


def _names(given: Any) -> Any:
    return [name.strip() for name in given.split(",")] if isinstance(given, str) else given
