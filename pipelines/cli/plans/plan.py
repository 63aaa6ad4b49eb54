"""`sluice plan` and `sluice replan`."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from models.errors import InvalidInput
from models.plan.content import Plan
from pipelines.cli import app
from pipelines.cli.extras import require
from pipelines.cli.options.duration import LEAST_S, seconds_of
from pipelines.cli.options.from_request import ARGUMENT, request_options
from pipelines.cli.options.standard import (
    JsonOption,
    PrometheusOption,
    PrometheusTokenOption,
    TokenVariableOption,
    WorkspaceOption,
)
from pipelines.cli.output import console, print_json, progress_console
from pipelines.inputs.parsing.files import validate_as
from pipelines.inputs.plan_request import PlanRequest
from pipelines.progress import TerminalProgress
from pipelines.store.plans import PlanStore, report_key
from pipelines.store.workspace import Workspace
from pipelines.terminal.plan_tables import plan_view

if TYPE_CHECKING:
    from pipelines.observe.scraped import Scraper

FIELDS = tuple(name for name in PlanRequest.model_fields if name != "schema_version")


@app.command()
@request_options(PlanRequest, *FIELDS, optional=("job",))
def plan(
    fields: dict[str, Any],
    from_running: Annotated[
        bool,
        typer.Option(
            "--from-running", help="Plan a job that runs on the Flink of --flink, from what is observed of it."
        ),
    ] = False,
    running: Annotated[
        str | None,
        typer.Option(
            "--job", metavar="ID|NAME", help="With --from-running: Flink's id or name of the job.", show_default=False
        ),
    ] = None,
    duration: Annotated[
        str,
        typer.Option(
            "--for", metavar="TIME", help=f"With --from-running: how long to observe it, at least {LEAST_S:g} s."
        ),
    ] = "3m",
    prometheus: PrometheusOption = None,
    prometheus_token_variable: PrometheusTokenOption = None,
    kafka: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Kafka broker, or connection:NAME, that is asked for the partitions of the topics that sources name; default: "
            "the 'brokers' of the job's file. With --from-running: to count what waits there.",
            show_default=False,
        ),
    ] = None,
    token_variable: TokenVariableOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Plan a job for a target rate: measure it small, plan it large.

    Runs the whole pipeline, as the DAG does.

    The same request resumes where it was stopped, and repeats no finished measurement.

    With --from-running there is no testbed: the job is observed as it runs, and stays as it is.
    """
    place = Workspace(workspace)
    if from_running:
        from pipelines.observe.scraped import Scraper

        scraper = Scraper.of(prometheus, prometheus_token_variable, kafka)
        made = _plan_running(fields, running, duration, kafka, scraper, token_variable, place)
    else:
        made = _plan_measured(fields, running, place, kafka)
    _show(made, place, as_json)


def _plan_measured(fields: dict[str, Any], running: str | None, place: Workspace, kafka: str | None) -> Plan:
    # The stages take seconds to import, which other commands do not need.
    from pipelines.run import PipelineRun
    from pipelines.stages import run_all

    if running is not None:
        raise InvalidInput("--job names a running job, and needs --from-running; name a job to measure as JOB")
    if fields["job"] is None:
        raise InvalidInput("JOB must be given: a job of the catalogue, a job file or a program; or --from-running")
    require("spark", "mlflow")
    request = validate_as(fields, PlanRequest, origin="the request")
    run = PipelineRun(request, place, TerminalProgress(), brokers=kafka)
    run_all(run)
    return PlanStore(place).current(run.job.name)


def _plan_running(
    fields: dict[str, Any],
    running: str | None,
    duration: str,
    kafka: str | None,
    scraper: "Scraper | None",
    token_variable: str | None,
    place: Workspace,
) -> Plan:
    from flink_client.rest.client import FlinkRest
    from pipelines.measuring.flink import named_address
    from pipelines.observe.observation import running_job_id
    from pipelines.observe.planning import USED, RunningRequest, plan_running
    from pipelines.observe.scraped import observe_or_read

    defaults = {name: PlanRequest.model_fields[name].default for name in FIELDS}
    unused = [
        name for name, value in fields.items() if name not in USED and value != defaults[name] and value is not None
    ]
    if unused:
        named = ("JOB" if name == ARGUMENT else f"--{name.replace('_', '-')}" for name in unused)
        raise InvalidInput(f"--from-running measures nothing, so leave out {', '.join(named)}")
    if fields["flink"] is None:
        raise InvalidInput("--from-running needs --flink: the address of the Flink that runs the job")
    cluster = None if fields["cluster"] == defaults["cluster"] else fields["cluster"]
    asked = RunningRequest(fields["rate"], cluster, fields["risk"], fields["headroom"], fields["seed"])
    progress = TerminalProgress()
    with FlinkRest(named_address(fields["flink"]).rest_url, token_variable=token_variable) as rest:
        id_, seconds = running_job_id(rest, running), seconds_of(duration, LEAST_S)
        observed = observe_or_read(rest, id_, seconds, place, progress, kafka=kafka, scraper=scraper)
        return plan_running(rest, observed, asked, place, progress)


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
