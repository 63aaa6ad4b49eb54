"""Demeter's advertising workload under `flink` and `static`, beside what the study's own runs measured (ICPE 2024).

    python -m benchmarks.arena.studies.demeter [--seeds 3] [--downtimes-s 60,90,98,120,150] [--window-share 0.25]
    python -m benchmarks.arena.studies.demeter --rates OTHER.csv --runs OTHER_RUNS.csv

Another workload of the study needs its rates by minute and its table of runs, in the format of tests/data/demeter. What the
replays take from the study, all of it from its *static* runs, its workload and its settings:

| quantity | from |
|---|---|
| rates | those by minute, times the ratio of the static run's median throughput to their median |
| CPU seconds of a record | CPU in use x TaskManagers / throughput of the static run, means |
| latency without a backlog | the static run's median, which windows and buffers cause; waiting in the log is added to it |
| settings | tests/data/demeter/README.md, and operator 1.6's: Flink 1.17 cannot rescale in place, so the operator redeploys |

How long a rescale takes there was not published, so several downtimes are replayed (`--downtimes-s`). The time without latency,
which the study does report, says which of them its cluster may have had.

The job is one of two vertices, as the study's: a source that parses and keeps a third of the records, and a window. Assumed:
a record costs the window as much as the source (`--window-share`), and the topic has as many partitions as the job has key
groups, which is the study's maximum parallelism. Each TaskManager has one core and one slot, which a task of each vertex
shares. Samples are taken over time while the job runs, as the study's are. CPU time: about 15 s a replay.
"""

import argparse
import csv
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from pydantic import JsonValue
from rich.console import Console
from rich.table import Table

from models.cluster import Cluster
from models.job import Job
from models.metrics import SAMPLE_INTERVAL_S
from models.plan.parts import Placement
from models.scaling.policies import make_policy
from pipelines.arena.replays import latency
from pipelines.arena.replays.compute import PHYSICS
from pipelines.arena.replays.metrics import FlinkMetrics
from pipelines.arena.replays.replay import Start, Trace, replay
from pipelines.arena.replays.workloads import Workload, read_workload
from pipelines.arena.request import RescaleMode
from testbeds.simulator import Simulator

DATA: Final = Path(__file__).resolve().parents[3] / "tests/data/demeter"
TASK_MANAGERS: Final = 24
MEMORY_MB: Final = 4096.0
MANAGED_MB: Final = 64.0
KEPT: Final = 1 / 3
"""Records that the source passes on, as in the Yahoo streaming benchmark, whose views are one of three kinds of events."""
SETTINGS: Final[dict[str, dict[str, JsonValue]]] = {
    "flink": {
        "operator.release": "1.6",
        "stabilization.interval": "2 min",
        "metrics.window": "1 min",
        "utilization.target": 0.35,
        "target.utilization.boundary": 0.15,
        "restart.time": "1 min",
        "catch-up.duration": "5 min",
        "vertex.max-parallelism": TASK_MANAGERS,
    },
    "static": {},
}
RUNS: Final = {"static": "baseline", "flink": "operator35"}
WITHIN: Final = {"TaskManagers": 1.25, "p95 s": 1.5}
"""Factors that count as agreement."""


@dataclass(frozen=True)
class Deployed:
    """What a run, published or replayed, comes to."""

    task_managers: float
    """Mean."""
    p50_s: float
    p95_s: float
    down_s: float
    """Time in which the job reported no latency."""
    rescales: int | None = None


@dataclass(frozen=True)
class Published:
    """The study's runs by policy, and what the replays take from the static one."""

    runs: Mapping[str, Sequence[Deployed]]
    cost_s: float
    median_rate: float
    floor_s: float


