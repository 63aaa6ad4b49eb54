"""Registered models: a job's versions, the aliases `challenger` and `champion`, and loading one safely.

The model of a job is registered under the job's name. The selection that made a version is kept with it in the
registry, and holds the digest of the model's file, so a file that was exchanged is refused.
"""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal

from pydantic import Field

from models.capacity.growth.capacity_model import CapacityModel
from models.errors import InvalidInput, SluiceError
from models.schema import Format, PositiveInt
from pipelines.inputs.parsing.files import validate_as
from pipelines.registry.artifact import ChangedModel, ModelFiles, load_capacity, read_model_files, verify
from pipelines.registry.selection_record import SELECTION_FILE, SELECTION_VERSION, SelectionRecord
from pipelines.registry.tracking import Tracking, mlflow_errors, open_tracking
from pipelines.store.digests import canonical_json, digest, digest_bytes
from pipelines.store.workspace import Workspace

if TYPE_CHECKING:
    from mlflow.entities.model_registry import ModelVersion, RegisteredModel

CHALLENGER: Final = "challenger"
CHAMPION: Final = "champion"
SELECTION_TAG: Final = "sluice.selection"
REVIEW_TAG: Final = "sluice.review"
REASON_TAG: Final = "sluice.review_reason"
REVIEWER_TAG: Final = "sluice.reviewed_by"
REVIEWED_AT_TAG: Final = "sluice.reviewed_at"
REVIEW_RUN_TAG: Final = "sluice.review_run"
THE_RULE: Final = "the rule"

PENDING: Final = "pending"
APPROVED: Final = "approved"
REJECTED: Final = "rejected"
APPROVED_BY_RULE: Final = "approved by rule"
Verdict = Literal["pending", "approved", "rejected", "approved by rule"]


class NoSuchModel(InvalidInput):
    """The job has no such version, or no champion."""


class NotReviewed(SluiceError):
    """Nothing is planned from this model, since it is not approved."""


class VersionInfo(Format):
    """A registered version as a person sees it."""

    job: str
    version: PositiveInt
    uri: str
    aliases: tuple[str, ...]
    review: Verdict
    review_reason: str
    reviewed_by: str = Field(description="Who decided: a person's name, or 'the rule'; empty while undecided.")
    reviewed_at: str = Field(description="ISO 8601, UTC; empty while undecided.")
    review_run_id: str = Field(
        description="The MLflow run that compares it with the champion; empty where there is none."
    )
    created_at: str = Field(description="ISO 8601, UTC.")
    description: str
    selection: SelectionRecord

    @property
    def is_approved(self) -> bool:
        return self.review in (APPROVED, APPROVED_BY_RULE)


@dataclass(frozen=True)
class LoadedModel:
    """A version that was loaded: its files have the digests that were registered."""

    capacity: CapacityModel
    selection: SelectionRecord

    @property
    def uri(self) -> str:
        """Model and version, for example 'models:/nexmark-q5/3'."""
        return self.selection.model_uri

    @property
    def version(self) -> int:
        return self.selection.model_version


def load_champion(workspace: Workspace, job: str, allow_unreviewed: bool = False) -> LoadedModel:
    """The model to plan with.

    Raises:
        NoSuchModel: the job has no champion.
        NotReviewed: it is not approved, and must be.
        SluiceError: the model was changed after it was registered, or MLflow cannot be reached.
    """
    tracking = open_tracking(workspace)
    with mlflow_errors(tracking):
        champion = find_version(tracking, job, CHAMPION)
        if not (champion.is_approved or allow_unreviewed):
            raise NotReviewed(unreviewed(champion))
        return load_version(workspace, tracking, champion)


