"""Policies that act on running jobs: what they cost, and how late records are.

    python -m benchmarks.autopilot.runs --workspace FOLDER [--runs 1.20,2.3,1.20] [--jobs keyed,chained] [--traces ads,cosine]
        [--contenders sluice,flink,...] [--arena]

For each of `--runs`, a version of Flink, starts a broker and a Flink, and there a job for each combination of job, trace and
contender, in random order and all at the same time; those of one trace read the same topic, so that they are sent the same
records. A run takes 9 minutes. Runs that have ended are kept in the workspace, and not repeated.
"""

import argparse
from collections.abc import Sequence

from rich.console import Console

from benchmarks.autopilot.acting.contenders import BY_NAME
from benchmarks.autopilot.acting.jobs import KINDS
from benchmarks.autopilot.acting.report.page import write_page
from benchmarks.autopilot.acting.report.tables import arena_tables, conditions, run_tables
from benchmarks.autopilot.acting.run import RunPlan, run_once
from benchmarks.autopilot.acting.traces import TRACES
from pipelines.store.workspace import Workspace
from testbeds.flink.local.distribution import RELEASES


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workspace", default=None)
    parser.add_argument("--runs", default="1.20,2.3,1.20", help=f"versions of Flink, of {', '.join(RELEASES)}")
    parser.add_argument("--jobs", default=",".join(KINDS))
    parser.add_argument("--traces", default="ads,cosine", help=f"of {', '.join(TRACES)}")
    parser.add_argument("--contenders", default=",".join(BY_NAME))
    parser.add_argument("--arena", action="store_true", help="replay the same on the simulator, too")
    options = parser.parse_args(arguments)
    workspace, console = Workspace(options.workspace), Console(width=200)
    kinds = [KINDS[name] for name in options.jobs.split(",")]
    traces = options.traces.split(",")
    contenders = [BY_NAME[name] for name in options.contenders.split(",")]
    plans = [RunPlan(v, kinds, traces, contenders, i) for i, v in enumerate(options.runs.split(","), start=1)]
    runs = [run_once(plan, workspace) for plan in plans]
    console.print(conditions(runs), *run_tables(runs), *(arena_tables(runs) if options.arena else ()))
    for kind in kinds:
        for trace in traces:
            console.print(f"page: {write_page(plans, kind.name, trace, workspace)}")


if __name__ == "__main__":
    main()
