"""The effect of placement: queries alone, together, against ODRP, and under DS2 (CAPSys sections 6.2 to 6.4).

    python -m benchmarks.placement.throughput [--part alone,together,odrp,ds2] [--cores 4] [--seeds 10]

alone (Figure 7): each query on 4 workers of 8 slots. together (Figure 8): all on 18 workers of 8 slots, as one job with
several sources, so that they share workers as on a cluster; Flink's policies take the queries one by one in random order.
odrp (Table 3): as `odrp.py`. ds2 (Table 4): as `accuracy.py`. All runs are on the simulator.

"caps, paper's rule" relaxes all three dimensions by one factor; "caps" leaves out dimensions in which even the worst
placement loads no worker to half of its capacity. The target is the highest rate that the latter sustains, alone; together
each query has its share of the 18 workers, and the corresponding share of that target.

The catalogue's m5d.2xlarge has 8 vCPUs for 8 slots, and a task is one thread, so that no task there waits for a core. The
instance has 4 physical cores, which is what the simulator counts here; `--cores 8,4` shows both.
"""

import argparse
import os
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.placement.accuracy import accuracy
from benchmarks.placement.odrp import against_odrp
from benchmarks.placement.runs import (
    PAPERS_RULE,
    QUERIES,
    SUSTAINED,
    Deployment,
    Rule,
    highest_rate,
    on_cores,
    parallelism_for,
    place_by,
    run_plan,
    spread_of,
    true_rates,
)
from benchmarks.pool import Pool
from models.cluster import Cluster
from models.job import Job, Kind
from models.plan.parts import Placement
from pipelines.inputs.catalogue import load_cluster, load_job

POLICIES: tuple[Rule, ...] = ("caps", PAPERS_RULE, "default", "evenly")
PAPER_FIGURE_7 = {
    ("Q1-sliding", "default"): "1.18 on average",
    ("Q5-aggregate", "default"): "up to 6",
    ("Q5-aggregate", "evenly"): "up to 5.5",
}
"""Throughput of CAPS over that of the policy, as far as section 6.2.1 states it; CAPS reaches all targets."""
PAPER_FIGURE_8 = {"caps": "6", "default": "3", "evenly": "1 (Q2-join)"}
"""Targets reached, of six (section 6.2.2)."""


@dataclass(frozen=True)
class Target:
    """The target of a query, and its tasks by DS2."""

    label: str
    rate: float
    per_task: Mapping[str, float]

    @property
    def job(self) -> Job:
        return load_job(QUERIES[self.label])

    def parallelism(self, factor: float = 1.0) -> dict[str, int]:
        """DS2's tasks at the rate times `factor`."""
        return parallelism_for(self.job, factor * self.rate, self.per_task)


def target_of(label: str, cores: float) -> Target:
    """The highest rate that CAPS sustains on 4 workers of 8 slots."""
    job = load_job(QUERIES[label])
    return Target(label, highest_rate(job, on_cores(load_cluster("capsys-4x8"), cores)), true_rates(job))


def run_alone(target: Target, cores: float, policy: Rule, seed: int) -> tuple[float, float]:
    """Throughput / target, and backpressure."""
    cluster, parallelism = on_cores(load_cluster("capsys-4x8"), cores), target.parallelism()
    placement = place_by(policy, target.job, parallelism, target.rate, cluster, seed)
    run = run_plan(target.job, Deployment(parallelism, placement), target.rate, cluster, seed)
    return run.throughput / target.rate, run.backpressure


def alone(targets: Sequence[Target], cores: float, seeds: int, pool: Pool) -> Table:
    """Figure 7."""
    table = Table(
        *("query", "target", "tasks", "policy", "throughput / target", "backpressure", "reached"),
        *("caps / policy: mean, most", "paper"),
        title=f"alone, 4 workers x 8 slots, {cores:g} cores each: median (least, most) of {seeds} runs (Figure 7)",
    )
    calls = [(t, cores, policy, seed) for t in targets for policy in POLICIES for seed in range(seeds)]
    done = iter(pool.map(run_alone, calls, f"alone, {cores:g} cores"))
    for t in targets:
        runs = {policy: [next(done) for _ in range(seeds)] for policy in POLICIES}
        caps = np.array([share for share, _ in runs["caps"]])
        for policy in POLICIES:
            shares, pressures = (np.array(v) for v in zip(*runs[policy], strict=True))
            table.add_row(
                *((t.label, f"{t.rate:,.0f}", f"{sum(t.parallelism().values())}") if policy == "caps" else ("",) * 3),
                policy,
                spread_of(shares),
                spread_of(pressures),
                f"{(shares >= SUSTAINED).sum()}/{seeds}",
                f"{caps.mean() / shares.mean():.2f}, {caps.max() / shares.min():.2f}",
                PAPER_FIGURE_7.get((t.label, policy), ""),
            )
    return table


@dataclass(frozen=True)
class Tenants:
    """Several queries as one job, each at its own rate."""

    job: Job
    rate: float
    parallelism: Mapping[str, int]
    targets: Mapping[str, float]
    """Source of the union -> records/s."""
    members: Mapping[str, tuple[str, ...]]
    """Query -> its operators in the union."""


