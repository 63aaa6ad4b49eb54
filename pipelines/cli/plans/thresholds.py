"""`sluice thresholds`: tune placement thresholds ahead of rate changes."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from pipelines.cli import app
from pipelines.cli.output import JsonOption, WorkspaceOption, console, print_json, progress_console
from pipelines.inputs.files import validate_as
from pipelines.progress import TerminalProgress
from pipelines.store.workspace import Workspace
from pipelines.terminal.tables import table

if TYPE_CHECKING:
    from pipelines.planning.threshold_table import ThresholdTable


@app.command("thresholds")
def thresholds_command(
    job: Annotated[str, typer.Argument(metavar="JOB", help="Job that has a plan.")],
    rate: Annotated[float | None, typer.Option(help="Central rate, records/s; default: the plan's target.")] = None,
    lowest: Annotated[float, typer.Option(help="Lowest rate, as a factor on the central rate.")] = 0.5,
    highest: Annotated[float, typer.Option(help="Highest rate, as a factor on the central rate.")] = 2.0,
    step: Annotated[float, typer.Option(help="Step between rates, as a factor on the central rate.")] = 0.1,
    time_limit: Annotated[
        float, typer.Option("--time-limit", metavar="S", help="Time limit of each tuning, seconds.")
    ] = 60.0,
    seed: Annotated[int, typer.Option(help="Seed for ties in the search.")] = 0,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tune placement thresholds ahead of rate changes.

    Covers the rates around a job's plan, in parallel on Spark (CAPSys section 5.2).

    A replan that needs one of these scalings takes its placement from the table. Rows that exist are not tuned again.
    """
    # The stages take seconds to import, which other commands do not need.
    from pipelines.inputs.catalogue import job_name
    from pipelines.planning.threshold_table import ThresholdRequest, make_table

    fields = {
        "rate": rate,
        "lowest": lowest,
        "highest": highest,
        "step": step,
        "time_limit_s": time_limit,
        "seed": seed,
    }
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
        rows.add_row(f"{row.rate:,.0f}", str(row.total_slots), row.status, *costs, f"{row.seconds:.3f}")
    for out in made.unreachable:
        rows.add_row(f"{out.rate:,.0f}", "", "out of reach", "", "", "", "")
    return rows