def published(path: Path) -> Published:
    rows: dict[str, dict[str, dict[str, float]]] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            values = {key: float(row[key]) for key in ("n", "mean", "p50", "p95")}
            rows.setdefault(row["run"], {})[row["metric"]] = values
    found = {
        policy: [_deployed(run) for name, run in rows.items() if kind in name.split("_")]
        for policy, kind in RUNS.items()
    }
    static = next(run for name, run in rows.items() if RUNS["static"] in name.split("_"))
    used = static["cpu_load"]["mean"] * static["task_managers"]["mean"]
    return Published(
        runs=found,
        cost_s=used / static["throughput"]["mean"],
        median_rate=static["throughput"]["p50"],
        floor_s=static["latency"]["p50"] / 1000,
    )


def _deployed(run: Mapping[str, Mapping[str, float]]) -> Deployed:
    waited = run["latency"]
    return Deployed(
        task_managers=run["task_managers"]["mean"],
        p50_s=waited["p50"] / 1000,
        p95_s=waited["p95"] / 1000,
        down_s=18 * 3600 - waited["n"],
    )


def job_of(cost_s: float, window_share: float) -> Job:
    """Source and window, `cost_s` CPU seconds together for each record read."""
    source = {"cpu_s": cost_s * (1 - window_share), "bytes_out": 100}
    window = {"cpu_s": cost_s * window_share / KEPT, "bytes_out": 50, "state_write_bytes": 100}
    limits = {"max_parallelism": TASK_MANAGERS, "figures_from": "tests/data/demeter"}
    return Job.model_validate(
        {
            "name": "demeter",
            "description": "Counts events by key in windows of ten seconds.",
            "figures_from": "tests/data/demeter, ads_runs.csv; the shares of the vertices are assumed",
            "key_groups": TASK_MANAGERS,
            "operators": [
                {"name": "source", "kind": "source", "cost": source, "selectivity": KEPT, **limits},
                {
                    "name": "window",
                    "kind": "sink",
                    "cost": window,
                    "selectivity": 0,
                    "window": {"kind": "tumbling", "length_s": 10},
                    **limits,
                },
            ],
            "edges": [{"from": "source", "to": "window", "partitioning": "hash"}],
        }
    )


CLUSTER: Final = Cluster.model_validate(
    {"name": "demeter", "count": TASK_MANAGERS, "slots": 2, "cores": 1, "memory_mb": MEMORY_MB}
)
"""A slot for each of the two tasks that share one of the study's."""


def in_shared_slots(parallelism: Mapping[str, int], rate: float) -> Placement:
    """Task i of each vertex on TaskManager i."""
    names = [worker.name for worker in CLUSTER.workers]
    used = max(parallelism.values())
    return {names[i]: {name: 1 for name, tasks in parallelism.items() if i < tasks} for i in range(used)}


def replayed(
    policy: str, job: Job, workload: Workload, mode: RescaleMode, downtime_s: float, seed: int, floor_s: float
) -> Deployed:
    rescaling = PHYSICS[mode].rescaling.model_copy(update={"restart_s": downtime_s})
    physics = PHYSICS[mode].model_copy(update={"rescaling": rescaling})
    testbed = Simulator(CLUSTER, memory_levels_mb=(MEMORY_MB,), physics=physics)
    all_of_them = {o.name: TASK_MANAGERS for o in job.operators}
    start = Start(all_of_them, MEMORY_MB, {o.name: MANAGED_MB for o in job.operators}, seed)
    # `static` keeps what it starts with.
    settings = SETTINGS[policy] | ({"warm_up_s": workload.seconds} if policy == "static" else {})
    trace = replay(
        testbed, job, workload, make_policy(policy, settings), start, in_shared_slots, 0.0, FlinkMetrics(seed)
    )
    return _summed_up(trace, floor_s)


