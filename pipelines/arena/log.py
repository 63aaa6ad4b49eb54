"""Logs an evaluation to MLflow: for each job a run in the job's experiment, with a run nested in it for each policy.

The outer run is finished last. A finished run is not made again; an unfinished one was killed, and is superseded.
"""

import json
import re
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pipelines.arena.evaluation import Evaluation
from pipelines.arena.ranking import Ranking
from pipelines.arena.report.page import report_key
from pipelines.arena.request import DEFAULT_MODE, LISTS, EvaluationRequest
from pipelines.arena.scoring.frontier import AttainedCost
from pipelines.registry.selection_log import ROLE_TAG
from pipelines.registry.selection_runs import SUPERSEDED_TAG
from pipelines.registry.tracking import Tracking, mlflow_errors, open_tracking
from pipelines.store.code_version import code_version
from pipelines.store.digests import digest
from pipelines.store.workspace import Workspace

if TYPE_CHECKING:
    from mlflow.entities import Run

EVALUATION_TAG: Final = "sluice.evaluation"
"""Digest of the evaluation that a run logs."""
EVALUATION, POLICY = "evaluation", "policy"
FIGURES: Final = (
    "latency_p50_s", "latency_p95_s", "throughput_ratio", "task_hours", "memory_gib_hours", "rescales", "downtime_s",
    "convergence_s", "convergence_steps", "late_share",
)  # fmt: skip
"""Fields of a standing that are logged, each as `FIELD.WORKLOAD`."""


def evaluation_digest(request: EvaluationRequest, evaluation: Evaluation) -> str:
    """Digest of the replays, their code, and the objective."""
    return digest(
        {
            "results": evaluation.results_key,
            "objectives_s": [request.objective_of(mode) for mode in request.rescale_modes],
            "attainment": request.attainment,
        }
    )


def log_evaluation(request: EvaluationRequest, evaluation: Evaluation, workspace: Workspace) -> dict[str, str]:
    """Log an evaluation whose report is in the workspace; returns the id of each job's run, by job.

    Raises:
        InvalidInput: the workspace is not local, and no tracking server is named.
        SluiceError: MLflow failed.
    """
    tracking = open_tracking(workspace)
    with mlflow_errors(tracking):
        jobs = dict.fromkeys(ranking.job for ranking in evaluation.rankings)
        return {job: _EvaluationLogger(tracking, job, request, evaluation, workspace).log() for job in jobs}


class _EvaluationLogger:
    """Parameters of the run of one job."""

    def __init__(
        self, tracking: Tracking, job: str, request: EvaluationRequest, evaluation: Evaluation, workspace: Workspace
    ) -> None:
        self._client, self._job, self._request = tracking.client, job, request
        self._evaluation, self._workspace = evaluation, workspace
        self._digest = evaluation_digest(request, evaluation)
        self._rankings = [r for r in evaluation.rankings if r.job == job]
        self._experiment = tracking.experiment(job)
        self._now_ms = int(time.time() * 1000)

    def log(self) -> str:
        for left in self._logged():
            if left.info.status == "FINISHED" and left.data.tags[ROLE_TAG] == EVALUATION:
                return str(left.info.run_id)
        self._supersede_unfinished()
        run = self._start(f"evaluation {self._digest[:8]}", EVALUATION, {"mlflow.note.content": self._note()})
        try:
            self._fill(run)
        except Exception:
            self._client.set_terminated(run, status="FAILED")
            raise
        self._client.set_terminated(run)
        return run

    def _fill(self, run: str) -> None:
        self._write(run, self._params(), self._winners())
        for policy in self._request.policies:
            metrics = {name: v for r in self._rankings for name, v in _figures_of(r, policy).items()}
            nested = self._start(policy, POLICY, {"mlflow.parentRunId": run})
            settings = json.dumps(self._request.settings_of(policy))
            self._write(nested, {"policy": policy, "settings": settings}, metrics)
            self._client.set_terminated(nested)
        with tempfile.TemporaryDirectory() as folder:
            for key in (self._evaluation.results_key, report_key(self._evaluation)):
                file = Path(folder) / key.rpartition("/")[2]
                file.write_bytes(self._workspace.read_bytes(key))
            self._client.log_artifacts(run, folder)

    def _start(self, name: str, role: str, tags: Mapping[str, str]) -> str:
        known = {ROLE_TAG: role, EVALUATION_TAG: self._digest, "sluice.job": self._job}
        tags = {**known, "sluice.code_version": code_version(), **tags}
        return str(self._client.create_run(self._experiment, run_name=name, tags=tags).info.run_id)

    def _write(self, run: str, params: Mapping[str, Any], metrics: Mapping[str, float]) -> None:
        from mlflow.entities import Metric, Param

        values = [Metric(key, float(value), self._now_ms, 0) for key, value in metrics.items()]
        self._client.log_batch(run, metrics=values, params=[Param(key, str(value)) for key, value in params.items()])

    def _params(self) -> dict[str, Any]:
        asked = self._request.model_dump(mode="json", exclude={"schema_version", "settings", "jobs"}, exclude_none=True)
        listed = {name: ",".join(asked.pop(name)) for name in LISTS if name != "jobs"}
        return {**asked, **listed, **{f"winner.{_name(r)}": r.winner.policy for r in self._rankings}}

    def _winners(self) -> dict[str, float]:
        return {name: value for r in self._rankings for name, value in _figures_of(r, r.winner.policy).items()}

    def _note(self) -> str:
        return "\n\n".join(f"{r.workload}, {r.rescale_mode}: {r.reason}" for r in self._rankings)

    def _logged(self) -> "list[Run]":
        """Runs of this evaluation, including nested ones."""
        wanted, found, token = f"tags.`{EVALUATION_TAG}` = '{self._digest}'", [], None
        while True:
            page = self._client.search_runs([self._experiment], wanted, page_token=token)
            found += list(page)
            if not (token := page.token):
                return found

    def _supersede_unfinished(self) -> None:
        for left in self._logged():
            if SUPERSEDED_TAG not in left.data.tags:
                self._client.set_tag(left.info.run_id, SUPERSEDED_TAG, "true")
                self._client.set_terminated(left.info.run_id, status="FAILED")


def _figures_of(ranking: Ranking, policy: str) -> dict[str, float]:
    """The known values of a policy, with the setting to run; its cost at equal attainment if it attains it."""
    score, standing = next((score, s) for score, s in ranking.scored if s.policy == policy)
    values = {field: getattr(standing, field) for field in FIGURES} | {"hypervolume": score.hypervolume}
    if isinstance(score.cost, AttainedCost):
        values["task_hours_at_attainment"] = score.cost.task_hours
    return {f"{field}.{_name(ranking)}": value for field, value in values.items() if value is not None}


def _name(ranking: Ranking) -> str:
    """Its workload, and its rescale mode unless that is the default, with only characters that MLflow allows."""
    mode = "" if ranking.rescale_mode == DEFAULT_MODE else f".{ranking.rescale_mode}"
    return re.sub(r"[^A-Za-z0-9_./ -]", "_", ranking.workload) + mode
