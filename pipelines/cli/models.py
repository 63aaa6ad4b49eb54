"""`sluice models`: the registered capacity models of jobs, and their review."""

import re
from typing import Annotated

import typer
from rich.console import Group
from rich.text import Text

from models.errors import InvalidInput
from models.wording import amount
from pipelines.cli import app
from pipelines.cli.options.standard import JsonOption, NameOption, WorkspaceOption, account
from pipelines.cli.output import console, print_json, progress_console
from pipelines.registry.models import (
    CHAMPION,
    THE_RULE,
    VersionInfo,
    find_version,
    list_jobs,
    list_versions,
    load_version,
)
from pipelines.registry.tracking import Tracking, mlflow_errors, open_tracking, without_password
from pipelines.store.workspace import Workspace
from pipelines.terminal.tables import table

models = typer.Typer(
    help="List, show, approve and reject capacity models.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(models, name="models")

_REFERENCE = re.compile(r"(?P<job>[A-Za-z0-9][A-Za-z0-9._-]*)(@v?(?P<version>[0-9]{1,9}|[a-z][a-z0-9-]*))?")


@models.command("list")
def list_(
    job: Annotated[str | None, typer.Argument(metavar="[JOB]", help="Only the models of this job.")] = None,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """List the versions of all models, or of one job's, newest first."""
    tracking = open_tracking(Workspace(workspace))
    with mlflow_errors(tracking):
        jobs = list_jobs(tracking) if job is None else [_known(tracking, job)]
        versions = [info for name in jobs for info in list_versions(tracking, name)]
    if json:
        print_json({"models": [info.model_dump(mode="json") for info in versions]})
    elif versions:
        console.print(_table(versions))
    else:
        progress_console.print(f"no models in {without_password(tracking.uri)}", markup=False, soft_wrap=True)


@models.command()
def show(
    reference: Annotated[
        str, typer.Argument(metavar="JOB[@VERSION]", help="A version, champion or challenger: nexmark-q5@3.")
    ],
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Show a model and verify its file. Default: the job's champion, or its newest version."""
    place = Workspace(workspace)
    tracking = open_tracking(place)
    with mlflow_errors(tracking):
        info = _find(tracking, reference)
        load_version(place, tracking, info)
    if json:
        print_json(info)
    else:
        console.print(_view(info))


VersionArgument = Annotated[str, typer.Argument(metavar="JOB@VERSION", help="Version to decide about.")]
ReasonOption = Annotated[str, typer.Option(help="Reason of the decision; stored with the version.")]


@models.command()
def approve(
    reference: VersionArgument,
    reason: ReasonOption,
    by: NameOption = None,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Make a version the champion, the model that plans are made with."""
    info = _decide(reference, True, by, reason, workspace)
    _tell(info, f"plans of {info.job} are made with {info.uri} from now on ({info.selection.model})", json)


@models.command()
def reject(
    reference: VersionArgument,
    reason: ReasonOption,
    by: NameOption = None,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Reject a version and keep the champion."""
    info = _decide(reference, False, by, reason, workspace)
    _tell(info, f"{info.uri} is rejected; plans of {info.job} keep to the champion", json)


def _decide(reference: str, approve: bool, by: str | None, reason: str, workspace: str | None) -> VersionInfo:
    from pipelines.registry.review.decision import decide

    job, version = _parse(reference)
    if version is None:
        raise InvalidInput(f"a decision must name a version, but got {reference!r}; write for example {job}@1")
    return decide(Workspace(workspace), job, version, approve, by or account(), reason)


def _tell(info: VersionInfo, sentence: str, json: bool) -> None:
    if json:
        print_json(info)
    else:
        console.print(Text(sentence))


def _parse(reference: str) -> tuple[str, str | None]:
    match = _REFERENCE.fullmatch(reference)
    if match is None:
        raise InvalidInput(f"a model is named JOB or JOB@VERSION, for example nexmark-q5@3, but got {reference!r}")
    return match["job"], match["version"]


def _find(tracking: Tracking, reference: str) -> VersionInfo:
    job, version = _parse(reference)
    if version is not None:
        return find_version(tracking, job, version)
    versions = list_versions(tracking, job)
    newest = versions[0].version if versions else CHAMPION
    return next((v for v in versions if CHAMPION in v.aliases), None) or find_version(tracking, job, newest)


def _known(tracking: Tracking, job: str) -> str:
    if job in (known := list_jobs(tracking)):
        return job
    raise InvalidInput(f"there is no model of the job {job!r}; jobs that have one: {', '.join(known) or 'none'}")


def _table(versions: list[VersionInfo]) -> Group:
    rows = table("model", "status", "law", "points", "LOOCV", text=("law",), wrap=("model", "status"))
    for info in versions:
        selection = info.selection
        rows.add_row(
            Text(f"{info.job}@{info.version}"),
            ", ".join([*info.aliases, info.review]),
            selection.model,
            str(selection.observations),
            amount(selection.loocv_rmse),
        )
    return Group(rows, Text("LOOCV: RMSE in records/s, leaving one observation out"))


def _view(info: VersionInfo) -> Group:
    """Everything that a person needs to decide about the model."""
    selection = info.selection
    aliases = f" ({', '.join(info.aliases)})" if info.aliases else ""
    errors = table("law", "weight", "LOOCV RMSE")
    for law, error in selection.loocv.items():
        errors.add_row(law, f"{selection.weights.get(law, 0.0):.0%}", amount(error))
    return Group(
        Text(f"{info.job}@{info.version}{aliases}", style="bold"),
        Text(info.description),
        errors,
        Text(
            f"review: {info.review}"
            + (f" by {info.reviewed_by}" if info.reviewed_by not in ("", THE_RULE) else "")
            + (f", {info.review_reason}" if info.review_reason else "")
        ),
        Text(f"made {info.created_at} by run {selection.run}; MLflow run {selection.mlflow_run_id}"),
        Text("its files match their registered digests"),
    )
