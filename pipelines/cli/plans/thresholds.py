"""`sluice thresholds`: tune placement thresholds ahead of rate changes."""

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from models.wording import amount
from pipelines.cli import app
from pipelines.cli.options.from_request import request_options
from pipelines.cli.options.standard import JsonOption, WorkspaceOption
from pipelines.cli.output import console, print_json, progress_console
from pipelines.inputs.parsing.files import validate_as
from pipelines.planning.threshold_request import ThresholdRequest
from pipelines.progress import TerminalProgress
from pipelines.store.workspace import Workspace
from pipelines.terminal.tables import table

if TYPE_CHECKING:
    from pipelines.planning.threshold_table import ThresholdTable

FIELDS = tuple(name for name in ThresholdRequest.model_fields if name != "schema_version")


@app.command("thresholds")
@request_options(ThresholdRequest, *FIELDS)
def thresholds_command(
    fields: dict[str, Any],
    job: Annotated[str, typer.Argument(metavar="JOB", help="Job that has a plan.")],
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tune placement thresholds ahead of rate changes.

    Covers the rates around a job's plan, in parallel on Spark (CAPSys section 5.2).

    A replan that needs one of these scalings takes its placement from the table. Rows that exist are not tuned again.
    """
    # The stages take seconds to import, which other commands do not need.
    from pipelines.inputs.catalogue import job_name
    from pipelines.planning.threshold_table import make_table

    request = validate_as(fields, ThresholdRequest, origin="the request")
    made = make_table(Workspace(workspace), job_name(job), request, TerminalProgress())
    if as_json:
        print_json(made)
        return
    console.print(_view(made))
    progress_console.print(f"table: {made.uri}", soft_wrap=True)


def _view(made: "ThresholdTable") -> Table:
    rows = table("records/s", "tasks", "status", "cpu", "io", "net", "seconds", text=("status",))
    for row in made.rows:
        least = row.thresholds
        costs = ("", "", "") if least is None else (f"{least.cpu:.5f}", f"{least.io:.5f}", f"{least.net:.5f}")
        rows.add_row(amount(row.rate), str(row.total_slots), row.status, *costs, f"{row.seconds:.3f}")
    for out in made.unreachable:
        rows.add_row(amount(out.rate), "", "out of reach", "", "", "", "")
    return rows
