"""The registered model that a run plans with: a reviewed one, unless the job's file allows others."""

from typing import Final

from models.planning.inputs import PlanningModel
from pipelines.registry.models import (
    PENDING,
    REJECTED,
    THE_RULE,
    LoadedModel,
    NotReviewed,
    VersionInfo,
    list_versions,
    load_champion,
    load_registered,
    unreviewed,
)
from pipelines.registry.review.subject import review_settings, waits_for_person
from pipelines.registry.selection_record import SELECTION_FILE, SelectionRecord
from pipelines.registry.tracking import mlflow_errors, open_tracking
from pipelines.run import PipelineRun

ALLOWED: Final = "which is not approved: the job's file allows that (operations.review.allow_unreviewed)"


def planning_model(run: PipelineRun) -> PlanningModel:
    """The job's champion, unless the request named a model, or the champion was measured on another testbed.

    A run whose own model waits for a person's review plans with nothing, unless `operations.review.allow_unreviewed` of
    the job's file lets it plan with that model, or the rule decides and there is a champion of the same testbed.

    Raises:
        NoSuchModel: the job has no champion.
        NotReviewed: the model waits for its review, or a person has rejected it.
        SluiceError: the model was changed after it was registered, or MLflow cannot be reached.
    """
    own = run.output(SELECTION_FILE, SelectionRecord)
    versions = _versions(run)
    review = next((v for v in versions if v.version == own.model_version), None)
    allowed = review_settings(run.job).allow_unreviewed
    if review is not None and waits_for_person(run, own, versions):
        raise NotReviewed(unreviewed(review))
    if review is not None and review.review == PENDING and allowed:
        return _bound(_own(run, own), f"planned with {own.model_uri}, {ALLOWED}")
    if own.forced:
        return _bound(
            _unless_rejected(run, own, review),
            f"planned with {own.model_uri}, since the request asked for {own.model}{_unproven(review)}",
        )
    champion = load_champion(run.workspace, run.job.name, allowed)
    if champion.selection.testbed != own.testbed:
        return _bound(
            _unless_rejected(run, own, review),
            f"planned with {own.model_uri}, since the champion {champion.uri} was measured on another testbed "
            f"({champion.selection.testbed})",
        )
    approved = any(v.version == champion.version and v.is_approved for v in versions)
    remark = "" if approved else f", {ALLOWED}"
    return _bound(champion, f"planned with the champion {champion.uri}{remark}")


def _unproven(review: VersionInfo | None) -> str:
    return ", which is not reviewed yet" if review is not None and review.review == PENDING else ""


def _bound(loaded: LoadedModel, reason: str) -> PlanningModel:
    selection = loaded.selection
    return PlanningModel(uri=loaded.uri, mlflow_run_id=selection.mlflow_run_id, capacity=loaded.capacity, reason=reason)


def _versions(run: PipelineRun) -> list[VersionInfo]:
    tracking = open_tracking(run.workspace)
    with mlflow_errors(tracking):
        return list_versions(tracking, run.job.name)


def _unless_rejected(run: PipelineRun, own: SelectionRecord, review: VersionInfo | None) -> LoadedModel:
    """The run's own model. A request overrules a rejection by the rule, but not one by a person."""
    if review is not None and review.review == REJECTED and review.reviewed_by not in ("", THE_RULE):
        raise NotReviewed(unreviewed(review))
    return _own(run, own)


def _own(run: PipelineRun, own: SelectionRecord) -> LoadedModel:
    return load_registered(run.workspace, run.job.name, own.model_version)
