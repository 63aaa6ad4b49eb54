"""What a placement is worth: queries alone, together, and under DS2 (CAPSys sections 6.2 and 6.4), on the simulator.

    python benchmarks/placement_throughput.py [--part alone,together,ds2] [--cores 8,4] [--seeds 10]

alone (Figure 7): each query on 4 workers of 8 slots. together (Figure 8): all on 18 workers of 8 slots, as one job with
several sources, so that they share workers as on a cluster; Flink's policies take the queries one by one in random order.
ds2 (Table 4): Q3-inf at 720, 1440, 2880, 1440, 720 records/s on 7 workers of 8 slots and 4 vCPUs (r5d.xlarge; the paper's
artifact has six, but 2880 records/s need 19.3 cores at the catalogue's unit costs, and full workers are slower). Every
policy starts from the same good placement. Resources count as exact where DS2 asks for no more slots than it does by
rates seen alone.

"caps, as published" relaxes all three dimensions by one factor; "caps" only those that can be short: where the worst
placement loads no worker to half of its capacity, a dimension is left out. The target is the highest rate that the latter
sustains, alone; together each query has its share of the 18 workers, and its target is as much of that.

The catalogue's m5d.2xlarge has 8 vCPUs for 8 slots, and a task is one thread, so that no task there waits for a core. The
instance has 4 physical cores; `--cores` says how many the simulator counts, and both are shown. Q5-aggregate (Nexmark
q6) is left out: the catalogue does not have it, as no source states the unit costs of its operators.
"""

import argparse
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from placement_runs import (
    HEADROOM,
    PUBLISHED,
    SUSTAINED,
    Deployment,
    Rule,
    highest_rate,
    measured,
    observed_rates,
    on_cores,
    parallelism_for,
    place_by,
    rates_for_ds2,
    run_plan,
    true_rates,
)
from rich.console import Console
from rich.table import Table

from models.cluster import Cluster
from models.job import Job, Kind
from models.scaling.ds2 import ds2
from pipelines.catalogue import load_cluster, load_job
from testbeds.protocol import Configuration
from testbeds.simulator import Simulator

QUERIES = {
    "Q1-sliding": "nexmark-q5",
    "Q2-join": "nexmark-q8",
    "Q3-inf": "q3-inf",
    "Q4-join": "nexmark-q3",
    "Q6-session": "nexmark-q11",
}
POLICIES: tuple[Rule, ...] = (PUBLISHED, "caps", "default", "evenly")
STEPS = (1440.0, 2880.0, 1440.0, 720.0)
PAPER_TABLE_4 = {PUBLISHED: "✓✓ ✓✓ ✓✓ ✓✓", "caps": "", "default": "✗✓ ✗✗ ✗✗ ✓✓", "evenly": "✓✓ ✓✗ ✗✗ ✗✗"}
ACTIVATION_S, STEP_S = 90.0, 600.0


def spread_of(values: Sequence[float], style: str = ".0%") -> str:
    """Median, and from the least to the most."""
    return f"{np.median(values):{style}} ({min(values):{style}}, {max(values):{style}})"


def alone(cores: float, seeds: int, console: Console) -> dict[str, float]:
    """Figure 7; returns the target rate of each query."""
    cluster, targets = on_cores(load_cluster("capsys-4x8"), cores), {}
    table = Table(
        *("query", "target", "tasks", "policy", "throughput / target", "backpressure", "reached"),
        title=f"alone, 4 workers x 8 slots, {cores:g} cores each: median (least, most) of {seeds} runs (Figure 7)",
    )
    for label, name in QUERIES.items():
        job = load_job(name)
        rate = targets[label] = highest_rate(job, cluster)
        parallelism = parallelism_for(job, rate, true_rates(job))
        for policy in POLICIES:
            plans = [place_by(policy, job, parallelism, rate, cluster, seed) for seed in range(seeds)]
            runs = [run_plan(job, Deployment(parallelism, p), rate, cluster, s) for s, p in enumerate(plans)]
            shares = [r.throughput / rate for r in runs]
            table.add_row(
                *((label, f"{rate:,.0f}", f"{sum(parallelism.values())}") if policy == PUBLISHED else ("", "", "")),
                policy,
                spread_of(shares),
                spread_of([r.backpressure for r in runs]),
                f"{sum(s >= SUSTAINED for s in shares)}/{seeds}",
            )
    console.print(table)
    return targets


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


