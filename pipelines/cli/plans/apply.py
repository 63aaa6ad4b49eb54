"""`sluice plans apply`: a plan on a Flink cluster, or on the FlinkDeployment that deploys one."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from flink_client.answers import flinks_answers
from flink_client.rest import FlinkRest
from flink_client.restart import RestartProgram
from models.errors import InvalidInput, SluiceError
from models.job import Job
from models.plan import Plan
from models.slots import PlacedTask
from pipelines.apply.application import apply, without_password
from pipelines.apply.applied import Applied, Effect
from pipelines.apply.export import read_vertices, subtasks
from pipelines.apply.preparation import Preparation, prepare
from pipelines.apply.record import record
from pipelines.apply.steps import rows, steps
from pipelines.cli.output import (
    JsonOption,
    TokenVariableOption,
    WorkspaceOption,
    console,
    print_json,
    progress_console,
)
from pipelines.cli.plans.plan_reference import Reference, find_plan
from pipelines.inputs.catalogue import load_job
from pipelines.inputs.files import read_as
from pipelines.planning.planned_job import job_of
from pipelines.run import PipelineRun
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace
from pipelines.terminal.tables import table


def apply_plan(
    reference: Reference,
    flink: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="REST address of the cluster: http://host:8081, or connection:NAME.", show_default=False
        ),
    ] = None,
    kubernetes: Annotated[
        str | None,
        typer.Option(
            metavar="NAMESPACE/NAME",
            help="FlinkDeployment to change through the Kubernetes API; with --flink URL, its Flink is read and verified, too.",
            show_default=False,
        ),
    ] = None,
    context: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Context of the kubeconfig, with --kubernetes; default: its current one.",
            show_default=False,
        ),
    ] = None,
    redeploy: Annotated[
        bool,
        typer.Option(
            "--redeploy",
            help="With --kubernetes: write sizes of TaskManagers, too, and accept that the operator redeploys the job.",
        ),
    ] = False,
    job_id: Annotated[
        str | None,
        typer.Option(help="Flink's id of the job; default: the job with the plan's name.", show_default=False),
    ] = None,
    vertices: Annotated[
        Path | None, typer.Option(help="YAML or JSON file {operator: Flink job vertex id}.", show_default=False)
    ] = None,
    program: Annotated[
        Path | None,
        typer.Option(
            help="YAML or JSON file with jar, entry_class and arguments, to restart the job with.", show_default=False
        ),
    ] = None,
    timeout: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", help="Time for the plan to run, seconds; then the previous state is restored.", min=0
        ),
    ] = 120,
    observe: Annotated[
        float, typer.Option(metavar="SECONDS", help="Time to observe the job afterwards, seconds; 0: none.", min=0)
    ] = 60,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the steps and change nothing.")] = False,
    token_variable: TokenVariableOption = None,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Apply a plan to a running Flink job or its FlinkDeployment, verify it, and roll back on failure."""
    place = Workspace(workspace)
    plan = find_plan(PlanStore(place), reference)
    mapping = None if vertices is None else read_vertices(vertices, plan)
    if kubernetes is not None:
        # The client of Kubernetes takes seconds to import.
        from pipelines.cli.plans.apply_resource import apply_on_kubernetes

        if program is not None:
            raise InvalidInput("--program is for --flink; the operator restarts a job by itself (--redeploy)")
        apply_on_kubernetes(
            place,
            plan,
            kubernetes,
            context=context,
            flink=None if flink is None else _checked_url(flink),
            token_variable=token_variable,
            vertices=mapping,
            job_file=_job_file(place, plan),
            redeploy=redeploy,
            timeout_s=timeout,
            observe_s=observe,
            dry_run=dry_run,
            json=json,
        )
        return
    if flink is None or context is not None or redeploy:
        raise InvalidInput("give --flink URL, or --kubernetes NAMESPACE/NAME, which --context and --redeploy are for")
    restart = None if program is None else read_as(program, RestartProgram)
    with FlinkRest(_checked_url(flink), token_variable=token_variable) as rest:
        with flinks_answers(rest.url):
            preparation = prepare(
                rest,
                plan,
                job_id=_checked_id(job_id),
                vertices=mapping,
                job_file=_job_file(place, plan),
                program=restart,
            )
        if dry_run:
            _print_steps(flink, preparation, timeout, observe, json)
            return
        applied = apply(rest, preparation, timeout_s=timeout, observe_s=observe, say=_say)
    uri = record(place, applied)
    if json:
        print_json(applied)
    else:
        _print_applied(plan, applied)
    progress_console.print(f"recorded in {uri}", markup=False, soft_wrap=True)
    if applied.outcome in ("rolled-back", "failed"):
        raise SluiceError(f"{plan.job}@{plan.version} was not applied: {applied.reason}")