def tenants(targets: Sequence[Target], factor: float) -> Tenants:
    """The union of the queries; their sources share the rate as their targets do."""
    total = factor * sum(t.rate for t in targets)
    operators, edges, members, per_source = [], [], {}, {}
    parallelism: dict[str, int] = {}
    for t in targets:
        job, rate = t.job, factor * t.rate
        for o in job.operators:
            source = o.kind is Kind.SOURCE
            share = o.rate_share * rate / total if source else 1.0
            operators.append(o.model_copy(update={"name": f"{t.label}.{o.name}", "rate_share": share}))
            if source:
                per_source[f"{t.label}.{o.name}"] = o.rate_share * rate
        ends = {"upstream": f"{t.label}.", "downstream": f"{t.label}."}
        edges += [e.model_copy(update={key: p + getattr(e, key) for key, p in ends.items()}) for e in job.edges]
        members[t.label] = tuple(f"{t.label}.{o.name}" for o in job.operators)
        parallelism |= {f"{t.label}.{operator}": p for operator, p in t.parallelism(factor).items()}
    union = Job(
        name="tenants",
        description="All queries at once.",
        figures_from="its parts",
        operators=tuple(operators),
        edges=tuple(edges),
    )
    return Tenants(union, total, parallelism, per_source, members)


def place_together(t: Tenants, cluster: Cluster, policy: Rule, seed: int) -> Placement:
    """All queries placed; Flink's policies take them in random order."""
    queries = list(t.members.values())
    random.Random(seed).shuffle(queries)
    return place_by(policy, t.job, t.parallelism, t.rate, cluster, seed, queries)


def run_together(t: Tenants, cluster: Cluster, placement: Placement, seed: int) -> dict[str, tuple[float, float]]:
    """Query -> throughput / target, and backpressure; of several sources the worse."""
    done = run_plan(t.job, Deployment(t.parallelism, placement), t.rate, cluster, seed)
    worst: dict[str, tuple[float, float]] = {}
    for source, (rate, pressure) in done.by_source.items():
        label, share = source.split(".")[0], rate / t.targets[source]
        before = worst.get(label, (share, pressure))
        worst[label] = (min(share, before[0]), max(pressure, before[1]))
    return worst


def together(targets: Sequence[Target], cores: float, seeds: int, pool: Pool) -> tuple[Table, Table]:
    """Figure 8, and how many targets are reached."""
    cluster, factor = on_cores(load_cluster("capsys-18x8"), cores), 18 / 4 / len(targets)
    t = tenants(targets, factor)
    # CAPS searches once: no order of submission matters.
    once = pool.map(place_together, [(t, cluster, p, 0) for p in ("caps", PAPERS_RULE)], "placing all by CAPS")
    flink = {p: [place_together(t, cluster, p, seed) for seed in range(seeds)] for p in ("default", "evenly")}
    placements = {"caps": [once[0]] * seeds, PAPERS_RULE: [once[1]] * seeds, **flink}
    calls = [(t, cluster, placements[p][seed], seed) for p in POLICIES for seed in range(seeds)]
    done = iter(pool.map(run_together, calls, f"together, {cores:g} cores"))
    runs = {p: [next(done) for _ in range(seeds)] for p in POLICIES}
    table = Table(
        *("query", "target", "tasks", *(f"{p}: throughput, backpressure" for p in POLICIES)),
        title=f"together, 18 workers x 8 slots, {cores:g} cores each, {sum(t.parallelism.values())} tasks: median "
        f"(least, most) of {seeds} runs (Figure 8)",
    )
    reached: dict[str, float] = dict.fromkeys(POLICIES, 0)
    for own in targets:
        cells = []
        for policy in POLICIES:
            shares, pressures = zip(*(r[own.label] for r in runs[policy]), strict=True)
            reached[policy] += bool(np.median(shares) >= SUSTAINED)
            cells.append(f"{spread_of(shares)}\n{spread_of(pressures)}")
        tasks = sum(t.parallelism[o] for o in t.members[own.label])
        table.add_row(own.label, f"{factor * own.rate:,.0f}", f"{tasks}", *cells)
    summary = Table("policy", "targets reached in the median run", "paper")
    for policy in POLICIES:
        summary.add_row(policy, f"{reached[policy]:g} of {len(targets)}", PAPER_FIGURE_8.get(policy, ""))
    return table, summary


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", default="alone,together,odrp,ds2")
    parser.add_argument("--cores", default="4", help="of each worker, in the first two parts")
    parser.add_argument("--seeds", type=int, default=10, help="runs of each")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="that run at the same time")
    asked = parser.parse_args()
    console, begin, parts = Console(width=170), time.monotonic(), asked.part.split(",")
    if "odrp" in parts:  # first and by itself, since it measures how long they decide
        console.print(against_odrp(load_cluster("capsys-4x8")))
    with Pool(asked.processes, console) as pool:
        for cores in (float(c) for c in asked.cores.split(",")) if {"alone", "together"} & set(parts) else ():
            targets = pool.map(target_of, [(label, cores) for label in QUERIES], f"highest rates, {cores:g} cores")
            if "alone" in parts:
                console.print(alone(targets, cores, asked.seeds, pool))
            if "together" in parts:
                console.print(*together(targets, cores, asked.seeds, pool), sep="\n")
        if "ds2" in parts:
            console.print(accuracy(POLICIES, asked.seeds, pool))
    console.print(f"{time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
