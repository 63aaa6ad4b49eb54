"""Findings of the evaluation of autoscalers (sections 6.2 to 6.5), and whether our replays agree with them.

    python -m benchmarks.arena.evaluation.findings [--seed 1066] [--processes 2] [--workspace URL]

Five queries (Map is Nexmark q1, Filter q2, IJ q3, SA q5, SWA q11) under five workloads of 140 minutes and four policies:
one hundred replays on the simulated cluster of 70 slots, with the settings of section 6.1. The default seed has the
published workloads. Replays are stored in the workspace, so that a second call is fast.

The paper states few figures in words, and its plots are not digitised. So each finding is a statement that replays can
confirm or not (`checks.py`, with limits of our own for words such as "high"); if ours differ, the table says
why, as far as that is known.
"""

import argparse
import sys
import tempfile
import time
from contextlib import ExitStack

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks.arena.evaluation.checks import Verdict
from benchmarks.arena.evaluation.runs import JOBS, POLICIES, Replay, Replays, replays
from benchmarks.arena.evaluation.statements import FINDINGS, Finding
from pipelines.arena.replays.cell import Convergence
from pipelines.arena.replays.workloads import Pattern
from pipelines.arena.request import SEED
from pipelines.store.workspace import Workspace

CONSOLE = Console(width=None if sys.stdout.isatty() else 180)


def outcomes(found: Replays) -> Table:
    """p50 and p95 latency, task-hours and rescales of every replay."""
    table = Table(title="p50 / p95 latency in s, task-hours, rescales", show_lines=True)
    table.add_column("query, workload")
    for policy in POLICIES:
        table.add_column(policy, justify="right")
    for job in JOBS:
        for kind in Pattern:
            runs = [found.one(job, kind.value, policy) for policy in POLICIES]
            table.add_row(f"{job}, {kind.value}", *(_outcome(run, runs) for run in runs))
    return table


def _outcome(run: Replay, runs: list[Replay]) -> str:
    """The lowest latency and the fewest task-hours of a row are bold."""
    latency = f"{run.p50_s:,.0f} / {run.p95_s:,.0f}"
    tasks = f"{run.outcome.task_hours:,.1f}"
    if run.p95_s == min(r.p95_s for r in runs):
        latency = f"[bold]{latency}[/bold]"
    if run.outcome.task_hours == min(r.outcome.task_hours for r in runs):
        tasks = f"[bold]{tasks}[/bold]"
    return f"{latency}  {tasks}  {len(run.steps)}"


def convergence(found: Replays) -> Table:
    """Section 6.4: minutes and rescales after each change of the steps workload."""
    table = Table(title="Steps: minutes to converge (rescales), for 0 to medium, to high, back to medium; - is never")
    for column in ("query", *POLICIES):
        table.add_column(column)
    for job in JOBS:
        runs = (found.one(job, Pattern.STEPS.value, policy) for policy in POLICIES)
        table.add_row(job, *(", ".join(map(_round, run.rounds)) for run in runs))
    return table


def _round(c: Convergence) -> str:
    return f"{'-' if c.seconds is None else f'{c.seconds / 60:.1f}'} ({c.steps})"


def told_side_by_side(verdicts: list[tuple[Finding, Verdict]]) -> Table:
    agree = sum(agrees for _, (_, agrees) in verdicts)
    table = Table(title=f"Findings: {agree} of {len(verdicts)} confirmed", show_lines=True)
    for column, ratio in (("section", None), ("the paper", 4), ("measured", 5), ("", None), ("why ours differ", 4)):
        table.add_column(column, ratio=ratio)
    for finding, (measured, agrees) in verdicts:
        word = "[green]agrees[/green]" if agrees else "[yellow]differs[/yellow]"
        table.add_row(
            finding.section, escape(finding.paper), escape(measured), word, "" if agrees else escape(finding.why_not)
        )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--processes", type=int, default=None, help="default: one per core")
    parser.add_argument("--workspace", default=None, help="where results are stored; default: a temporary folder")
    args = parser.parse_args()
    began = time.perf_counter()
    with ExitStack() as stack:
        url = args.workspace or stack.enter_context(tempfile.TemporaryDirectory(prefix="sluice-findings-"))
        found = replays(Workspace(url), args.seed, args.processes)
    verdicts = [(finding, finding.check(found)) for finding in FINDINGS]
    for table in (outcomes(found), convergence(found), told_side_by_side(verdicts)):
        CONSOLE.print(table)
    CONSOLE.print(f"{len(list(found))} replays of 140 minutes in {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