def tenants(targets: Mapping[str, float], factor: float) -> Tenants:
    """The union of the queries; their sources share the rate as their targets do."""
    total = factor * sum(targets.values())
    operators, edges, members, parallelism, per_source = [], [], {}, {}, {}
    for label, name in QUERIES.items():
        job, rate = load_job(name), factor * targets[label]
        for o in job.operators:
            source = o.kind is Kind.SOURCE
            share = o.rate_share * rate / total if source else 1.0
            operators.append(o.model_copy(update={"name": f"{label}.{o.name}", "rate_share": share}))
            if source:
                per_source[f"{label}.{o.name}"] = o.rate_share * rate
        ends = {"upstream": f"{label}.", "downstream": f"{label}."}
        edges += [e.model_copy(update={key: p + getattr(e, key) for key, p in ends.items()}) for e in job.edges]
        members[label] = tuple(f"{label}.{o.name}" for o in job.operators)
        tasks = parallelism_for(job, rate, true_rates(job))
        parallelism |= {f"{label}.{operator}": p for operator, p in tasks.items()}
    union = Job(
        name="tenants",
        description="All queries at once.",
        figures_from="its parts",
        operators=tuple(operators),
        edges=tuple(edges),
    )
    return Tenants(union, total, parallelism, per_source, members)


def runs_of(t: Tenants, cluster: Cluster, policy: Rule, seeds: int) -> list[dict[str, tuple[float, float]]]:
    """Source -> throughput / target, backpressure, in each run. CAPS searches once: no order of submission matters."""
    runs, placement = [], {}
    for seed in range(seeds):
        if seed == 0 or policy in ("default", "evenly"):
            queries = list(t.members.values())
            random.Random(seed).shuffle(queries)
            placement = place_by(policy, t.job, t.parallelism, t.rate, cluster, seed, queries)
        done = run_plan(t.job, Deployment(t.parallelism, placement), t.rate, cluster, seed)
        runs.append({s: (rate / t.targets[s], pressure) for s, (rate, pressure) in done.by_source.items()})
    return runs


def together(cores: float, seeds: int, targets: Mapping[str, float], console: Console) -> None:
    """Figure 8."""
    cluster = on_cores(load_cluster("capsys-18x8"), cores)
    t = tenants(targets, 18 / 4 / len(QUERIES))
    table = Table(
        *("query", "target", "tasks", *(f"{p}: {what}" for p in POLICIES for what in ("throughput", "backpressure"))),
        title=f"together, 18 workers x 8 slots, {cores:g} cores each, {sum(t.parallelism.values())} tasks: median "
        f"(least, most) of {seeds} runs (Figure 8)",
    )
    runs = {p: runs_of(t, cluster, p, seeds) for p in POLICIES}
    reached = dict.fromkeys(POLICIES, 0)
    for source, target in t.targets.items():
        label = source.split(".")[0]
        cells = []
        for policy in POLICIES:
            shares, pressures = zip(*(r[source] for r in runs[policy]), strict=True)
            reached[policy] += float(np.median(shares)) >= SUSTAINED
            cells += [spread_of(shares), spread_of(pressures)]
        table.add_row(label, f"{target:,.0f}", f"{sum(t.parallelism[o] for o in t.members[label])}", *cells)
    console.print(table)
    console.print("targets reached in the median run: " + ", ".join(f"{p} {n}" for p, n in reached.items()))


