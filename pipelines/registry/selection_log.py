"""Logs an exploration, and the selection made of it, to MLflow: the runs, the data set, the pictures, the model.

A parent run holds what was asked and what was chosen; each measurement and each candidate is a run nested in it. What a
run says is written in one batch. The parent is finished last, when its model version has its alias: a parent that is
found unfinished was killed, and is replaced whole.
"""

import tempfile
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from models.capacity.growth.dataset import Dataset
from models.capacity.observation import Observation
from models.capacity.selection import Selection
from models.job import Job
from pipelines.measuring.exploration_record import EXPLORATION_FILE, ExplorationRecord
from pipelines.registry.artifact import LoggedFiles, log_model
from pipelines.registry.figures import (
    error_figure,
    error_info,
    fit_figure,
    fit_info,
    residual_figure,
    residual_info,
    save_figures,
)
from pipelines.registry.models import CHALLENGER, PENDING, REVIEW_TAG, SELECTION_TAG, register, selection_tag
from pipelines.registry.selection_record import SelectionRecord
from pipelines.registry.tracking import Tracking, experiment_name
from pipelines.run import PipelineRun
from pipelines.store.code_version import code_version
from pipelines.store.digests import digest
from pipelines.store.workspace import to_json

if TYPE_CHECKING:
    from mlflow.entities import Metric

RUN_TAG: Final = "sluice.run"
INPUTS_TAG: Final = "sluice.inputs"
ROLE_TAG: Final = "sluice.role"
EXPLORATION, MEASUREMENT, CANDIDATE = "exploration", "measurement", "candidate"


@dataclass(frozen=True)
class LoggedSelection:
    """What is logged."""

    run: PipelineRun
    exploration: ExplorationRecord
    dataset: Dataset
    selection: Selection
    inputs: Mapping[str, str]
    """Digests of what the selection was made from."""


def log_selection(tracking: Tracking, subject: LoggedSelection) -> SelectionRecord:
    """Log everything and register the model as the job's challenger."""
    return _SelectionLogger(tracking, subject).log()


def logged_exploration(tracking: Tracking, selection: SelectionRecord) -> ExplorationRecord | None:
    """The exploration that a registered model was fitted to; None where MLflow no longer has it unchanged."""
    from mlflow.exceptions import MlflowException

    with tempfile.TemporaryDirectory() as folder:
        try:
            path = tracking.client.download_artifacts(selection.mlflow_run_id, EXPLORATION_FILE, folder)
            exploration = ExplorationRecord.model_validate_json(Path(path).read_bytes())
        except (MlflowException, OSError, ValueError):
            return None
    return exploration if digest(exploration) == selection.exploration_digest else None


class _SelectionLogger:
    def __init__(self, tracking: Tracking, subject: LoggedSelection) -> None:
        self._tracking, self._client, self._subject = tracking, tracking.client, subject
        self._job = subject.run.job
        self._experiment = tracking.experiment(self._job.name)
        self._now_ms = int(time.time() * 1000)

    def log(self) -> SelectionRecord:
        subject = self._subject
        parent = self._start(subject.run.run_id, EXPLORATION, _parent_tags(subject))
        try:
            record = self._fill(parent)
        except Exception:
            self._client.set_terminated(parent, status="FAILED")
            raise
        self._client.set_terminated(parent)
        return record

    def _fill(self, parent: str) -> SelectionRecord:
        subject = self._subject
        self._write(parent, _parent_params(subject), _parent_metrics(subject, self._metrics))
        for index, observation in enumerate(subject.exploration.observations):
            self._nest(parent, f"m{index:03d}", MEASUREMENT, *_measurement(observation))
        for name in subject.selection.candidates:
            self._nest(parent, f"candidate {name}", CANDIDATE, *_candidate(name, subject))
        self._log_dataset(parent)
        self._log_artifacts(parent)
        model = log_model(self._tracking, self._experiment, parent, subject.selection.model, subject.dataset)
        return self._register(parent, model)

    def _start(self, name: str, role: str, tags: Mapping[str, str]) -> str:
        labels = {ROLE_TAG: role, RUN_TAG: self._subject.run.run_id, "sluice.job": self._job.name, **tags}
        return str(self._client.create_run(self._experiment, run_name=name, tags=labels).info.run_id)

    def _nest(self, parent: str, name: str, role: str, params: Mapping[str, Any], metrics: Mapping[str, float]) -> None:
        run = self._start(name, role, {"mlflow.parentRunId": parent})
        self._write(run, params, self._metrics(metrics))
        self._client.set_terminated(run)

    def _write(self, run: str, params: Mapping[str, Any], metrics: "list[Metric]") -> None:
        from mlflow.entities import Param

        self._client.log_batch(run, metrics=metrics, params=[Param(key, str(value)) for key, value in params.items()])

    def _metrics(self, values: Mapping[str, float], step: int = 0) -> "list[Metric]":
        from mlflow.entities import Metric

        return [Metric(key, float(value), self._now_ms, step) for key, value in values.items()]

    def _log_dataset(self, parent: str) -> None:
        import pandas as pd
        from mlflow.data.pandas_dataset import from_pandas
        from mlflow.entities import DatasetInput, InputTag

        data, run = self._subject.dataset, self._subject.run
        frame = pd.DataFrame({"memory_mb": data.memory_mb, "task_slots": data.task_slots, "mst": data.mst})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # MLflow registers its local source twice, and warns of it.
            logged = from_pandas(
                frame,
                source=run.workspace.uri(run.key(EXPLORATION_FILE)),
                targets="mst",
                name=f"{self._job.name}-{run.run_id}",
                digest=self._subject.inputs["exploration"][:36],
            )
        entity = logged._to_mlflow_entity()
        self._client.log_inputs(parent, [DatasetInput(entity, [InputTag("mlflow.data.context", "training")])])

    def _log_artifacts(self, parent: str) -> None:
        selection, data = self._subject.selection, self._subject.dataset
        figures = {
            "fit.png": fit_figure(fit_info(selection.model, data)),
            "residuals.png": residual_figure(residual_info(selection, data)),
            "errors.png": error_figure(error_info(selection)),
        }
        with tempfile.TemporaryDirectory() as folder:
            save_figures(Path(folder), figures)
            (Path(folder) / EXPLORATION_FILE).write_bytes(to_json(self._subject.exploration))
            self._client.log_artifacts(parent, folder)

    def _register(self, parent: str, model: LoggedFiles) -> SelectionRecord:
        job, client = self._job.name, self._client
        register(self._tracking, job, f"Capacity of the job {job}: task slots and memory to sustainable throughput.")
        version = client.create_model_version(
            job,
            model.source,
            run_id=parent,
            model_id=model.model_id,
            description=f"{self._subject.selection.reason} Not reviewed yet.",
            tags={
                RUN_TAG: self._subject.run.run_id,
                REVIEW_TAG: PENDING,
                "sluice.job": job,
                "sluice.topology": topology_digest(self._job),
                "sluice.code_version": code_version(),
            },
        )
        record = _record(self._subject, parent, int(version.version), model)
        client.set_model_version_tag(job, version.version, SELECTION_TAG, selection_tag(record))
        client.set_registered_model_alias(job, CHALLENGER, version.version)
        return record


