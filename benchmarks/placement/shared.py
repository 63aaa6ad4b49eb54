"""Shared slots: throughput of CAPS, and of Flink's default, evenly-spread-out-slots and TASKS balancing, on the simulator.

    python -m benchmarks.placement.shared [--seeds 5] [--workers 4] [--cores 4] [--use 0.7]

Each query has all vertices in one slot sharing group, so it takes as many slots as its widest vertex has tasks. Operators
are not chained. DS2 gives the tasks for a rate that keeps `--use` of all cores busy. "tight": the workers have together as
many slots as the job takes, rounded up to equal workers; "roomy": 8 slots each. A run is CAPSys section 6.2's.

Printed with it: the mix of CAPS, what is proved, and Kendall's tau between the predicted CPU load of the worst worker and
the throughput over all plans of a query.
"""

import argparse
import math
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import kendalltau

from benchmarks.placement.runs import (
    QUERIES,
    SUSTAINED,
    Deployment,
    on_cores,
    parallelism_for,
    physical,
    run_plan,
    spread_of,
    true_rates,
)
from benchmarks.pool import Pool
from models.cluster import Cluster
from models.job import Job, records_in_per_source_record
from models.placement.graph.slot_sharing import with_shared_slots
from models.placement.shared.place import place_shared
from models.placement.shared.results import SharedPlacement, SharedPolicy
from models.placement.shared.sharing import SharedDataflow
from models.vertices import JobVertex
from pipelines.inputs.catalogue import load_job

POLICIES: tuple[SharedPolicy, ...] = ("caps", "default", "evenly", "tasks")
ROOMY_SLOTS = 8


@dataclass(frozen=True)
class Case:
    """A query on a cluster."""

    label: str
    rate: float
    parallelism: Mapping[str, int]
    cluster: Cluster

    @property
    def job(self) -> Job:
        return load_job(QUERIES[self.label])

    @property
    def shared(self) -> SharedDataflow:
        vertices = [JobVertex(operators=(name,), slot_sharing_group="default") for name in self.job.order]
        return SharedDataflow.of(physical(self.job, self.parallelism, self.rate), vertices)


def cases_of(label: str, workers: int, cores: float, use: float) -> list[Case]:
    """The query on tight and on roomy workers."""
    job = load_job(QUERIES[label])
    ratio = records_in_per_source_record(job)
    rate = use * workers * cores / sum(ratio[o.name] * o.cost.cpu_s for o in job.operators)
    parallelism = parallelism_for(job, rate, true_rates(job))
    tight = math.ceil(max(parallelism.values()) / workers)
    return [
        Case(label, rate, parallelism, _cluster(workers, slots, cores))
        for slots in sorted({tight, max(tight, ROOMY_SLOTS)})
    ]


def _cluster(workers: int, slots: int, cores: float) -> Cluster:
    fields = {"count": workers, "slots": slots, "memory_mb": 32768, "io": 479.2e6, "net": 1.25e9}
    return on_cores(Cluster.model_validate(fields), cores)


def placed(case: Case, policy: SharedPolicy, seed: int) -> tuple[SharedPlacement, float]:
    """A placement, and the seconds that it took."""
    begin = time.monotonic()
    return place_shared(case.shared, case.cluster, policy, seed, clock=time.monotonic), time.monotonic() - begin


def throughput(case: Case, placement: SharedPlacement, seed: int) -> float:
    """Of the rate. The simulator has a slot for each task; slots isolate nothing."""
    cluster = with_shared_slots(case.cluster, case.shared.dataflow, case.shared.group_of)
    deployment = Deployment(case.parallelism, placement.placement)
    return run_plan(case.job, deployment, case.rate, cluster, seed).throughput / case.rate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", default=",".join(QUERIES))
    parser.add_argument("--seeds", type=int, default=5, help="runs of each")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--cores", type=float, default=4.0, help="of each worker")
    parser.add_argument("--use", type=float, default=0.7, help="share of all cores that the rate keeps busy")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="that run at the same time")
    asked = parser.parse_args()
    console, begin = Console(width=170), time.monotonic()
    with Pool(asked.processes, console) as pool:
        calls = [(label, asked.workers, asked.cores, asked.use) for label in asked.queries.split(",")]
        cases = [case for found in pool.map(cases_of, calls, "tasks") for case in found]
        seeds = range(asked.seeds)
        wanted = [
            (case, policy, seed if policy != "caps" else 0) for case in cases for policy in POLICIES for seed in seeds
        ]
        # CAPS is placed once: its answer does not depend on the order in which slots are requested.
        distinct = [call for i, call in enumerate(wanted) if call not in wanted[:i]]
        plans = list(zip(distinct, pool.map(placed, distinct, "placing"), strict=True))
        found = [next(plan for call, plan in plans if call == asked_for) for asked_for in wanted]
        runs = [(call[0], plan[0], i % asked.seeds) for i, (call, plan) in enumerate(zip(wanted, found, strict=True))]
        shares = pool.map(throughput, runs, "running")
    console.print(*_tables(cases, found, shares, asked.seeds), sep="\n")
    console.print(f"{time.monotonic() - begin:.0f} s")


def _tables(
    cases: list[Case], found: list[tuple[SharedPlacement, float]], shares: list[float], seeds: int
) -> tuple[Table, Table]:
    """Throughput by policy, and what CAPS decided."""
    rates = Table(
        "query", "rate", "tasks", "slots", "workers", *POLICIES, "tau", title="throughput / rate: median (least, most)"
    )
    proofs = Table("query", "workers", "mix", "status", "best of every mix", "worst CPU: caps, others", "s")
    per_case = len(POLICIES) * seeds
    for i, case in enumerate(cases):
        own = slice(i * per_case, (i + 1) * per_case)
        plans, values = found[own], np.array(shares[own]).reshape(len(POLICIES), seeds)
        costs = np.array([plan.cost.cpu for plan, _ in plans])
        slots = f"{len(case.cluster.workers)} x {case.cluster.workers[0].slots}"
        tau = kendalltau(-costs, np.round(values.ravel(), 3)).statistic
        tasks = f"{sum(case.parallelism.values())}"
        cells = [f"{spread_of(row)}, {(row >= SUSTAINED).sum()}/{seeds}" for row in values]
        rates.add_row(case.label, f"{case.rate:,.0f}", tasks, f"{case.shared.slots}", slots, *cells, f"{tau:.2f}")
        caps, seconds = plans[0]
        by_policy = ", ".join(f"{c:.2f}" for c in np.median(costs.reshape(len(POLICIES), seeds), axis=1))
        status = "" if caps.tuning is None else caps.tuning.status
        proofs.add_row(case.label, slots, caps.mix, status, f"{caps.best_of_every_mix}", by_policy, f"{seconds:.2f}")
    return rates, proofs


if __name__ == "__main__":
    main()