def _summed_up(trace: Trace, floor_s: float) -> Deployed:
    waited = latency.waiting_s(trace.rate * SAMPLE_INTERVAL_S, trace.read, SAMPLE_INTERVAL_S)
    runs = trace.running_s > 0
    p50, p95 = np.quantile(waited[runs], (0.5, 0.95)) + floor_s
    first = [begin for begin, _, _ in trace.deployed]
    used = np.repeat([max(tasks.values()) for _, tasks, _ in trace.deployed], np.diff([*first, len(trace.rate)]))
    return Deployed(
        task_managers=float(np.mean(used)),
        p50_s=float(p50),
        p95_s=float(p95),
        down_s=float(len(trace.rate) * SAMPLE_INTERVAL_S - np.sum(trace.running_s)),
        rescales=sum(not r.refused for r in trace.rescales),
    )


def scaled(path: Path, median_rate: float) -> Workload:
    """The workload with another median."""
    read = read_workload(path)
    factor = median_rate / statistics.median(read.rates)
    return read.model_copy(update={"rates": tuple(rate * factor for rate in read.rates)})


def side_by_side(policy: str, ours: Sequence[Deployed], theirs: Sequence[Deployed]) -> Table:
    table = Table(title=f"{policy}: published, and replayed")
    for column in ("", "TaskManagers", "p50 s", "p95 s", "without latency s", "rescales"):
        table.add_column(column, justify="left" if not column else "right")
    for kind, runs in (("published", theirs), ("replayed", ours)):
        for run in runs:
            figures = (f"{run.task_managers:.2f}", f"{run.p50_s:.2f}", f"{run.p95_s:.1f}", f"{run.down_s:,.0f}")
            table.add_row(kind, *figures, "not stated" if run.rescales is None else str(run.rescales))
    return table


def verdict(ours: Sequence[Deployed], theirs: Sequence[Deployed]) -> str:
    """Whether the median over the replays is within the factors of the published range."""
    found = []
    for name, field in (("TaskManagers", "task_managers"), ("p95 s", "p95_s")):
        mine = statistics.median(getattr(run, field) for run in ours)
        published_values = [getattr(run, field) for run in theirs]
        middle = statistics.median(published_values)
        ratio = mine / middle
        holds = 1 / WITHIN[name] <= ratio <= WITHIN[name]
        found.append(
            f"{name} {mine:.1f} for {middle:.1f}: {ratio:.2f} x, {'within' if holds else 'not within'} {WITHIN[name]:g} x"
        )
    return "; ".join(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", type=Path, default=DATA / "ads_rates.csv", help="CSV: minute, mean_rate")
    parser.add_argument("--runs", type=Path, default=DATA / "ads_runs.csv", help="CSV of the study's runs")
    parser.add_argument("--rescale-mode", choices=sorted(PHYSICS), default="redeploy")
    parser.add_argument(
        "--downtimes-s", default="60,90,98,120,150", help="of a rescale, beside saving and restoring state"
    )
    parser.add_argument("--window-share", type=float, default=0.25, help="of the CPU seconds of a record")
    parser.add_argument("--policies", default="static,flink")
    parser.add_argument("--release", choices=("1.6", "current"), default="1.6", help="rules of which operator release")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=1)
    given = parser.parse_args()
    known = published(given.runs)
    workload = scaled(given.rates, known.median_rate)
    job = job_of(known.cost_s, given.window_share)
    SETTINGS["flink"]["operator.release"] = given.release
    console = Console(width=140)
    console.print(f"{1e6 * known.cost_s:.0f} us a record, {given.rescale_mode}, release {given.release}")
    for policy in given.policies.split(","):
        seeds = range(given.seed, given.seed + given.seeds)
        for downtime in given.downtimes_s.split(",") if policy != "static" else ("0",):
            ours = [
                replayed(policy, job, workload, given.rescale_mode, float(downtime), seed, known.floor_s)
                for seed in seeds
            ]
            console.print(side_by_side(f"{policy}, {downtime} s a rescale", ours, known.runs[policy]))
            console.print(f"{policy}: {verdict(ours, known.runs[policy])}")


if __name__ == "__main__":
    main()
