"""Which registered model a run plans with. Nothing plans from an unreviewed one unless the job's file says so."""

from dataclasses import dataclass
from typing import Final

from models.capacity.surrogates import Surrogate
from pipelines.registry import (
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
from pipelines.review.subject import review_settings
from pipelines.run import PipelineRun
from pipelines.selection_record import SELECTION_FILE, SelectionRecord
from pipelines.tracking import mlflow_errors, open_tracking

ALLOWED: Final = "which nobody has approved: the job's file allows that (operations.review.allow_unreviewed)"


@dataclass(frozen=True)
class PlanningModel:
    """A loaded model, and why it is the one."""

    loaded: LoadedModel
    reason: str

    @property
    def surrogate(self) -> Surrogate:
        return self.loaded.surrogate

    @property
    def uri(self) -> str:
        """Model and version, for example 'models:/nexmark-q5/3'."""
        return self.loaded.uri


def planning_model(run: PipelineRun) -> PlanningModel:
    """The job's champion, unless the request named a model, or the champion was measured on another testbed.

    A run whose own model waits for a person's review plans with nothing, unless `operations.review.allow_unreviewed` of
    the job's file lets it plan with that model.

    Raises:
        NoSuchModel: the job has no champion.
        NotReviewed: the model waits for its review, or a person has rejected it.
        SluiceError: the model was changed after it was registered, or MLflow cannot be reached.
    """
    own = run.output(SELECTION_FILE, SelectionRecord)
    versions = _versions(run)
    review = next((v for v in versions if v.version == own.model_version), None)
    allowed = review_settings(run.job).allow_unreviewed
    if review is not None and review.review == PENDING:
        if not allowed:
            raise NotReviewed(unreviewed(review))
        return PlanningModel(_own(run, own), f"planned with {own.model_uri}, {ALLOWED}")
    if own.forced:
        return PlanningModel(
            _unless_rejected(run, own, review), f"planned with {own.model_uri}, since the request asked for {own.model}"
        )
    champion = load_champion(run.workspace, run.job.name, allowed)
    if champion.selection.testbed != own.testbed:
        return PlanningModel(
            _unless_rejected(run, own, review),
            f"planned with {own.model_uri}, since the champion {champion.uri} was measured on another testbed "
            f"({champion.selection.testbed})",
        )
    approved = any(v.version == champion.version and v.is_approved for v in versions)
    remark = "" if approved else f", {ALLOWED}"
    return PlanningModel(champion, f"planned with the champion {champion.uri}{remark}")


def _versions(run: PipelineRun) -> list[VersionInfo]:
    tracking = open_tracking(run.workspace)
    with mlflow_errors(tracking):
        return list_versions(tracking, run.job.name)


def _unless_rejected(run: PipelineRun, own: SelectionRecord, review: VersionInfo | None) -> LoadedModel:
    """The run's own model. The rule's rejection is the request's to overrule, a person's is not."""
    if review is not None and review.review == REJECTED and review.reviewed_by not in ("", THE_RULE):
        raise NotReviewed(unreviewed(review))
    return _own(run, own)


def _own(run: PipelineRun, own: SelectionRecord) -> LoadedModel:
    return load_registered(run.workspace, run.job.name, own.model_version)
