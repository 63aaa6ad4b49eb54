"""How well the simulator predicts a real Flink, before and after calibration, on configurations it has not seen.

    python -m benchmarks.flink.calibration [--job q1,q2,q5,q8,q11] [--configurations 4] [--workspace FOLDER] [--table]

For each Nexmark job a Flink of two TaskManagers, of 8 slots and 0.2 cores each, is started on this machine. The MSTs of the
smaller configurations calibrate the simulator; the two largest ones are held out. A job takes 8 to 12 minutes; measurements
are stored, and `--table` prints the stored ones without measuring.
"""

import argparse
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from models.capacity.calibration import median_absolute
from models.cluster import Cluster
from pipelines.calibration.calibrate import calibrate, calibration_id, tasks_in_words
from pipelines.calibration.request import Calibration, CalibrationRequest, Role
from pipelines.inputs.catalogue import load_job
from pipelines.inputs.programs import job_program
from pipelines.progress import TerminalProgress
from pipelines.store.workspace import Workspace
from testbeds.flink.testbed import FlinkTestbed

CLUSTER = Cluster.model_validate(
    {
        "name": "flink-pair",
        "description": "Two TaskManagers on one machine, each limited to its cores by a quota.",
        "count": 2,
        "slots": 8,
        "cores": 0.2,
        "memory_mb": 1024,
    }
)
QUERIES = ("q1", "q2", "q5", "q8", "q11")
WORKSPACE = Path(".sluice/benchmarks/flink-calibration")


def calibrated(query: str, configurations: int, workspace: Workspace, only_kept: bool) -> Calibration | None:
    """The calibration of a query, measured as far as it is not stored; None if it may not be measured."""
    name = f"nexmark-{query}"
    job = load_job(name)
    request = CalibrationRequest(memory_mb=1024.0, configurations=configurations)
    found = job_program(name)
    assert found is not None
    with FlinkTestbed(CLUSTER, [1024.0], program=found.program) as testbed:
        key = f"calibrations/{name}/{calibration_id(job, testbed, request)}/calibration.json"
        if only_kept and not workspace.exists(key):
            return None
        return calibrate(job, testbed, request, workspace, TerminalProgress())


def table_of(results: dict[str, Calibration]) -> Table:
    table = Table(
        *("job", "role", "tasks", "measured MST", "uncalibrated", "error", "calibrated", "error"),
        title="MST on a real Flink and on the simulator, records/s",
    )
    for query, result in results.items():
        for i, one in enumerate(result.comparisons):
            table.add_row(
                *(query if i == 0 else "", one.role, tasks_in_words(one.parallelism), f"{one.measured:,.0f}"),
                *(f"{one.uncalibrated:,.0f}", f"{one.uncalibrated_error:+.0%}"),
                *(f"{one.calibrated:,.0f}", f"{one.calibrated_error:+.0%}"),
            )
    return table


def summary_of(results: dict[str, Calibration]) -> Table:
    table = Table(
        *("job", "uncalibrated", "calibrated", "cores for tasks", "common factor", "measured for"),
        title="held out: median absolute relative error",
    )
    for query, result in results.items():
        table.add_row(
            *(query, f"{result.uncalibrated_error:.0%}", f"{result.calibrated_error:.0%}"),
            *(f"{result.cluster.workers[0].cores or 0:.3f}", f"{result.common_factor:.2f}"),
            f"{result.measured_s:.0f} s",
        )
    unseen = [c for r in results.values() for c in r.comparisons if c.role is Role.HELD_OUT]
    before = median_absolute([c.uncalibrated_error for c in unseen])
    after = median_absolute([c.calibrated_error for c in unseen])
    table.add_row("all", f"{before:.0%}", f"{after:.0%}", *[""] * 3)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--job", default=",".join(QUERIES), help="queries, separated by commas")
    parser.add_argument(
        "--configurations", type=int, default=4, help="configurations of each job; two of them are held out"
    )
    parser.add_argument("--workspace", default=str(WORKSPACE), help="where measurements are stored")
    parser.add_argument("--table", action="store_true", help="measure nothing")
    asked = parser.parse_args()
    console, begin = Console(width=150), time.monotonic()
    workspace = Workspace(asked.workspace)
    found = {query: calibrated(query, asked.configurations, workspace, asked.table) for query in asked.job.split(",")}
    results = {query: result for query, result in found.items() if result is not None}
    if not results:
        parser.error("nothing was measured yet; leave out --table")
    console.print(table_of(results), summary_of(results), sep="\n")
    console.print(f"{time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