def unreviewed(info: VersionInfo) -> str:
    """What to do about a model that may not be planned with."""
    name = f"{info.job}@{info.version}"
    if info.review == REJECTED:
        why = f" ({info.review_reason})" if info.review_reason else ""
        return (
            f"{info.uri} was rejected by {info.reviewed_by or 'its review'}{why}, so nothing is planned with it; plan with "
            f"the champion, or approve it with `sluice models approve {name} --reason WHY`"
        )
    return (
        f"{info.uri} waits for a review, so nothing is planned with it"
        + (f": {info.review_reason}" if info.review_reason else "")
        + f"; look at it with `sluice models show {name}`, decide with `sluice models approve {name} --reason WHY` or "
        "`sluice models reject ...`, and give the same command again; `operations.review.allow_unreviewed: true` in the "
        "job's file plans without"
    )


def load_registered(workspace: Workspace, job: str, version: int) -> LoadedModel:
    """A version whether it is the champion or not, such as one whose law was asked for. Raises as above."""
    tracking = open_tracking(workspace)
    with mlflow_errors(tracking):
        return load_version(workspace, tracking, find_version(tracking, job, version))


def list_jobs(tracking: Tracking) -> list[str]:
    """Jobs that have a registered model made by Sluice, sorted."""
    models, token = [], None
    while True:
        page = tracking.client.search_registered_models(max_results=1000, page_token=token)
        models += [m.name for m in page if m.tags.get("sluice.job") == m.name]
        if not (token := page.token):
            return sorted(models)


def list_versions(tracking: Tracking, job: str) -> list[VersionInfo]:
    """Versions of a job's model, newest first. Versions that a killed run left unfinished, or an earlier Sluice registered in
    another format, are not among them."""
    if (registered := _registered(tracking, job)) is None:
        return []
    aliases: dict[int, list[str]] = {}
    for alias, version in registered.aliases.items():
        aliases.setdefault(int(version), []).append(alias)
    versions = tracking.client.search_model_versions(f"name = '{job}'", max_results=10_000)
    found = [_info(v, sorted(aliases.get(int(v.version), []))) for v in versions if _is_readable(v)]
    return sorted(found, key=lambda info: -info.version)


def find_version(tracking: Tracking, job: str, version: int | str) -> VersionInfo:
    """A version by its number or alias.

    Raises:
        NoSuchModel: naming what there is.
    """
    versions = list_versions(tracking, job)
    for info in versions:
        if str(version) == str(info.version) or version in info.aliases:
            return info
    known = ", ".join([str(v.version) for v in versions][:10]) or "none"
    if version == CHAMPION:
        raise NoSuchModel(
            f"job {job!r} has no champion; its versions: {known}; run `sluice plan {job} --rate R`, or approve a "
            f"version with `sluice models approve {job}@VERSION --reason WHY`"
        )
    raise NoSuchModel(f"job {job!r} has no model version {version!r}; known versions: {known}")


def load_version(workspace: Workspace, tracking: Tracking, info: VersionInfo) -> LoadedModel:
    """Load a version, and check that it is what was registered.

    Raises:
        ChangedModel: the files, or the workspace's record of the selection, do not agree.
        SluiceError: a file is missing.
    """
    selection = info.selection
    try:
        _check_workspace_record(workspace, info)
        source = tracking.client.get_model_version(info.job, str(info.version)).source
        capacity = _verified(workspace, read_model_files(tracking, str(source)), selection)
    except ChangedModel as error:
        raise ChangedModel(
            f"{info.uri} is not what was registered: {error}; do not use it; approve another version with "
            f"`sluice models approve {info.job}@VERSION --reason WHY`, or plan again to register a new one"
        ) from None
    return LoadedModel(capacity, selection)


def _verified(workspace: Workspace, files: ModelFiles, selection: SelectionRecord) -> CapacityModel:
    """The capacity model in the files, with its estimator verified, unless the same bytes were before: skops and scikit-learn
    take seconds to import. Any other byte or digest is verified again."""
    capacity = load_capacity(files, selection.capacity_digest)
    checked = {
        "file": digest_bytes(files.model),
        "registered": selection.model_digest,
        "capacity": selection.capacity_digest,
    }
    key = f"verified/{digest(checked)}"
    if not workspace.exists(key):
        verify(files.model, selection.model_digest, capacity)
        workspace.write_bytes(key, f"{selection.model_uri}\n".encode())
    return capacity


