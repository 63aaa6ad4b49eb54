"""The effect of placement on a real Flink, beside the simulator's prediction.

    python -m benchmarks.flink.placement [--tasks 16,13] [--seeds 6] [--workspace FOLDER] [--table]

The shape of CAPSys' Q3-inf, sources, transforms, compressors, inferences and a sink, a slot each, on 4 TaskManagers of 4
slots: 16 tasks take all slots, 13 leave some free. (If all are taken, both of Flink's policies place tasks at random.)
Operators have stated costs, and the tasks of a TaskManager share a budget of 2 cores, so that contention is realistic even
on a machine with fewer cores. Some are heavy, some light: at the target rate 16 and 13 tasks need 95 % and 79 % of all
budgets. Each plan is deployed by the placement hook and gets the target rate for 10 s, then for 20 s that count; a plan
takes some 35 s and each number of tasks eight minutes. Measurements are stored, and `--table` prints the stored ones
without measuring.
"""

import argparse
import itertools
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from scipy.stats import kendalltau

from benchmarks.placement.runs import measured, place_by, spread_of
from models.cluster import Cluster
from models.job import Job
from models.placement import Policy
from models.plan.parts import Placement
from models.schema import Format, NonNegative, PositiveInt, Ratio
from pipelines.progress import TerminalProgress
from pipelines.store.digests import digest
from pipelines.store.workspace import Workspace
from testbeds.flink.testbed import FlinkTestbed
from testbeds.protocol import Configuration, MeasuredWindow, Run, Testbed
from testbeds.repeating import measured as repeated
from testbeds.simulator import Simulator
from testbeds.simulator.settings import Physics

POLICIES: tuple[Policy, ...] = ("caps", "default", "evenly")
RATE, MEMORY_MB, WARMUP_S, OBSERVE_S = 10_000.0, 1024.0, 10.0, 20.0
CLUSTER = Cluster.model_validate({"name": "budgets", "count": 4, "slots": 4, "cores": 2, "memory_mb": MEMORY_MB})
TASKS = {
    16: {"source": 3, "transform": 5, "compress": 4, "inference": 3, "sink": 1},
    13: {"source": 2, "transform": 4, "compress": 3, "inference": 3, "sink": 1},
}
LOADS = {"source": 0.15, "transform": 0.85, "compress": 0.3, "inference": 0.55, "sink": 0.05}
"""Cores that one task needs at the target rate."""
WORKSPACE = Path(".sluice/benchmarks/flink-placement")


class Measurement(Format):
    """One plan at the target rate."""

    policy: Policy
    seed: int
    placement: dict[str, dict[str, PositiveInt]]
    throughput: NonNegative
    """Throughput, as a share of the target."""
    backpressure: Ratio


@dataclass(frozen=True)
class Example:
    """The job with these numbers of tasks."""

    tasks: Mapping[str, int]

    @property
    def job(self) -> Job:
        """A chain without state."""
        names = list(self.tasks)
        kinds = {names[0]: "source", names[-1]: "sink"}
        operators = [
            {
                "name": name,
                "kind": kinds.get(name, "operator"),
                "cost": {"cpu_s": LOADS[name] * self.tasks[name] / RATE, "bytes_out": 1000.0},
                "selectivity": 0.0 if name == names[-1] else 1.0,
                "figures_from": "assumed",
            }
            for name in names
        ]
        return Job.model_validate(
            {
                "name": f"q3-inf-{sum(self.tasks.values())}",
                "description": "Images are blurred, shrunk and classified.",
                "figures_from": "CAPSys, Q3-inf, for the shape; assumed: tasks and costs",
                "operators": operators,
                "edges": [{"from": a, "to": b, "partitioning": "rebalance"} for a, b in itertools.pairwise(names)],
            }
        )

    def run_on(self, testbed: Testbed, placement: Placement, run: str) -> tuple[float, float]:
        """Throughput over the target, and the share of time that sources waited."""

        def observe(deployed: Run) -> MeasuredWindow:
            deployed.inject(RATE, WARMUP_S, "warmup")
            return deployed.inject(RATE, OBSERVE_S, "observe")

        configuration = Configuration(self.tasks, MEMORY_MB, placement)
        say = TerminalProgress().say
        seen = measured(self.job, repeated(testbed, self.job, configuration, observe, run=run, seed=1, say=say))
        return seen.throughput / RATE, min(seen.backpressure, 1.0)

    def measure(self, testbed: Testbed, policy: Policy, seed: int, workspace: Workspace) -> Measurement:
        """A plan on the real Flink, measured now or stored."""
        placement = place_by(policy, self.job, self.tasks, RATE, CLUSTER, seed)

        def make() -> Measurement:
            throughput, backpressure = self.run_on(testbed, placement, f"{policy}-{seed}")
            plan = {worker: dict(tasks) for worker, tasks in placement.items()}
            return Measurement(
                policy=policy, seed=seed, placement=plan, throughput=throughput, backpressure=backpressure
            )

        inputs = {"job": digest(self.job), "cluster": digest(CLUSTER), "placement": digest(placement)}
        return workspace.once(self.key_of(policy, seed), inputs, Measurement, make)

    def key_of(self, policy: Policy, seed: int) -> str:
        """Workspace key of a plan's measurement."""
        return f"{self.job.name}/{policy}/{seed:03}.json"


