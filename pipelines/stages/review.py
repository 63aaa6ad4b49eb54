"""Stage `review`: the new model (challenger) against the one that plans are made with (champion)."""

from typing import Final

from pipelines.registry.models import (
    CHAMPION,
    PENDING,
    THE_RULE,
    VersionInfo,
    find_version,
    list_versions,
    promote,
    set_review,
)
from pipelines.registry.review.description import describe
from pipelines.registry.review.log import log_review, open_review_run
from pipelines.registry.review.record import REVIEW_FILE, ReviewRecord
from pipelines.registry.review.rule import judge
from pipelines.registry.review.subject import ReviewSubject, gather, waits_for_person
from pipelines.registry.selection_record import SELECTION_FILE, SelectionRecord
from pipelines.registry.tracking import Tracking, mlflow_errors, open_tracking
from pipelines.run import PipelineRun
from pipelines.store.digests import digest

COMPARED_TAG: Final = "sluice.compared_with"
NOBODY: Final = "none"


def review(run: PipelineRun) -> str:
    """Compare the run's model with the champion by the rule; returns the URI of the review.

    Within the limits of the job's file the rule moves the alias; beyond them the champion stays, or a person is asked,
    whose decision `decide` takes.
    """
    key = run.key(REVIEW_FILE)
    selection = run.output(SELECTION_FILE, SelectionRecord)
    record = run.workspace.once(key, {"selection": digest(selection)}, ReviewRecord, lambda: _review(run, selection))
    run.progress.say(f"review: {record.challenger.uri} {_outcome(run, record)}")
    return run.workspace.uri(key)


def reviewed_version(run: PipelineRun) -> VersionInfo:
    """The run's model, with its review as it stands now."""
    selection = run.output(SELECTION_FILE, SelectionRecord)
    tracking = open_tracking(run.workspace)
    with mlflow_errors(tracking):
        return find_version(tracking, selection.job, selection.model_version)


def pending_review(run: PipelineRun) -> VersionInfo | None:
    """The run's model, if nothing is planned by this run until a person has decided about it."""
    selection = run.output(SELECTION_FILE, SelectionRecord)
    tracking = open_tracking(run.workspace)
    with mlflow_errors(tracking):
        versions = list_versions(tracking, selection.job)
    own = next((v for v in versions if v.version == selection.model_version), None)
    return own if waits_for_person(run, selection, versions) else None


def _outcome(run: PipelineRun, record: ReviewRecord) -> str:
    """The rule's verdict, or what a person has made of it since."""
    if record.verdict != PENDING:
        return f"{record.verdict}: {record.reason}"
    info = reviewed_version(run)
    if info.review == PENDING:
        return f"waits for a person's review: {record.reason}"
    return f"{info.review} by {info.reviewed_by}: {info.review_reason}"


def _review(run: PipelineRun, selection: SelectionRecord) -> ReviewRecord:
    tracking = open_tracking(run.workspace)
    with mlflow_errors(tracking):
        challenger = find_version(tracking, selection.job, selection.model_version)
        subject = gather(run, tracking, challenger, _champion_before(tracking, challenger))
        run_id = open_review_run(tracking, subject)
        record = judge(
            selection,
            subject.capacity.grows,
            subject.champion,
            subject.evidence,
            run.run_id,
            subject.limits,
            subject.slots,
            subject.elsewhere,
        )
        record = record.model_copy(update={"mlflow_run_id": run_id})
        _log(tracking, subject, record, run_id)
        if record.champion_uri == challenger.uri:
            promote(run.workspace, tracking, challenger, record.verdict, THE_RULE, record.reason)
        else:
            by = "" if record.verdict == PENDING else THE_RULE
            set_review(tracking, selection, record.verdict, by, record.reason)
        return record


def _champion_before(tracking: Tracking, challenger: VersionInfo) -> VersionInfo | None:
    """The champion to compare with, noted on the challenger, so that a review that was killed compares the same."""
    job, version = challenger.job, str(challenger.version)
    noted = tracking.client.get_model_version(job, version).tags.get(COMPARED_TAG)
    if noted is None:
        champion = next((v for v in list_versions(tracking, job) if CHAMPION in v.aliases), None)
        noted = NOBODY if champion is None else str(champion.version)
        tracking.client.set_model_version_tag(job, version, COMPARED_TAG, noted)
    return None if noted == NOBODY else find_version(tracking, job, noted)


def _log(tracking: Tracking, subject: ReviewSubject, record: ReviewRecord, run_id: str) -> None:
    """Log the review, give the version a description that a person can decide from, and its run the errors compared."""
    selection, client = subject.selection, tracking.client
    description = describe(tracking, subject, record, tracking.experiment(selection.job))
    log_review(tracking, subject, record, run_id, description)
    client.update_model_version(selection.job, str(selection.model_version), description=description)
    for name, score in (("challenger", record.challenger), ("champion", record.champion)):
        if score is not None and score.rmse is not None:
            client.log_metric(selection.mlflow_run_id, f"held_out_rmse.{name}", score.rmse)