def _record(subject: LoggedSelection, parent: str, version: int, files: LoggedFiles) -> SelectionRecord:
    run, selection = subject.run, subject.selection
    return SelectionRecord(
        job=run.job.name,
        run=run.run_id,
        testbed=run.request.testbed,
        model=selection.model.name,
        forced=run.request.model != "auto",
        weights=selection.model.weights,
        loocv={law: candidate.loocv_rmse for law, candidate in selection.candidates.items()},
        loocv_rmse=selection.loocv_rmse,
        reason=selection.reason,
        observations=len(subject.dataset),
        exploration_digest=subject.inputs["exploration"],
        experiment=experiment_name(run.job.name),
        mlflow_run_id=parent,
        model_uri=f"models:/{run.job.name}/{version}",
        model_version=version,
        model_digest=files.model_digest,
        capacity_digest=files.capacity_digest,
    )


def _parent_tags(subject: LoggedSelection) -> dict[str, str]:
    return {
        INPUTS_TAG: digest(dict(subject.inputs)),
        REVIEW_TAG: PENDING,
        "sluice.testbed": subject.exploration.testbed,
        "sluice.code_version": code_version(),
        "sluice.topology": topology_digest(subject.run.job),
        "mlflow.note.content": f"{subject.selection.reason}\n\nThe exploration ended: "
        f"{subject.exploration.stopped_because}",
    }


def topology_digest(job: Job) -> str:
    """Of operators and edges alone: the same for jobs that differ only in costs and descriptions."""
    operators = [[o.name, o.kind] for o in job.operators]
    return digest({"operators": operators, "edges": [e.model_dump(mode="json", by_alias=True) for e in job.edges]})


def _parent_params(subject: LoggedSelection) -> dict[str, Any]:
    asked = subject.run.request.model_dump(mode="json", exclude={"schema_version", "run"}, exclude_none=True)
    return {**asked, "chosen_model": subject.selection.model.name, "observations": len(subject.dataset)}


def _parent_metrics(subject: LoggedSelection, metrics: Any) -> "list[Metric]":
    """What the model is; and step by step the MST measured, and the LOOCV error of each regression after it."""
    selection, observations = subject.selection, subject.exploration.observations
    values = {
        **_coefficients(selection),
        **{f"weight.{law}": weight for law, weight in selection.model.weights.items()},
        "loocv_rmse": selection.loocv_rmse,
        "measured_s": sum(o.measured_s for o in observations),
    }
    history = [m for step, o in enumerate(observations) for m in metrics({"mst": o.mst}, step)]
    for step, seen in enumerate(subject.exploration.steps):
        history += metrics({f"loocv_rmse.{name}": error for name, error in seen.loocv.items()}, step)
    return [*metrics(values), *history]


def _measurement(observation: Observation) -> tuple[dict[str, Any], dict[str, float]]:
    params = {"task_slots": observation.task_slots, "memory_mb": observation.memory_mb, "run": observation.run}
    parallelism = {f"parallelism.{name}": tasks for name, tasks in observation.parallelism.items()}
    metrics = {"mst": observation.mst, "measured_s": observation.measured_s}
    if observation.bids2_rate is not None:
        metrics["bids2_rate"] = observation.bids2_rate
    return {**params, **parallelism}, metrics


def _candidate(law: str, subject: LoggedSelection) -> tuple[dict[str, Any], dict[str, float]]:
    """How well a law predicts the observations left out, and its weight in the model: 0 beside a law that was asked for."""
    candidate, weight = subject.selection.candidates[law], subject.selection.model.weights.get(law, 0.0)
    metrics = {
        "weight": weight,
        "stacking_weight": candidate.weight,
        "loocv_rmse": candidate.loocv_rmse,
        "loocv_log_density": candidate.log_density,
    }
    return {"model": law, "chosen": weight > 0}, metrics


def _coefficients(selection: Selection) -> dict[str, float]:
    """Of a regression; stacked laws have none."""
    regression = selection.model.regression
    if regression is None:
        return {}
    return {
        "coefficient_memory": regression.memory,
        "coefficient_slots": regression.slots,
        "intercept": regression.intercept,
    }