def plan_in_words(placement: Placement) -> str:
    """Each worker's tasks by their first letters, sink last; equal workers are interchangeable, so they are sorted."""
    workers = [
        "".join(f"{tasks[name]}{name[0] if name != 'sink' else 'k'}" for name in LOADS if tasks.get(name))
        for tasks in placement.values()
    ]
    return " ".join(sorted(workers))


def tables(example: Example, found: Sequence[Measurement]) -> list[Table | str]:
    """Each plan measured and simulated, each policy, and whether the rankings agree."""
    simulator = Simulator(CLUSTER, (MEMORY_MB,), Physics().ideal())
    simulated = [example.run_on(simulator, one.placement, "simulated")[0] for one in found]
    plans = Table(
        *("policy", "seed", "tasks of each worker", "measured", "backpressure", "simulated", "error"),
        title=f"{sum(example.tasks.values())} tasks: throughput over the target of {RATE:,.0f} records/s",
    )
    for one, said in zip(found, simulated, strict=True):
        plans.add_row(
            *(one.policy, f"{one.seed}", plan_in_words(one.placement), f"{one.throughput:.1%}"),
            *(f"{one.backpressure:.0%}", f"{said:.1%}", f"{said / one.throughput - 1:+.1%}"),
        )
    policies = Table("policy", "plans", "measured: median (least, most)", "simulated: median (least, most)")
    for policy in POLICIES:
        own = [(m.throughput, s) for m, s in zip(found, simulated, strict=True) if m.policy == policy]
        if own:
            real, said_of = zip(*own, strict=True)
            policies.add_row(policy, f"{len(own)}", spread_of(real), spread_of(said_of))
    return [plans, policies, agreement(found, simulated)]


def agreement(found: Sequence[Measurement], simulated: Sequence[float]) -> str:
    """Kendall's tau over all different plans, and the order of the medians."""
    by_plan: dict[str, list[tuple[float, float]]] = {}
    for one, said in zip(found, simulated, strict=True):
        by_plan.setdefault(plan_in_words(one.placement), []).append((one.throughput, said))
    pairs = [tuple(statistics.fmean(column) for column in zip(*runs, strict=True)) for runs in by_plan.values()]
    tau = kendalltau(*zip(*pairs, strict=True)) if len(pairs) > 1 else None
    orders = [
        sorted(
            {one.policy for one in found},
            key=lambda policy: -statistics.median(v for v, m in zip(values, found, strict=True) if m.policy == policy),
        )
        for values in ([one.throughput for one in found], simulated)
    ]
    agreement = "the same" if orders[0] == orders[1] else "different"
    rank = (
        ""
        if tau is None
        else f"Kendall's tau {tau.statistic:.2f} (p = {tau.pvalue:.1g}) over {len(pairs)} different plans; "
    )
    return (
        f"{rank}order of the medians: measured {' > '.join(orders[0])}, simulated {' > '.join(orders[1])}: {agreement}"
    )


def measure_all(example: Example, seeds: int, only_kept: bool, workspace: Workspace) -> list[Measurement]:
    """All plans of one number of tasks, stored or, if allowed, measured now."""
    progress, found = TerminalProgress(), []
    wanted = [(p, s) for p in POLICIES for s in range(seeds // 3 if p == "caps" else seeds)]
    with FlinkTestbed(CLUSTER, [MEMORY_MB]) as testbed:
        for policy, seed in progress.track(wanted, "placements", total=len(wanted)):
            if not only_kept or workspace.exists(example.key_of(policy, seed)):
                found.append(example.measure(testbed, policy, seed, workspace))
                progress.say(f"{example.job.name}, {policy} {seed}: {found[-1].throughput:.1%} of the target")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", default="16,13", help="numbers of tasks, separated by commas")
    parser.add_argument(
        "--seeds", type=int, default=6, help="plans of each of Flink's policies; a third of that of caps"
    )
    parser.add_argument("--workspace", default=str(WORKSPACE), help="where measurements are stored")
    parser.add_argument("--table", action="store_true", help="measure nothing")
    asked = parser.parse_args()
    console, begin, workspace = Console(width=140), time.monotonic(), Workspace(asked.workspace)
    for tasks in (int(text) for text in asked.tasks.split(",")):
        example = Example(TASKS[tasks])
        if found := measure_all(example, asked.seeds, asked.table, workspace):
            console.print(*tables(example, found), sep="\n")
    console.print(f"{time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
