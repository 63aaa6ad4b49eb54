"""ODRP against CAPS on Q3-inf: how long they decide, and how their plans run (CAPSys section 6.3, Table 3).

    python -m benchmarks.placement.odrp [--rate 4236] [--time-limit 90] [--cores 8]

4 workers of 8 slots (clusters/capsys-4x8.yaml), sources on the cluster as in the paper. ODRP decides parallelism and
placement; CAPS places the parallelism of DS2. Both are given the same true rates, those of one task alone. Each plan runs
on the simulator: 6 minutes of warm-up, 10 of observation, five deployments (medians). The target is the highest rate
that CAPS sustains. The paper's workers are c5d.4xlarge (16 vCPUs): `--cores 16` gives them as many; the catalogue's
m5d.2xlarge has 8.
"""

import argparse
import time
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.placement.runs import (
    Deployment,
    highest_rate,
    on_cores,
    parallelism_for,
    place_by,
    run_plan,
    true_rates,
)
from models.cluster import Cluster
from models.job import Job
from models.placement.baselines.odrp import WEIGHTS, odrp
from models.placement.baselines.odrp_instance import OdrpInstance
from pipelines.inputs.catalogue import load_cluster, load_job

PAPER = {
    "caps": ("0.5 %", "4236", "27", "0.2 s"),
    "default": ("90 %", "680", "14", "1636 s"),
    "weighted": ("48 %", "3396", "26", "4037 s"),
    "latency": ("15 %", "4043", "32", "1607 s"),
}
"""Backpressure, throughput, slots, decision time of Table 3, for a target rate of about 4236 records/s."""
DEPLOYMENTS = 5


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    name: str
    deployment: Deployment
    seconds: float
    proof: str


def caps(job: Job, cluster: Cluster, rate: float) -> Row:
    """DS2's parallelism, placed by CAPS with tuned thresholds."""
    started = time.perf_counter()
    parallelism = parallelism_for(job, rate, true_rates(job))
    placement = place_by("caps", job, parallelism, rate, cluster, 0)
    return Row("caps", Deployment(parallelism, placement), time.perf_counter() - started, "")


def by_odrp(job: Job, cluster: Cluster, rate: float, name: str, time_limit_s: float) -> Row:
    """ODRP's own parallelism and placement."""
    most = cluster.slots - len(job.operators) + 1
    instance = OdrpInstance.of_job(job, rate, true_rates(job), most)
    found = odrp(instance, cluster, WEIGHTS[name], clock=time.perf_counter, time_limit_s=time_limit_s)
    proof = f"{found.status}, gap {found.gap:.2%}"
    return Row(name, Deployment(found.parallelism, found.placement), found.seconds or 0.0, proof)


def add_row(table: Table, row: Row, job: Job, cluster: Cluster, rate: float) -> None:
    """Run the plan and show it beside the paper's line."""
    runs = [run_plan(job, row.deployment, rate, cluster, seed) for seed in range(DEPLOYMENTS)]
    pressure, throughput, slots, seconds = PAPER[row.name]
    table.add_row(
        row.name if row.name == "caps" else f"ODRP {row.name}",
        f"{np.median([r.backpressure for r in runs]):.1%} ({pressure})",
        f"{np.median([r.throughput for r in runs]):,.0f} ({throughput})",
        f"{sum(row.deployment.parallelism.values())} ({slots})",
        f"{row.seconds:.3f} s ({seconds})",
        row.proof,
        " ".join(f"{row.deployment.parallelism[name]}" for name in job.order),
        " ".join(str(sum(tasks.values())) for tasks in row.deployment.placement.values()),
    )


def against_odrp(cluster: Cluster, rate: float | None = None, time_limit_s: float = 90.0) -> Table:
    """Table 3, at the highest rate that CAPS sustains if none is given."""
    job = load_job("q3-inf")
    place_by("caps", job, dict.fromkeys(true_rates(job), 1), 1.0, cluster, 0)  # profiles, and loads the kernels
    rate = rate or highest_rate(job, cluster)
    table = Table(
        *("policy", "backpressure", "throughput", "slots", "decision", "proof", "tasks", "tasks on each worker"),
        title=f"Q3-inf at {rate:,.0f} records/s, {cluster.workers[0].cores:g} cores a worker "
        "(in brackets: CAPSys Table 3)",
    )
    add_row(table, caps(job, cluster, rate), job, cluster, rate)
    for name in WEIGHTS:
        add_row(table, by_odrp(job, cluster, rate, name, time_limit_s), job, cluster, rate)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, default=None, help="target, records/s; the highest for CAPS if left out")
    parser.add_argument("--time-limit", type=float, default=90.0, help="seconds for each of ODRP's three")
    parser.add_argument("--cores", type=float, default=8.0, help="of each worker")
    asked = parser.parse_args()
    console, begin = Console(width=150), time.monotonic()
    console.print(against_odrp(on_cores(load_cluster("capsys-4x8"), asked.cores), asked.rate, asked.time_limit))
    console.print(f"{time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
