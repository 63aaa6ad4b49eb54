"""The review's own run in MLflow: both models evaluated on the same unseen observations, side by side."""

import tempfile
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipelines.registry.figures import save_figures
from pipelines.registry.models import REVIEW_RUN_TAG
from pipelines.registry.review.ambient import current_run
from pipelines.registry.review.figures import growth_figure, growth_info, predicted_figure, predicted_info
from pipelines.registry.review.record import REVIEW_FILE, ReviewRecord
from pipelines.registry.review.rule import Evidence, Predictions, error_limit
from pipelines.registry.review.subject import ReviewSubject
from pipelines.registry.selection_log import ROLE_TAG, RUN_TAG, topology_digest
from pipelines.registry.tracking import Tracking
from pipelines.store.code_version import code_version
from pipelines.store.workspace import to_json

if TYPE_CHECKING:
    import pandas as pd
    from mlflow.models import EvaluationResult

REVIEW: Final = "review"
VALIDATION_TAG: Final = "sluice.validation"
LIMITS_TAG: Final = "sluice.limits"
ERROR: Final = "root_mean_squared_error"


def open_review_run(tracking: Tracking, subject: ReviewSubject) -> str:
    """The review's run, nested in the run of the selection; a review that was killed goes on in the one it began."""
    selection, client = subject.selection, tracking.client
    noted = client.get_model_version(selection.job, str(selection.model_version)).tags.get(REVIEW_RUN_TAG)
    if noted:
        return noted
    tags = {
        ROLE_TAG: REVIEW,
        RUN_TAG: selection.run,
        "sluice.job": selection.job,
        "sluice.topology": topology_digest(subject.run.job),
        "sluice.code_version": code_version(),
        "mlflow.parentRunId": selection.mlflow_run_id,
    }
    name = f"review of version {selection.model_version}"
    run = client.create_run(tracking.experiment(selection.job), run_name=name, tags=tags)
    run_id = str(run.info.run_id)
    client.set_model_version_tag(selection.job, str(selection.model_version), REVIEW_RUN_TAG, run_id)
    return run_id


def log_review(tracking: Tracking, subject: ReviewSubject, record: ReviewRecord, run_id: str, description: str) -> None:
    """Fill the review's run: parameters, metrics of both, a table of the unseen observations, plots, and the verdict."""
    client = tracking.client
    if subject.evidence is None:
        client.set_terminated(run_id)
    else:
        client.set_tag(run_id, VALIDATION_TAG, _evaluate(tracking, subject, subject.evidence, run_id))
    client.set_tag(run_id, LIMITS_TAG, _limits(subject))
    _log_batch(tracking, run_id, _params(subject), _metrics(record))
    client.set_tag(run_id, "mlflow.note.content", description)
    _log_artifacts(tracking, subject, record, run_id)


def _evaluate(tracking: Tracking, subject: ReviewSubject, evidence: Evidence, run_id: str) -> str:
    """Let MLflow score both, and hold the challenger against the rule's limit; returns what it says."""
    from mlflow import validate_evaluation_results
    from mlflow.models import MetricThreshold
    from mlflow.models.evaluation.validation import ModelValidationFailedException

    with current_run(tracking, run_id):
        champion = evidence.champion
        if champion is not None:
            _evaluated(subject, evidence, "champion", champion)
        result = _evaluated(subject, evidence, "challenger", evidence.challenger)
    if champion is None:
        return "nothing to compare with"
    limit = error_limit(champion.rmse, subject.limits)
    threshold = MetricThreshold(threshold=limit, greater_is_better=False)  # type: ignore[no-untyped-call]
    try:
        validate_evaluation_results({f"challenger.{ERROR}": threshold}, result)
    except ModelValidationFailedException as error:
        return f"failed: {error}"
    return "passed"


def _evaluated(subject: ReviewSubject, evidence: Evidence, role: str, predictions: Predictions) -> "EvaluationResult":
    from mlflow.data.pandas_dataset import from_pandas
    from mlflow.models import evaluate

    frame = _held_out(evidence).assign(predicted=predictions.mst)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # MLflow registers its local source twice, and warns of it.
        data = from_pandas(
            frame,
            source=subject.run.workspace.uri(subject.run.key("exploration.json")),
            targets="mst",
            predictions="predicted",
            name=f"held-out of {subject.selection.job}",
        )
        result: EvaluationResult = evaluate(  # type: ignore[no-untyped-call]
            data=data,
            model_type="regressor",
            evaluators=["default"],
            evaluator_config={"default": {"metric_prefix": f"{role}.", "log_model_explainability": False}},
        )
    return result


def _held_out(evidence: Evidence) -> "pd.DataFrame":
    import pandas as pd

    held_out = evidence.held_out
    return pd.DataFrame({"task_slots": held_out.task_slots, "memory_mb": held_out.memory_mb, "mst": held_out.mst})


def _params(subject: ReviewSubject) -> dict[str, str]:
    champion = subject.champion
    return {"challenger": subject.selection.model_uri, "champion": "none" if champion is None else champion.model_uri}


def _limits(subject: ReviewSubject) -> str:
    """In words; a tag, since the job's file may change before a review that was killed goes on."""
    limits = subject.limits
    change = "any" if limits.max_slot_change is None else f"{limits.max_slot_change:.0%}"
    return f"mode {limits.mode}; error increase at most {limits.max_error_increase:.0%}; change of task slots: {change}"


def _metrics(record: ReviewRecord) -> dict[str, float]:
    slots = record.slots
    if slots is None:
        return {}
    known = {
        "planned_rate": slots.rate * slots.margin.factor,
        "challenger.task_slots": slots.challenger,
        "champion.task_slots": slots.champion,
        "task_slots_change": slots.share,
    }
    return {name: float(value) for name, value in known.items() if value is not None}


def _log_batch(tracking: Tracking, run_id: str, params: Mapping[str, str], metrics: Mapping[str, float]) -> None:
    from mlflow.entities import Metric, Param

    now_ms = int(time.time() * 1000)
    tracking.client.log_batch(
        run_id,
        metrics=[Metric(name, value, now_ms, 0) for name, value in metrics.items()],
        params=[Param(name, value) for name, value in params.items()],
    )


def _log_artifacts(tracking: Tracking, subject: ReviewSubject, record: ReviewRecord, run_id: str) -> None:
    figures = {"growth.png": growth_figure(growth_info(subject.drawn, subject.present, subject.slots))}
    with tempfile.TemporaryDirectory() as folder:
        if (evidence := subject.evidence) is not None:
            figures["predicted.png"] = predicted_figure(predicted_info(evidence))
            _table(evidence).to_csv(Path(folder) / "held_out.csv", index=False)
        save_figures(Path(folder), figures)
        (Path(folder) / REVIEW_FILE).write_bytes(to_json(record))
        tracking.client.log_artifacts(run_id, folder)


def _table(evidence: Evidence) -> "pd.DataFrame":
    """Each held-out point with what both say of it, records/s."""
    frame = _held_out(evidence)
    for role, predictions in (("challenger", evidence.challenger), ("champion", evidence.champion)):
        if predictions is not None:
            frame[role] = predictions.mst
            frame[f"{role}_error"] = predictions.mst - evidence.held_out.mst
    return frame.sort_values(["task_slots", "memory_mb"])
