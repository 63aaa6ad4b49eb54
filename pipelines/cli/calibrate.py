"""`sluice calibrate`: fit the simulator to a real cluster."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from models.errors import InvalidInput
from models.wording import amount
from pipelines.cli import app
from pipelines.cli.options.standard import JsonOption, WorkspaceOption
from pipelines.cli.output import console, print_json, progress_console
from pipelines.inputs.parsing.files import validate_as
from pipelines.progress import TerminalProgress
from pipelines.store.workspace import Workspace
from pipelines.terminal.tables import table

if TYPE_CHECKING:
    from pipelines.calibration.request import Calibration

MICRO = 1e6


@app.command("calibrate")
def calibrate_command(
    job: Annotated[
        str, typer.Argument(metavar="JOB", help="Job of the catalogue, or path of a job file or, on Flink, a SQL file.")
    ],
    testbed: Annotated[str, typer.Option(help="Testbed to measure on: flink or simulator.")] = "flink",
    cluster: Annotated[
        str | None,
        typer.Option(help="Cluster of the catalogue, or a file; flink-local on Flink.", show_default=False),
    ] = None,
    flink: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Flink to measure on: its REST address, or a cluster that has one.", show_default=False
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Write the job file here, and the files of its cluster and machine beside it.", show_default=False
        ),
    ] = None,
    memory: Annotated[
        float | None, typer.Option(metavar="MB", help="Memory of one TaskManager, MiB; default: the testbed's.")
    ] = None,
    configurations: Annotated[int, typer.Option(help="Number of configurations to measure.")] = 4,
    held_out: Annotated[int, typer.Option(help="Number of the largest ones to hold out for the error.")] = 2,
    most_tasks: Annotated[int, typer.Option(help="Largest number of tasks of an operator.")] = 4,
    seed: Annotated[int, typer.Option(help="Seed of the testbed.")] = 0,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fit the simulator to a real cluster.

    Measures a job on the testbed, fits the simulator, and reports its error on runs held out from the fit.

    Each measurement is stored as it is made; the same command resumes where it was stopped.
    """
    # The testbeds take seconds to import, which other commands do not need.
    from pipelines.calibration.calibrate import calibrate
    from pipelines.calibration.output import checked_output, write_files
    from pipelines.calibration.request import CalibrationRequest
    from pipelines.calibration.testbed import opened, subject

    if testbed not in ("flink", "simulator"):
        raise InvalidInput(f"--testbed must be flink or simulator, but got {testbed!r}")
    if output is not None:
        checked_output(output)
    place, progress = Workspace(workspace), TerminalProgress()
    run = subject(job, "flink" if testbed == "flink" else "simulator", cluster, flink, place, progress)
    with opened(run, memory) as measured_on:
        fields = {
            "memory_mb": memory or measured_on.limits.memory_levels_mb[-1],
            "configurations": configurations,
            "held_out": held_out,
            "most_tasks": most_tasks,
            "seed": seed,
        }
        request = validate_as(fields, CalibrationRequest, origin="the request")
        calibration = calibrate(run.job, measured_on, request, place, progress)
    if as_json:
        print_json(calibration)
    else:
        _show(calibration)
    for written in write_files(calibration, output) if output is not None else ():
        progress_console.print(f"written: {written}", soft_wrap=True)


def _show(calibration: "Calibration") -> None:
    from pipelines.calibration.calibrate import tasks_in_words

    costs = table("operator", "CPU µs", "out per in", "bytes out", "state B", wrap=("operator",))
    for name in calibration.job.order:
        operator = calibration.job.operator(name)
        cost = operator.cost
        costs.add_row(
            *(name, f"{cost.cpu_s * MICRO:.4g}", f"{operator.selectivity:.4g}", f"{cost.bytes_out:.4g}"),
            f"{cost.state_read_bytes + cost.state_write_bytes:.4g}",
        )
    runs = table("", "tasks", "measured MST", "uncalibrated", "error", "calibrated", "error", wrap=("tasks",))
    for one in calibration.comparisons:
        runs.add_row(
            *(one.role, tasks_in_words(one.parallelism), amount(one.measured)),
            *(amount(one.uncalibrated), f"{one.uncalibrated_error:+.0%}"),
            *(amount(one.calibrated), f"{one.calibrated_error:+.0%}"),
        )
    cores = calibration.cluster.workers[0].cores
    console.print(costs, runs, sep="\n")
    console.print(
        f"cores that tasks get from a worker: {'not limited' if cores is None else f'{cores:.3g}'}; unit costs multiplied by "
        f"{calibration.common_factor:.3g} to match the MSTs of the calibration",
        f"held out, median absolute relative error: {calibration.calibrated_error:.0%} "
        f"(uncalibrated {calibration.uncalibrated_error:.0%})",
        sep="\n",
        soft_wrap=True,
    )