def _job_file(workspace: Workspace, plan: Plan) -> Job | None:
    """The job as its file has it now; without the run that made the plan, the job of that name in the catalogue."""
    is_known = workspace.exists(PipelineRun.request_key(plan))
    try:
        return job_of(workspace, plan) if is_known else load_job(plan.job)
    except InvalidInput as error:
        if is_known:
            _say(f"operators are found by their own names, since the job's file cannot be read: {error}")
        return None


def _say(what: str) -> None:
    progress_console.print(what, markup=False, soft_wrap=True)


def _checked_url(url: str) -> str:
    if not url.startswith(("http://", "https://", "connection:")):
        raise InvalidInput(
            f"--flink must be the address of a JobManager, such as http://host:8081, or connection:NAME, but got {url!r:.200}"
        )
    return url


def _checked_id(job_id: str | None) -> str | None:
    if job_id is not None and (len(job_id) != 32 or set(job_id) - set("0123456789abcdef")):
        raise InvalidInput(f"a job's id has 32 hexadecimal digits, but got {job_id!r:.80}")
    return job_id


def _print_steps(flink: str, preparation: Preparation, timeout: float, observe: float, json: bool) -> None:
    plan, todo = preparation.plan, steps(preparation, timeout_s=timeout, observe_s=observe)
    if json:
        print_json(_steps_document(flink, preparation, todo))
        return
    console.print(Text(f"{plan.job}@{plan.version} on job {preparation.job.name} ({preparation.job.id})", style="bold"))
    shown = table("operators", "vertex", "now", "plan", wrap=("operators", "vertex"))
    for row in rows(preparation.job, preparation.changes):
        shown.add_row(*map(Text, row))
    console.print(shown)
    for number, step in enumerate(todo, start=1):
        console.print(Text(f"{number}. {step}"), soft_wrap=True)
    if not todo:
        console.print("Flink runs the plan already")
    _print_advice(preparation.advice)


def _steps_document(flink: str, preparation: Preparation, todo: list[str]) -> dict[str, Any]:
    placed = [] if preparation.move is None else subtasks(preparation.plan, preparation.vertices)
    return {
        "job": preparation.plan.job,
        "version": preparation.plan.version,
        "flink_url": without_password(flink),
        "flink_job": preparation.job.id,
        "scheduler": preparation.scheduler,
        "method": preparation.method,
        "changes": [change.model_dump(mode="json") for change in preparation.changes],
        "placement": [_placed(task) for task in placed],
        "steps": todo,
        "advice": list(preparation.advice),
    }


def _placed(task: PlacedTask) -> dict[str, Any]:
    where: dict[str, Any] = {"vertex": task.vertex, "task": task.subtask, "task_manager": task.worker}
    return where if task.slot is None else where | {"slot": task.slot}


def _print_applied(plan: Plan, applied: Applied) -> None:
    style = "bold" if applied.outcome in ("applied", "unchanged") else "bold red"
    console.print(Text(f"{plan.job}@{plan.version} {applied.outcome}: {applied.reason}", style=style))
    if applied.flinks_rescale_s is not None:
        console.print(f"by its own history, Flink took {applied.flinks_rescale_s:.1f} s of that")
    shown = table("operators", "vertex", "before", "plan", wrap=("operators", "vertex"))
    for change in applied.changes:
        shown.add_row(Text(", ".join(change.operators)), Text(change.name), str(change.before), str(change.after))
    console.print(shown)
    if applied.effect is not None:
        _print_effect(applied.effect)
    _print_advice(applied.advice)


def _print_effect(effect: Effect) -> None:
    rate = "an unknown rate" if effect.rate is None else f"{effect.rate:,.0f} records/s"
    console.print(f"observed for {effect.window_s:g} s at {rate}; the plan is for {effect.target_rate:,.0f}")
    shown = table("operators", "records/s in", "predicted", "busy", "predicted", "backpressured", wrap=("operators",))
    for v in effect.vertices:
        figures = (*map(_rate, (v.records_in_per_s, v.expected_records_in_per_s)),)
        shares = (*map(_share, (v.busyness, v.expected_busyness, v.backpressure)),)
        shown.add_row(Text(", ".join(v.operators)), *figures, *shares)
    console.print(shown)


def _print_advice(advice: tuple[str, ...]) -> None:
    for one in advice:
        console.print(Text(f"not done: {one}"), soft_wrap=True)


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"
