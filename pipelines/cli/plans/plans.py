"""`sluice plans`: the versioned plans of jobs."""

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from models.errors import InvalidInput
from models.plan.content import Plan
from models.plan.differences import difference, placement_changes
from pipelines.apply.export import ExportFormat, export, read_vertices, remarks
from pipelines.apply.gitops.exporting import export_to_branch
from pipelines.apply.gitops.git.branch import Committed
from pipelines.cli import app
from pipelines.cli.options.standard import JsonOption, NameOption, WorkspaceOption, account
from pipelines.cli.output import console, print_json, progress_console
from pipelines.cli.plans.apply import apply_plan
from pipelines.cli.plans.plan_reference import Reference, find_plan, parse_reference
from pipelines.store.pins import PlanPin, pin_of, release_pin
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Damaged, Workspace
from pipelines.terminal.plan_tables import difference_view, list_view, plan_view

plans = typer.Typer(
    help="List, show, compare, roll back, unpin, export and apply plans.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(plans, name="plans")

plans.command("apply")(apply_plan)


@plans.command("list")
def list_(
    job: Annotated[str | None, typer.Argument(metavar="[JOB]", help="Only the plans of this job.")] = None,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """List the versions of all plans, or of one job's."""
    place = Workspace(workspace)
    store = PlanStore(place)
    jobs = store.jobs() if job is None else [_known(store, job)]
    pins = {name: pin for name in jobs if (pin := pin_of(place, name)) is not None}
    rows = [_row(store, name, version, pins.get(name)) for name in jobs for version in store.versions(name)]
    for row in rows:
        if "damaged" in row:
            progress_console.print(row["damaged"], markup=False, soft_wrap=True)
    if json:
        print_json({"plans": rows})
    elif rows:
        console.print(list_view(rows))
        for pin in pins.values():
            progress_console.print(f"{pin}", markup=False, soft_wrap=True)
    else:
        progress_console.print(f"no plans in {place.url}", markup=False)


@plans.command()
def show(reference: Reference, workspace: WorkspaceOption = None, json: JsonOption = False) -> None:
    """Show a plan: the newest one of a job, or the version named."""
    place = Workspace(workspace)
    plan = find_plan(PlanStore(place), reference)
    if json:
        print_json(plan)
    else:
        console.print(plan_view(plan))
    if (pin := pin_of(place, plan.job)) is not None:
        progress_console.print(f"{pin}", markup=False, soft_wrap=True)


@plans.command()
def diff(
    before: Annotated[str, typer.Argument(metavar="JOB[@A]", help="The plan to start from.")],
    after: Annotated[str | None, typer.Argument(metavar="[JOB@B]", help="The plan to compare it with.")] = None,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Compare two versions. JOB alone: the last two; JOB@A alone: A and the newest."""
    old, new = _pair(PlanStore(Workspace(workspace)), before, after)
    change = difference(old, new)
    if json:
        print_json(_difference_document(old, new))
    else:
        console.print(difference_view(old, new, change))


@plans.command()
def rollback(
    reference: Annotated[str, typer.Argument(metavar="JOB@V", help="The version to go back to.")],
    reason: Annotated[
        str | None, typer.Option(help="Reason, stored with the pin and the plan.", show_default=False)
    ] = None,
    by: NameOption = None,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Add a version that deploys what an older one did, and pin the job to it.

    A pinned job is not replanned, whatever its source rate, until `sluice plans unpin JOB`.
    """
    job, version = parse_reference(reference)
    if version is None:
        raise InvalidInput(f"a rollback must name a version, but got {reference!r}; write for example {job}@1")
    created_at = datetime.now(UTC).isoformat(timespec="seconds")
    store = PlanStore(Workspace(workspace))
    plan = store.rollback(job, version, created_at, by or account(), reason)
    if json:
        print_json(plan)
    else:
        console.print(
            Text(
                f"{job}@{plan.version} deploys what {job}@{version} did: {store.uri(job, plan.version)}\n"
                f"{job} is pinned to it; `sluice plans unpin {job}` lets it be planned again"
            ),
            soft_wrap=True,
        )


@plans.command()
def unpin(
    job: Annotated[str, typer.Argument(metavar="JOB", help="The pinned job.")],
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Release a job pinned by a rollback, so that it is replanned when its rate changes."""
    place = Workspace(workspace)
    pin = release_pin(place, _known(PlanStore(place), job))
    if json:
        print_json({"job": job, "released": None if pin is None else pin.model_dump(mode="json")})
    else:
        console.print(Text(f"{job} was not pinned" if pin is None else f"released: {pin}"), soft_wrap=True)


@plans.command("export")
def export_(
    reference: Reference,
    form: Annotated[ExportFormat, typer.Option("--format", help="Export format.")],
    vertices: Annotated[
        Path | None, typer.Option(help="YAML or JSON file {operator: Flink job vertex id}.", show_default=False)
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="File to write to; default: standard output.", show_default=False)
    ] = None,
    git: Annotated[
        str | None,
        typer.Option(
            metavar="REPOSITORY", help="Git repository to commit it to: what `git clone` takes.", show_default=False
        ),
    ] = None,
    branch: Annotated[
        str | None,
        typer.Option(
            help="Branch of --git; a new one starts from the default branch; default: sluice/JOB.", show_default=False
        ),
    ] = None,
    path: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="File in --git; default: sluice/JOB.yaml.", show_default=False),
    ] = None,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Export a plan to Flink: overrides, REST body, FlinkDeployment patch, or lines for a placement hook.

    With --git it is committed to a branch and pushed, without force; the same plan makes no second commit.
    """
    store = PlanStore(Workspace(workspace))
    plan = find_plan(store, reference)
    known = None if vertices is None else read_vertices(vertices, plan)
    text, notes = export(plan, form, known), remarks(plan, form, known)
    committed = _committed(store, plan, form, known, git, branch, path)
    for note in notes:
        progress_console.print(f"note: {note}", markup=False, soft_wrap=True)
    if output is not None:
        _write(output, text)
    if json:
        printed = {"job": plan.job, "version": plan.version, "format": form, "content": text, "notes": notes}
        print_json(printed if committed is None else printed | asdict(committed))
    elif committed is not None:
        what = "has this plan already" if committed.commit is None else f"is at {committed.commit} now"
        progress_console.print(f"branch {committed.branch} {what}", markup=False, soft_wrap=True)
    elif output is None:
        typer.echo(text, nl=False)
    else:
        progress_console.print(f"wrote {output}", markup=False)


def _committed(
    store: PlanStore,
    plan: Plan,
    form: ExportFormat,
    vertices: dict[str, str] | None,
    git: str | None,
    branch: str | None,
    path: str | None,
) -> Committed | None:
    if git is None:
        if branch is not None or path is not None:
            raise InvalidInput("--branch and --path are for --git REPOSITORY; give that, too")
        return None
    branch, path = branch or f"sluice/{plan.job}", path or f"sluice/{plan.job}.yaml"
    return export_to_branch(store, plan, form, vertices, git, branch, path)


def _write(path: Path, text: str) -> None:
    if not path.parent.is_dir():
        raise InvalidInput(f"the folder {path.parent} does not exist; make it, or write elsewhere")
    path.write_text(text, encoding="utf-8")


def _known(store: PlanStore, reference: str) -> str:
    """Check that the job has versions, intact or not; return its name."""
    job, _ = parse_reference(reference)
    return job if store.versions(job) else store.current(job).job


def _pair(store: PlanStore, before: str, after: str | None) -> tuple[Plan, Plan]:
    job, version = parse_reference(before)
    if after is not None:
        other = parse_reference(after)[0]
        if other != job:
            raise InvalidInput(f"two versions of one job can be compared, but got {job!r} and {other!r}")
        return find_plan(store, before), find_plan(store, after)
    newest = store.current(job)
    if version is not None:
        return store.get(job, version), newest
    older = [v for v in store.versions(job) if v < newest.version]
    if not older:
        raise InvalidInput(f"the plan of {job!r} has only version {newest.version}; there is nothing to compare it to")
    return store.get(job, older[-1]), newest


def _difference_document(before: Plan, after: Plan) -> dict[str, Any]:
    return {
        "job": after.job,
        "from_version": before.version,
        "to_version": after.version,
        "target_rate": {"before": before.target_rate, "after": after.target_rate},
        "memory_mb": {"before": before.memory_mb, "after": after.memory_mb},
        "total_cores": _before_and_after(before, after, "total_cores"),
        "price_per_hour": _before_and_after(before, after, "price_per_hour"),
        "difference": difference(before, after).model_dump(mode="json"),
        "placement": [change.model_dump(mode="json") for change in placement_changes(before, after)],
    }


def _before_and_after(before: Plan, after: Plan, figure: str) -> dict[str, float | None]:
    """A figure of the TaskManagers, and by how much it changes; null where a plan does not state it."""
    old, new = (None if p.resources is None else getattr(p.resources, figure) for p in (before, after))
    change = None if old is None or new is None else float(new - old)
    return {"before": _stated(before, figure), "after": _stated(after, figure), "change": change}


def _stated(plan: Plan, figure: str) -> float | None:
    value = None if plan.resources is None else getattr(plan.resources, figure)
    return None if value is None else float(value)


def _row(store: PlanStore, job: str, version: int, pin: PlanPin | None) -> dict[str, Any]:
    """One version for the list; a damaged one has its fault instead of its figures."""
    try:
        stored = store.get_stored(job, version)
    except Damaged as error:
        return {"job": job, "version": version, "damaged": str(error)}
    plan = stored.plan
    return {
        "job": job,
        "version": version,
        "created_at": plan.created_at,
        "trigger": plan.lineage.trigger,
        "target_rate": plan.target_rate,
        "predicted_mst": plan.predicted_mst.value,
        "task_slots": plan.task_slots,
        "memory_mb": plan.memory_mb,
        "total_cores": _stated(plan, "total_cores"),
        "price_per_hour": _stated(plan, "price_per_hour"),
        "tasks_moved": None if plan.difference is None else plan.difference.tasks_moved,
        "pinned": pin is not None and pin.version == version,
        "digest": stored.digest,
        "uri": store.uri(job, version),
    }
