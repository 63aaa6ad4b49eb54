"""`sluice observe`: rates, skew, lag and limits of a running job that stays as it is."""

from pathlib import Path
from typing import Annotated

import typer

from pipelines.cli import app
from pipelines.cli.options.duration import LEAST_S, seconds_of
from pipelines.cli.options.standard import (
    JsonOption,
    KafkaOption,
    PrometheusOption,
    PrometheusTokenOption,
    TokenVariableOption,
    WorkspaceOption,
)
from pipelines.cli.output import console, print_json, progress_console


@app.command()
def observe(
    flink: Annotated[
        str,
        typer.Option(
            metavar="URL|CLUSTER",
            help="Flink that runs the job: its REST address, connection:NAME, or a cluster (file) with one.",
        ),
    ],
    job: Annotated[
        str | None,
        typer.Option(
            metavar="ID|NAME",
            help="Flink's id or name of the job; default: the only one that runs.",
            show_default=False,
        ),
    ] = None,
    duration: Annotated[
        str, typer.Option("--for", metavar="TIME", help=f"How long to observe: 90s, 3m, 1h; at least {LEAST_S:g} s.")
    ] = "3m",
    write_job: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the job as a job file (YAML), to plan it with.", show_default=False),
    ] = None,
    prometheus: PrometheusOption = None,
    prometheus_token_variable: PrometheusTokenOption = None,
    kafka: KafkaOption = None,
    token_variable: TokenVariableOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show how a running job does, unchanged: rates, skew, lag, what bounds it, and how far it would go.

    Reads counters from Flink's REST interface, or from Prometheus. Stores samples that `sluice drift` reads in the workspace.
    """
    from flink_client.rest.client import FlinkRest
    from pipelines.measuring.flink import named_address
    from pipelines.observe.observation import checked_new, running_job_id, write_job_file
    from pipelines.observe.scraped import Scraper, observe_or_read
    from pipelines.progress import TerminalProgress
    from pipelines.store.workspace import Workspace
    from pipelines.terminal.observation_tables import observed_view

    seconds = seconds_of(duration, LEAST_S)
    if write_job is not None:
        checked_new(write_job)
    scraper = Scraper.of(prometheus, prometheus_token_variable, kafka)
    address = named_address(flink)
    place = Workspace(workspace)
    with FlinkRest(address.rest_url, token_variable=token_variable) as rest:
        id_ = running_job_id(rest, job)
        found = observe_or_read(rest, id_, seconds, place, TerminalProgress(), kafka=kafka, scraper=scraper)
    print_json(found.job) if as_json else console.print(observed_view(found.job))
    progress_console.print(f"observed: {found.uri}\nsamples:  {place.uri(found.samples_key)}", soft_wrap=True)
    if write_job is not None:
        write_job_file(found.as_job(), write_job)
        progress_console.print(f"job file: {write_job}", soft_wrap=True)
