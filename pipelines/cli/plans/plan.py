"""`sluice plan` and `sluice replan`."""

from typing import Annotated, Any

import typer

from models.plan import Plan
from pipelines.cli import app
from pipelines.cli.output import JsonOption, WorkspaceOption, console, print_json, progress_console
from pipelines.cli.request_options import request_options
from pipelines.inputs.files import validate_as
from pipelines.inputs.plan_request import PlanRequest
from pipelines.progress import TerminalProgress
from pipelines.store.plans import PlanStore, report_key
from pipelines.store.workspace import Workspace
from pipelines.terminal.plan_tables import plan_view

FIELDS = tuple(name for name in PlanRequest.model_fields if name != "schema_version")


@app.command()
@request_options(PlanRequest, *FIELDS)
def plan(fields: dict[str, Any], workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """Plan a job for a target rate: measure it small, plan it large.

    Runs the whole pipeline, as the DAG does.

    The same request resumes where it was stopped, and repeats no finished measurement.
    """
    # The stages take seconds to import, which other commands do not need.
    from pipelines.run import PipelineRun
    from pipelines.stages import run_all

    request = validate_as(fields, PlanRequest, origin="the request")
    place = Workspace(workspace)
    pipeline_run = PipelineRun(request, place, TerminalProgress())
    run_all(pipeline_run)
    _show(PlanStore(place).current(pipeline_run.job.name), place, as_json)


@app.command()
@request_options(PlanRequest, "job", "rate")
def replan(
    fields: dict[str, Any],
    policy: Annotated[
        str | None,
        typer.Option(
            help="Scaling policy that decides the tasks of each operator, as in `sluice scale`; default: the one "
            "that an evaluation chose for the job, else ds2.",
            show_default=False,
        ),
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Replan a job for another rate, without new measurements."""
    from pipelines.inputs.catalogue import job_name
    from pipelines.planning.replan import replan as replan_job

    place = Workspace(workspace)
    planned = fields["job"] in PlanStore(place).jobs()  # its name is known here, wherever its file is
    job = fields["job"] if planned else job_name(fields["job"])
    outcome = replan_job(place, job, fields["rate"], TerminalProgress(), policy)
    _show(outcome.plan, place, as_json)


def _show(plan: Plan, workspace: Workspace, as_json: bool) -> None:
    if as_json:
        print_json(plan)
    else:
        console.print(plan_view(plan))

    progress_console.print(f"report: {workspace.uri(report_key(plan.job, plan.version))}", soft_wrap=True)
    progress_console.print(f"plan:   {PlanStore(workspace).uri(plan.job, plan.version)}", soft_wrap=True)
