"""`sluice drift`: whether records still cost in production what was measured."""

from typing import Annotated

import typer
from rich.console import Group
from rich.text import Text

from models.wording import amount
from pipelines.cli import app
from pipelines.cli.options.standard import JsonOption, WorkspaceOption
from pipelines.cli.output import console, print_json, progress_console
from pipelines.drift.detect import detect_drift
from pipelines.drift.record import DriftReport
from pipelines.drift.reports import drift_key
from pipelines.progress import TerminalProgress
from pipelines.store.workspace import Workspace
from pipelines.terminal.tables import table


@app.command()
def drift(
    job: Annotated[str, typer.Argument(metavar="JOB", help="Name of a job that has a plan.")],
    samples: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Parquet file or folder of production samples; default: production/JOB in the workspace.",
            show_default=False,
        ),
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare production samples with the measurements of the plan. The plan is the job's current one."""
    place = Workspace(workspace)
    report = detect_drift(place, job, samples, TerminalProgress())
    if as_json:
        print_json(report)
        return
    console.print(_view(report))
    progress_console.print(f"report: {place.uri(drift_key(job, report.version))}", soft_wrap=True)


def _view(report: DriftReport) -> Group:
    """The quantities that drifted, and the MST; `--json` prints every comparison."""
    rows = table(
        "operator", "quantity", "measured", "from", "to", "production", "change", wrap=("operator", "quantity")
    )
    for one in report.comparisons:
        if one.drifted or one.operator is None:
            numbers = (f"{value:.4g}" for value in (one.expected, one.low, one.high, one.production))
            row = (one.operator or "(job)", one.quantity, *numbers, f"{one.change:+.0%}")
            rows.add_row(*row, style="bold" if one.drifted else None)
    verdict = "drift" if report.drifted else "no drift"
    return Group(
        Text(f"{report.job}: {verdict}, at {amount(report.source_rate)} records/s", style="bold"),
        rows,
        Text(report.reason),
        Text(f"beside plan {report.job}@{report.plan_version}, measured by run {report.run}"),
    )
