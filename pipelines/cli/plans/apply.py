"""`sluice plans apply`: a plan on a Flink cluster, or on the FlinkDeployment that deploys one."""

from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.text import Text

from flink_client.jobs.restart import RestartProgram
from flink_client.rest.answers import flinks_answers
from flink_client.rest.client import FlinkRest
from models.errors import InvalidInput, SluiceError
from models.job import Job
from models.plan.content import Plan
from models.plan.slots import PlacedTask
from pipelines.apply.application import apply, without_password
from pipelines.apply.applied import NOT_APPLIED
from pipelines.apply.export import read_vertices, subtasks
from pipelines.apply.preparation import Preparation, prepare
from pipelines.apply.record import record
from pipelines.apply.steps import rows, steps
from pipelines.cli.options.standard import ContextOption, JsonOption, TokenVariableOption, WorkspaceOption
from pipelines.cli.output import console, print_json, progress_console
from pipelines.cli.plans.applied_view import print_advice, print_applied, say
from pipelines.cli.plans.plan_reference import Reference, find_plan
from pipelines.inputs.catalogue import load_job
from pipelines.inputs.job_files import operations_of
from pipelines.inputs.parsing.files import read_as
from pipelines.planning.planned_job import job_of
from pipelines.run import PipelineRun
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace
from pipelines.terminal.tables import table

_TIMEOUT_S: Final = 120.0


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
    context: ContextOption = None,
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
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Time for the plan to run, seconds; then the previous state is restored; default: 120. For a job that is "
            "deployed from a git repository: time for the merge; default: as its file says.",
            min=0,
            show_default=False,
        ),
    ] = None,
    observe: Annotated[
        float, typer.Option(metavar="SECONDS", help="Time to observe the job afterwards, seconds; 0: none.", min=0)
    ] = 60,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the steps and change nothing.")] = False,
    token_variable: TokenVariableOption = None,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Apply a plan to a running Flink job or its FlinkDeployment, verify it, and roll back on failure.

    For a job whose file names a git repository (operations.apply.repository), the plan is written into a branch of it; the
    command then waits for the merge, and until the job runs as planned.
    """
    place = Workspace(workspace)
    plan = find_plan(PlanStore(place), reference)
    mapping = None if vertices is None else read_vertices(vertices, plan)
    job_file = _job_file(place, plan)
    applying = None if job_file is None else operations_of(job_file).apply
    if applying is not None and applying.repository is not None:
        from pipelines.cli.plans.apply_merge import apply_through_repository

        if kubernetes is not None or context is not None or redeploy or program is not None:
            raise InvalidInput(
                f"{plan.job} is deployed from a git repository, by its file, so the cluster is not changed; leave "
                "--kubernetes, --context, --redeploy and --program away"
            )
        apply_through_repository(
            place,
            plan,
            applying,
            applying.repository,
            flink=None if flink is None else _checked_url(flink),
            token_variable=token_variable,
            job_id=_checked_id(job_id),
            vertices=mapping,
            job_file=job_file,
            timeout_s=timeout,
            observe_s=observe,
            dry_run=dry_run,
            json=json,
        )
        return
    timeout_s = _TIMEOUT_S if timeout is None else timeout
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
            job_file=job_file,
            redeploy=redeploy,
            timeout_s=timeout_s,
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
                job_file=job_file,
                program=restart,
            )
        if dry_run:
            _print_steps(flink, preparation, timeout_s, observe, json)
            return
        applied = apply(rest, preparation, timeout_s=timeout_s, observe_s=observe, say=say)
    uri = record(place, applied)
    if json:
        print_json(applied)
    else:
        print_applied(plan, applied)
    progress_console.print(f"recorded in {uri}", markup=False, soft_wrap=True)
    if applied.outcome in NOT_APPLIED:
        raise SluiceError(f"{plan.job}@{plan.version} was not applied: {applied.reason}")


def _job_file(workspace: Workspace, plan: Plan) -> Job | None:
    """The job as its file has it now; without the run that made the plan, the job of that name in the catalogue."""
    is_known = workspace.exists(PipelineRun.request_key(plan))
    try:
        return job_of(workspace, plan) if is_known else load_job(plan.job)
    except InvalidInput as error:
        if is_known:
            say(f"operators are found by their own names, since the job's file cannot be read: {error}")
        return None


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
    print_advice(preparation.advice)


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
