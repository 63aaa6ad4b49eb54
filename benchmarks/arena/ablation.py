"""What each element of the policy `sluice` is worth: replays with one switched off at a time.

    python -m benchmarks.arena.ablation --workspace FOLDER [--seed 7101] [--seeds 1] [--processes 2]
        [--jobs nexmark-q1,...] [--workloads cosine,...] [--mode in-place]

A switched-off element changes task-hours and late records together, so both are shown. Replays are stored in the workspace,
so a killed run resumes.
"""

import argparse
import sys
from collections import defaultdict
from statistics import fmean
from typing import Final, get_args

from rich.console import Console
from rich.table import Table

from models.scaling.sluice.settings import Element
from pipelines.arena.evaluation import cells
from pipelines.arena.grid import Finished, run_cells
from pipelines.arena.request import OBJECTIVE_S, EvaluationRequest
from pipelines.progress import TerminalProgress
from pipelines.store.workspace import Workspace

NOTHING: Final = "nothing"
CONSOLE = Console(width=None if sys.stdout.isatty() else 120)


def requests(given: argparse.Namespace) -> dict[str, EvaluationRequest]:
    """One for each element, and one for all of them together being on."""
    return {
        without: EvaluationRequest(
            jobs=tuple(given.jobs.split(",")),
            workloads=tuple(given.workloads.split(",")),
            policies=("sluice",),
            rescale_modes=(given.mode,),
            settings={} if without == NOTHING else {"sluice": {"without": [without]}},
            seed=given.seed,
            seeds=given.seeds,
        )
        for without in (NOTHING, *get_args(Element))
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workspace", required=True)
    parser.add_argument("--seed", type=int, default=7101)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--jobs", default="nexmark-q1,nexmark-q2,nexmark-q3,nexmark-q5,nexmark-q11")
    parser.add_argument("--workloads", default="increasing,decreasing,cosine,random,steps")
    parser.add_argument("--mode", default="in-place", choices=("in-place", "savepoint"))
    given = parser.parse_args()
    workspace = Workspace(given.workspace)
    found: dict[str, list[Finished]] = defaultdict(list)
    wanted = {without: cells(request) for without, request in requests(given).items()}
    every = [cell for group in wanted.values() for cell in group]
    finished = iter(run_cells(every, workspace, TerminalProgress(), given.processes))
    for without, asked in wanted.items():
        found[without] = [next(finished) for _ in asked]
    objective_s = OBJECTIVE_S[given.mode]
    table = Table(
        "without", "task-hours", "change", "late", "cells that hold 99 %", "rescales",
        title=f"sluice {given.mode}, {len(wanted[NOTHING])} replays each, records within {objective_s:g} s",
    )  # fmt: skip
    base = fmean(one.outcome.task_hours for one in found[NOTHING])
    for without, group in found.items():
        hours = fmean(one.outcome.task_hours for one in group)
        shares = [getattr(one.outcome, f"within_{objective_s:g}_s") or 0.0 for one in group]
        table.add_row(
            without,
            f"{hours:.1f}",
            "" if without == NOTHING else f"{hours / base - 1:+.1%}",
            f"{1 - fmean(shares):.2%}",
            f"{sum(share >= 0.99 for share in shares)} of {len(shares)}",
            f"{fmean(one.outcome.rescales for one in group):.0f}",
        )
    CONSOLE.print(table)


if __name__ == "__main__":
    main()