def ds2_steps(policy: Rule, seed: int, cluster: Cluster) -> list[tuple[float, int]]:
    """Throughput / target and slots after each of DS2's four decisions (section 6.4.1)."""
    job, outcome = load_job("q3-inf"), []
    parallelism = parallelism_for(job, 720.0, true_rates(job))
    placement = place_by("caps", job, parallelism, 720.0, cluster, seed)
    memory_mb = min(w.memory_mb or 32768.0 for w in cluster.workers)
    for number, rate in enumerate(STEPS):
        configuration = Configuration(parallelism, memory_mb, placement)
        with Simulator(cluster).deploy(job, configuration, run="ds2", seed=100 * seed + number) as run:
            run.inject(STEPS[number - 1] if number else 720.0, STEP_S, "warmup")
            seen = observed_rates(job, run.inject(rate, ACTIVATION_S, "observe").samples)
        decision = ds2(rates_for_ds2(job, HEADROOM * rate, parallelism, seen)).parallelism
        outcome.append(_settle(job, decision, rate, policy, seed, number, cluster, memory_mb))
        if sum(decision.values()) <= cluster.slots:
            parallelism, placement = decision, place_by(policy, job, decision, rate, cluster, 100 * seed + number)
    return outcome


def _settle(
    job: Job,
    parallelism: Mapping[str, int],
    rate: float,
    policy: Rule,
    seed: int,
    number: int,
    cluster: Cluster,
    memory_mb: float,
) -> tuple[float, int]:
    slots = sum(parallelism.values())
    if slots > cluster.slots:
        return 0.0, slots
    placement = place_by(policy, job, parallelism, rate, cluster, 100 * seed + number)
    configuration = Configuration(parallelism, memory_mb, placement)
    with Simulator(cluster).deploy(job, configuration, run="ds2", seed=100 * seed + number + 50) as run:
        run.inject(rate, ACTIVATION_S, "warmup")
        return measured(job, run.inject(rate, STEP_S - ACTIVATION_S, "observe")).throughput / rate, slots


def accuracy(seeds: int, console: Console) -> None:
    """Table 4."""
    job = load_job("q3-inf")
    cluster = Cluster.model_validate(
        {"count": 7, "slots": 8, "cores": 4, "memory_mb": 32768, "io": 241.7e6, "net": 1.25e9}
    )
    least = [sum(parallelism_for(job, rate, true_rates(job)).values()) for rate in STEPS]
    table = Table(
        *("policy", *(f"step {i}: {r:g}/s, {m} slots" for i, (r, m) in enumerate(zip(STEPS, least, strict=True), 1))),
        "paper",
        title=f"DS2 on Q3-inf: runs of {seeds} that reach the rate / that take no more slots; slots (Table 4)",
    )
    for policy in POLICIES:
        runs = [ds2_steps(policy, seed, cluster) for seed in range(seeds)]
        cells = []
        for step, most in enumerate(least):
            shares, slots = zip(*(r[step] for r in runs), strict=True)
            enough, exact = sum(s >= SUSTAINED for s in shares), sum(n <= most for n in slots)
            cells.append(f"{enough} / {exact}; {spread_of(slots, '.0f')}")
        table.add_row(policy, *cells, PAPER_TABLE_4[policy])
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", default="alone,together,ds2")
    parser.add_argument("--cores", default="8,4")
    parser.add_argument("--seeds", type=int, default=10)
    asked = parser.parse_args()
    console, begin = Console(width=170), time.monotonic()
    parts = asked.part.split(",")
    for cores in (float(c) for c in asked.cores.split(",")) if {"alone", "together"} & set(parts) else ():
        if "alone" in parts:
            targets = alone(cores, asked.seeds, console)
        else:
            cluster = on_cores(load_cluster("capsys-4x8"), cores)
            targets = {label: highest_rate(load_job(name), cluster) for label, name in QUERIES.items()}
        if "together" in parts:
            together(cores, asked.seeds, targets, console)
    if "ds2" in parts:
        accuracy(asked.seeds, console)
    console.print(f"Q5-aggregate is not in the catalogue; {time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
