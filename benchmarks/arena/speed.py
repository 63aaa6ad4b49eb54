"""How long one replay of a long workload takes: one process, one core.

    python -m benchmarks.arena.speed RATES.csv[:COLUMN] [--job nexmark-q11] [--tasks 24] [--policies ds2,flink,sluice]

The workload's peak is scaled to what so many tasks sustain by the job's nominal costs, without the fifth of headroom. The
first replay of a process loads compiled code; a short one is made before those that count. Times are CPU seconds of this
process, since other work on the machine does not count.
"""

import argparse
import time

from rich.console import Console
from rich.table import Table

from models.scaling.provision import HEADROOM, sustainable_rate
from pipelines.arena.evaluation import cells
from pipelines.arena.replays.cell import Cell
from pipelines.arena.replays.compute import run_cell
from pipelines.arena.request import EvaluationRequest
from pipelines.inputs.catalogue import load_job


def timed(cell: Cell) -> list[str]:
    begin = time.process_time()
    outcome = run_cell(cell).outcome
    seconds = time.process_time() - begin
    hours = cell.workload.seconds / 3600
    return [
        cell.policy,
        f"{seconds:.1f}",
        f"{seconds / hours:.2f}",
        f"{outcome.task_hours / (hours - cell.burn_in_s / 3600):.1f}",
        f"{outcome.rescales}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="CPU time of one replay.")
    parser.add_argument("workload", help="CSV file of rates, FILE.csv or FILE.csv:COLUMN")
    parser.add_argument("--job", default="nexmark-q11")
    parser.add_argument("--tasks", type=int, default=24)
    parser.add_argument("--policies", default="ds2,flink,sluice")
    given = parser.parse_args()
    peak = sustainable_rate(load_job(given.job), given.tasks) / HEADROOM
    request = EvaluationRequest(
        jobs=(given.job,),
        workloads=(given.workload,),
        policies=tuple(given.policies.split(",")),
        peak_rate=peak,
    )
    table = Table(title=f"{given.job} under {given.workload}, peak {peak:,.0f} records/s")
    for heading in ("policy", "CPU s", "CPU s an hour replayed", "mean tasks", "rescales"):
        table.add_column(heading, justify="left" if heading == "policy" else "right")
    for cell in cells(request):
        short = cell.workload.first(40)
        run_cell(cell.model_copy(update={"workload": short}))
        table.add_row(*timed(cell))
    Console().print(table)


if __name__ == "__main__":
    main()
