"""Placement of shared slots under CPU quotas of the operating system, on a real Flink and on the simulator.

    python -m benchmarks.flink.shared_slots [--shapes inference,branches] [--releases 2.3,1.20] [--policies caps,...]
        [--runs 5] [--autopilot] [--workspace FOLDER] [--table]

A control group gives each of 4 TaskManagers 0.35 cores of this machine. The program (`burning_job/`) knows nothing of Sluice:
its vertices hash records, so they burn CPU, some much and some little; its sources emit as much as the job takes. All
vertices are in one slot sharing group.

1. *profile*: each vertex runs with one task on a TaskManager of its own, and is observed as by `sluice observe`. That gives
   the CPU time and bytes of a record. What a TaskManager uses without a job is measured apart.
2. *caps* places slots by these costs, and the placement hook applies them. *default*, *evenly* (2.3:
   `taskmanager.load-balance.mode: SLOTS`, 1.20: `cluster.evenly-spread-out-slots`) and *tasks*
   (`taskmanager.load-balance.mode: TASKS`, since Flink 2.3) are Flink's own, on a Flink without the hook; where their tasks
   are is read from Flink.
3. A new cluster runs all vertices on all slots for 15 s, with light records, so that every JVM compiles the program. Each of
   the five runs of a policy submits the job, sets the quotas, lets it settle for 32 s, and measures for 15 s what the sources
   emit. The first run on a cluster is not counted. A run in which no TaskManager used 95 % of its quota is repeated, since
   others used the machine then. The simulator runs the same placement with the costs of 1, on the quotas less what a
   TaskManager uses without a job.

With `--autopilot` the job is started with half of its tasks, and an autopilot rescales it in place to all of them: where the
hook is, it places them by what it has seen of them until then, and not by the profile.

All the time a process of low priority (`nice` 19) hashes on every processor: processors that share a core slow one another
down, by half where this was tried, so that the cost of a record would depend on what else runs.

The rankings are compared over different plans, by the median of the runs of each. Beside Kendall's tau it prints one that
takes plans as equal where they differ by less than the repeatability of medians of their runs (`tau_with_ties`).

A policy takes about five minutes. Measurements are stored, so that it can be stopped and started again; `--table` adds
what is missing, simulates, and prints tables.
"""

import argparse
import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table
from scipy.stats import kendalltau

from benchmarks.flink.burning_job.profiling import Profiled, profiled
from benchmarks.flink.burning_job.runs import POLICIES, Case, Measurement
from benchmarks.flink.burning_job.shapes import SHAPES
from benchmarks.placement.runs import spread_of
from models.placement.shared.results import SharedPolicy
from models.plan.parts import Placement
from pipelines.store.digests import digest
from pipelines.store.workspace import Workspace
from testbeds.flink.local.distribution import release_of

WORKSPACE: Final = Path(".sluice/benchmarks/flink-shared-slots")
REPEATABLE: Final = 1.96
"""Two results of equal conditions differ by more than this many standard deviations of their difference in 5 % of all cases
(ISO 5725-6, repeatability limit)."""


def in_words(placement: Placement) -> str:
    """Each worker's tasks by their first letters; equal workers are interchangeable, so they are sorted."""
    return " ".join(sorted("".join(f"{n}{name[0]}" for name, n in tasks.items()) for tasks in placement.values()))


def tables(case: Case, found: Sequence[Measurement]) -> list[Table | str]:
    """Each run measured and simulated, the policies, and whether the rankings agree."""
    plans = {in_words(one.placement): one.placement for one in found}
    simulated = {plan: case.simulated(placement) for plan, placement in plans.items()}
    runs = Table(
        *("policy", "run", "tasks of each TaskManager", "measured", "simulated", "error", "cores used", "stolen"),
        title=f"{case.shape.name} on Flink {case.release.version}: records/s; all quotas as one would take {case.most:,.0f}",
    )
    for one in found:
        said = simulated[in_words(one.placement)]
        used = " ".join(f"{cores:.2f}" for cores in one.cpu.values())
        runs.add_row(
            *(
                one.policy,
                f"{[m for m in found if m.policy == one.policy].index(one)}",
                in_words(one.placement),
                f"{one.rate:,.0f}",
                f"{said:,.0f}",
            ),
            *(f"{said / one.rate - 1:+.0%}", used, f"{one.stolen:.1%}"),
        )
    policies = Table("policy", "runs", "measured: median (least, most)", "simulated", "of the best")
    best = max(_median(found, policy) for policy in {one.policy for one in found})
    for policy in POLICIES:
        own = [one for one in found if one.policy == policy]
        if own:
            measured = spread_of([one.rate for one in own], ",.0f")
            expected = spread_of([simulated[in_words(one.placement)] for one in own], ",.0f")
            policies.add_row(policy, f"{len(own)}", measured, expected, f"{_median(found, policy) / best:.0%}")
    return [
        runs,
        policies,
        agreement(simulated, {p: [m.rate for m in found if in_words(m.placement) == p] for p in plans}),
    ]


