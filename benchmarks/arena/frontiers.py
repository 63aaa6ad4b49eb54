"""All scaling policies by their frontiers: what each costs where it holds the same objective.

    python -m benchmarks.arena.frontiers --workspace FOLDER [--seed 9001] [--seeds 3] [--values 4] [--processes 2]
        [--jobs nexmark-q1,...] [--workloads cosine,...] [--modes in-place,savepoint] [--policies ds2,...]
        [--set "flink.metrics.window=1 min"] [--plan]

Nexmark q1, q2, q3, q5 and q11 under increasing, decreasing, cosine, random and steps, in both rescale modes, as `sluice
evaluate --sweep` replays them: 140 minutes on 70 slots, of which the first 30 do not count, from a well provisioned start.
Each policy is replayed with `--values` of the values of its knob, the least and the most among them. By default that is
5 jobs x 5 workloads x 2 modes x 8 policies x 4 values x 3 seeds = 4,800 replays; five seeds are 8,000. `--plan` says how many
are stored and how many are missing, and replays nothing.

Replays are stored in the workspace one by one, so a killed run resumes, and more seeds or values reuse what is there. Workloads
may also be CSV files of rates. One cell of the tables is a job under a workload in a rescale mode:

| column | meaning |
|---|---|
| a policy | its task-hours where it holds the attainment; `-` if it never does, `<=` if its cheapest setting does |
| holds | cells in which the policy attains it |
| gap | of the cheapest policy's cost to the lower bound |
| cheapest | cells in which its cost is the lowest |
| within 10 % | cells in which it costs at most 10 % more than the cheapest |
| hypervolume | mean over the cells, 0-1 |
| sluice costs | by how much `--ours` costs more than this policy where both attain it; 90 % interval over the seeds |

The settings of `sluice` were not chosen on seeds from 9001 on.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from statistics import fmean
from typing import Final

from rich.console import Console
from rich.table import Table

from models.scaling.policies import POLICIES
from pipelines.arena.evaluation import cells
from pipelines.arena.grid import cell_key, run_cells
from pipelines.arena.ranking import Ranking, rank
from pipelines.arena.replays.cell import Cell
from pipelines.arena.replays.workloads import Pattern
from pipelines.arena.request import EvaluationRequest
from pipelines.arena.scoring.runs import cost_difference
from pipelines.arena.scoring.verdict import verdict
from pipelines.cli.options.settings import settings_by_policy
from pipelines.progress import TerminalProgress
from pipelines.store.workspace import Workspace

JOBS: Final = ("nexmark-q1", "nexmark-q2", "nexmark-q3", "nexmark-q5", "nexmark-q11")
SEED: Final = 9001
CLOSE: Final = 1.1
"""A policy that costs at most this much of the cheapest is close to it."""

CONSOLE = Console(width=None if sys.stdout.isatty() else 190)


def thinned(values: Sequence[float], count: int) -> set[float]:
    """`count` of the values, evenly spaced, with the first and the last."""
    count = min(count, len(values))
    return {values[round(i * (len(values) - 1) / max(count - 1, 1))] for i in range(count)}


def wanted(request: EvaluationRequest, values: int) -> list[Cell]:
    """The cells of the request with the thinned values of each knob."""
    kept = {policy: thinned(POLICIES[policy].knob.values, values) for policy in request.policies}
    return [c for c in cells(request) if POLICIES[c.policy].knob_value(c.settings) in kept[c.policy]]


def costs(rankings: Sequence[Ranking], policies: Sequence[str]) -> Table:
    group = rankings[0].group
    table = Table(
        title=f"{rankings[0].rescale_mode}: task-hours at {100 * group.attainment:g} % of records within "
        f"{group.objective_s} s"
    )
    table.add_column("job, workload")
    for name in (*policies, "gap"):
        table.add_column(name, justify="right")
    for ranking in rankings:
        table.add_row(
            f"{ranking.job}, {ranking.workload}", *(_cost(ranking, policy) for policy in policies), _gap(ranking)
        )
    return table


def _cost(ranking: Ranking, policy: str) -> str:
    attained = ranking.group.score(policy).attained
    if attained is None:
        return "-"
    best = ranking.group.policies[0].policy == policy
    return f"{'' if attained.interpolated else '<= '}{attained.task_hours:,.1f}{' *' if best else ''}"


def _gap(ranking: Ranking) -> str:
    gap = ranking.gap(ranking.group.policies[0])
    return "-" if gap is None else f"{gap:.0%}"


def summary(rankings: Sequence[Ranking], policies: Sequence[str], ours: str) -> Table:
    groups = [ranking.group for ranking in rankings]
    table = Table(title=f"{rankings[0].rescale_mode}: {len(groups)} cells")
    table.add_column("policy")
    for name in ("holds", "cheapest", "within 10 %", "hypervolume", "first by it", f"{ours} costs"):
        table.add_column(name, justify="right")
    for policy in policies:
        scores = [group.score(policy) for group in groups]
        ratios = [
            score.attained.task_hours / group.policies[0].attained.task_hours
            for group, score in zip(groups, scores, strict=True)
            if score.attained is not None and group.policies[0].attained is not None
        ]
        table.add_row(
            policy,
            f"{len(ratios)}",
            f"{sum(ratio <= 1 for ratio in ratios)}",
            f"{sum(ratio <= CLOSE for ratio in ratios)}",
            f"{fmean(score.hypervolume for score in scores):.3f}",
            f"{sum(score.hypervolume_rank == 1 for score in scores)}",
            "" if policy == ours or ours not in policies else _difference(rankings, ours, policy),
        )
    return table


def _difference(rankings: Sequence[Ranking], ours: str, other: str) -> str:
    runs = [[ranking.group.score(policy).runs for ranking in rankings] for policy in (ours, other)]
    found = cost_difference(runs[0], runs[1], rankings[0].group.attainment)
    if found is None:
        return "-"
    if found.interval is None:
        return f"{found.share:+.1%}"
    low, high = found.interval
    return f"{found.share:+.1%} ({low:+.1%} to {high:+.1%})"


def main() -> None:
    parser = argparse.ArgumentParser(description="All scaling policies by their frontiers.")
    parser.add_argument("--workspace", required=True, help="where replays are stored")
    parser.add_argument("--jobs", default=",".join(JOBS))
    parser.add_argument("--workloads", default=",".join(Pattern))
    parser.add_argument("--modes", default="in-place,savepoint")
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--set", action="append", default=[], metavar="POLICY.SETTING=VALUE", help="repeatable")
    parser.add_argument("--ours", default="sluice", help="the policy that the others are compared with")
    parser.add_argument("--values", type=int, default=4, help="of each knob")
    parser.add_argument("--seed", type=int, default=SEED, help="the first")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--attainment", type=float, default=0.99)
    parser.add_argument("--processes", type=int, help="default: one per core")
    parser.add_argument("--plan", action="store_true", help="say how many replays are missing, and end")
    given = parser.parse_args()
    begin = time.monotonic()
    request = EvaluationRequest(
        jobs=given.jobs.split(","),
        workloads=given.workloads.split(","),
        policies=given.policies.split(","),
        rescale_modes=given.modes.split(","),
        seed=given.seed,
        seeds=given.seeds,
        attainment=given.attainment,
        settings=settings_by_policy(given.set),
        sweep=True,
    )
    workspace, grid = Workspace(given.workspace), wanted(request, given.values)
    stored = sum(workspace.exists(f"{cell_key(cell)}/result.json") for cell in grid)
    CONSOLE.print(f"{len(grid):,} replays, of which {stored:,} are stored")
    if given.plan:
        return
    rankings = rank(run_cells(grid, workspace, TerminalProgress(), given.processes), request)
    for mode in request.rescale_modes:
        own = [ranking for ranking in rankings if ranking.rescale_mode == mode]
        CONSOLE.print(costs(own, request.policies))
        CONSOLE.print(summary(own, request.policies, given.ours))
        CONSOLE.print(verdict([ranking.group for ranking in own]).sentence, soft_wrap=True)
    elapsed_s = time.monotonic() - begin
    CONSOLE.print(f"{elapsed_s:,.0f} s for {len(grid) - stored:,} replays; {given.seeds} seeds from {given.seed} on")


if __name__ == "__main__":
    main()
