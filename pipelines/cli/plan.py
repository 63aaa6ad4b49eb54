"""`sluice plan` and `sluice replan`."""

from typing import Annotated

import typer

from models.plan import Plan
from pipelines.cli import app
from pipelines.cli.output import JsonOption, WorkspaceOption, console, print_json, progress_console
from pipelines.cli.plan_tables import plan_view
from pipelines.files import validate_as
from pipelines.plan_store import PlanStore
from pipelines.progress import TerminalProgress
from pipelines.workspace import Workspace

JobArgument = Annotated[
    str,
    typer.Argument(
        metavar="JOB", help="Job of the catalogue, or path of a job file or, on Flink, of a program or SQL file."
    ),
]
RateOption = Annotated[float, typer.Option("--rate", help="Target rate at the sources together, records/s.")]


@app.command()
def plan(
    job: JobArgument,
    rate: RateOption,
    testbed: Annotated[str, typer.Option(help="Where to measure: simulator, flink, or recorded.")] = "simulator",
    flink: Annotated[
        str | None,
        typer.Option(
            metavar="URL|CLUSTER",
            help="Flink to measure on: its REST URL, or a cluster (file) that has one; else one is started here.",
        ),
    ] = None,
    measurements: Annotated[str | None, typer.Option(metavar="CSV", help="File of the recorded testbed.")] = None,
    rows: Annotated[int | None, typer.Option(help="Use only the first rows of the measurements.")] = None,
    cluster: Annotated[str, typer.Option(help="Cluster of the catalogue, or a file.")] = "production",
    model: Annotated[str, typer.Option(help="auto, linear, log or sqrt.")] = "auto",
    headroom: Annotated[float, typer.Option(help="Factor on the rate that is planned for.")] = 1.1,
    memory: Annotated[float | None, typer.Option(help="TaskManager memory, MiB; the best one if absent.")] = None,
    max_slots: Annotated[int, typer.Option(help="Most task slots to measure with.")] = 48,
    max_measurements: Annotated[int, typer.Option(help="Most measurements after the corners.")] = 20,
    seed: Annotated[int, typer.Option(help="Of everything random.")] = 0,
    run: Annotated[
        str | None,
        typer.Option(
            help="Name of the run. An earlier one's name and another rate: planned by what that one measured. Absent: "
            "made from the request, so that the same request goes on."
        ),
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure a job small and plan it large: the whole pipeline, as the DAG runs it.

    The same request goes on where it was stopped, and repeats no finished measurement.
    """
    # The stages take seconds to import; other commands should not wait for them.
    from pipelines.run import PipelineRun, PlanRequest
    from pipelines.stages import run_all

    fields = {
        "job": job,
        "rate": rate,
        "cluster": cluster,
        "testbed": testbed,
        "flink": flink,
        "measurements": measurements,
        "measurement_rows": rows,
        "model": model,
        "headroom": headroom,
        "memory_mb": memory,
        "max_task_slots": max_slots,
        "max_measurements": max_measurements,
        "seed": seed,
        "run": run,
    }
    request = validate_as(fields, PlanRequest, origin="the request")
    place = Workspace(workspace)
    pipeline_run = PipelineRun(request, place, TerminalProgress())
    run_all(pipeline_run)
    _show(PlanStore(place).current(pipeline_run.job.name), place, as_json)


@app.command()
def replan(
    job: JobArgument,
    rate: RateOption,
    policy: Annotated[
        str | None,
        typer.Option(
            help="Scaling policy that says how many tasks each operator gets, as in `sluice scale`; if absent, the one "
            "that an evaluation chose for the job, else ds2.",
            show_default=False,
        ),
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Plan again for another rate from what is known, in seconds; nothing is measured."""
    from pipelines.catalogue import job_name
    from pipelines.replan import replan as replan_job

    place = Workspace(workspace)
    outcome = replan_job(place, job_name(job), rate, TerminalProgress(), policy)
    _show(outcome.plan, place, as_json)


def _show(plan: Plan, workspace: Workspace, as_json: bool) -> None:
    if as_json:
        print_json(plan)
    else:
        console.print(plan_view(plan))
    from pipelines.publish import report_key

    progress_console.print(f"report: {workspace.uri(report_key(plan.job, plan.version))}", soft_wrap=True)
    progress_console.print(f"plan:   {PlanStore(workspace).uri(plan.job, plan.version)}", soft_wrap=True)