def agreement(simulated: Mapping[str, float], measured: Mapping[str, Sequence[float]]) -> str:
    """Whether the simulator ranks plans as the medians of their runs do."""
    medians = {plan: statistics.median(rates) for plan, rates in measured.items()}
    tau = kendalltau([simulated[plan] for plan in medians], list(medians.values())).statistic
    said = f"Kendall's tau over {len(medians)} different plans: {tau:.2f}"
    spread = repeatability(list(measured.values()))
    if spread is not None:
        numbers = {plan: len(rates) for plan, rates in measured.items()}
        tied = tau_with_ties(simulated, medians, numbers, spread)
        said += f"; with ties within the repeatability ({spread:.1%} between runs of one plan): {tied:.2f}"
    return said


def repeatability(runs: Sequence[Sequence[float]]) -> float | None:
    """Standard deviation of the logarithm of rates between runs of one plan, pooled over plans; None without repetition."""
    free = sum(len(rates) - 1 for rates in runs)
    logs = [[math.log(rate) for rate in rates] for rates in runs]
    return math.sqrt(sum((x - statistics.fmean(own)) ** 2 for own in logs for x in own) / free) if free else None


def tau_with_ties(
    first: Mapping[str, float], second: Mapping[str, float], runs: Mapping[str, int], spread: float
) -> float:
    """Kendall's tau-b in which two plans are equal where they differ by less than medians of their runs would by chance.

    Being equal is not transitive, so it is Daniels' general coefficient of signs that are 0 for such pairs.

    Args:
        runs: number of runs of each plan.
        spread: standard deviation of the logarithm of rates between runs of one plan.
    """

    def sign(values: Mapping[str, float], one: str, other: str) -> int:
        by_chance = REPEATABLE * spread * math.sqrt(1 / runs[one] + 1 / runs[other])
        difference = math.log(values[one] / values[other])
        return 0 if abs(difference) < by_chance else int(math.copysign(1, difference))

    pairs = [(sign(first, a, b), sign(second, a, b)) for a, b in itertools.combinations(runs, 2)]
    untied = sum(x != 0 for x, _ in pairs) * sum(y != 0 for _, y in pairs)
    return sum(x * y for x, y in pairs) / math.sqrt(untied) if untied else math.nan


def _median(found: Sequence[Measurement], policy: SharedPolicy) -> float:
    return statistics.median(one.rate for one in found if one.policy == policy)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", default=",".join(SHAPES))
    parser.add_argument("--releases", default="2.3,1.20")
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--runs", type=int, default=5, help="of each policy")
    parser.add_argument("--autopilot", action="store_true", help="let one take the running job to its tasks")
    parser.add_argument("--workspace", type=Path, default=WORKSPACE, help="where measurements are stored")
    parser.add_argument("--table", action="store_true", help="simulate what was measured, and print tables")
    asked = parser.parse_args()
    workspace, console = Workspace(asked.workspace), Console(width=150)
    for line in asked.releases.split(","):
        for name in asked.shapes.split(","):
            shape, release = SHAPES[name], release_of(line)
            inputs = {"shape": digest(str(shape))}
            key = f"{release.line}/{name}/profile.json"
            profile = workspace.once(key, inputs, Profiled, partial(profiled, shape, release))
            case = Case(shape, release, profile, asked.autopilot)
            wanted = [p for p in asked.policies.split(",") if p != "tasks" or release.line != "1.20"]
            found = [one for policy in wanted for one in case.measure(policy, asked.runs, workspace)]
            if asked.table:
                console.print(*tables(case, found), sep="\n")


if __name__ == "__main__":
    main()