def _is_readable(version: "ModelVersion") -> bool:
    if SELECTION_TAG not in version.tags:
        return False
    return bool(json.loads(version.tags[SELECTION_TAG]).get("schema_version") == SELECTION_VERSION)


def promote(workspace: Workspace, tracking: Tracking, info: VersionInfo, review: Verdict, by: str, reason: str) -> None:
    """Make a version the champion, and say who decided it and why. The alias is moved last.

    Raises:
        ChangedModel: the version is not what was registered.
    """
    load_version(workspace, tracking, info)
    set_review(tracking, info.selection, review, by, reason)
    tracking.client.set_registered_model_alias(info.job, CHAMPION, str(info.version))


def set_review(tracking: Tracking, selection: SelectionRecord, review: Verdict, by: str, reason: str) -> None:
    """Note a review on the version, on the run that made it, and on the run that compares it with the champion."""
    version = str(selection.model_version)
    at = "" if review == PENDING else datetime.now(UTC).isoformat(timespec="seconds")
    compared = tracking.client.get_model_version(selection.job, version).tags.get(REVIEW_RUN_TAG)
    for key, value in ((REASON_TAG, reason), (REVIEWER_TAG, by), (REVIEWED_AT_TAG, at), (REVIEW_TAG, review)):
        for run in filter(None, (selection.mlflow_run_id, compared)):
            tracking.client.set_tag(run, key, value)
        tracking.client.set_model_version_tag(selection.job, version, key, value)


def register(tracking: Tracking, job: str, description: str) -> None:
    """Make the job's registered model if it is absent."""
    from mlflow.exceptions import MlflowException

    try:
        tracking.client.create_registered_model(job, tags={"sluice.job": job}, description=description)
    except MlflowException as error:
        if error.error_code != "RESOURCE_ALREADY_EXISTS":
            raise


def selection_tag(selection: SelectionRecord) -> str:
    """How a selection is kept with its version."""
    return canonical_json(selection)


def _registered(tracking: Tracking, job: str) -> "RegisteredModel | None":
    from mlflow.exceptions import MlflowException

    try:
        return tracking.client.get_registered_model(job)
    except MlflowException as error:
        if error.error_code != "RESOURCE_DOES_NOT_EXIST":
            raise
        return None


def _info(version: "ModelVersion", aliases: list[str]) -> VersionInfo:
    uri = f"models:/{version.name}/{version.version}"
    return VersionInfo(
        job=version.name,
        version=int(version.version),
        uri=uri,
        aliases=tuple(aliases),
        review=version.tags.get(REVIEW_TAG, PENDING),
        review_reason=version.tags.get(REASON_TAG, ""),
        reviewed_by=version.tags.get(REVIEWER_TAG, ""),
        reviewed_at=version.tags.get(REVIEWED_AT_TAG, ""),
        review_run_id=version.tags.get(REVIEW_RUN_TAG, ""),
        created_at=datetime.fromtimestamp(version.creation_timestamp / 1000, UTC).isoformat(timespec="seconds"),
        description=version.description or "",
        selection=validate_as(json.loads(version.tags[SELECTION_TAG]), SelectionRecord, origin=uri),
    )


def _check_workspace_record(workspace: Workspace, info: VersionInfo) -> None:
    key = f"runs/{info.job}/{info.selection.run}/{SELECTION_FILE}"
    if not workspace.exists(key):
        return
    kept = workspace.read_output(key, SelectionRecord)
    if kept.model_uri == info.uri and kept != info.selection:
        raise ChangedModel(f"the selection in the registry is not the one in {workspace.uri(key)}")
