"""DS2 on a real Flink: word count with operators limited in rate, from one task each, in one decision (DS2 section 5.2).

    python -m benchmarks.flink.ds2

The catalogue's word count with all costs multiplied, so that a small machine can run its 31 tasks, which wait for as long
as a record costs. The target is slightly below the capacity of 10 FlatMap and 20 Count tasks: hashed words are not quite
evenly distributed, and a task at its limit has no time to catch up after a pause.
"""

import argparse
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.arena.studies.limited_source import LimitedRun
from models.cluster import Cluster
from models.job import Job
from models.metrics import Activity
from models.scaling.ds2.model import ds2
from models.scaling.meter import Meter, MeteredGraph
from models.scaling.policy import Decision
from pipelines.inputs.catalogue import load_job
from testbeds.flink.programs.stated_costs import Payment
from testbeds.flink.run import FlinkRun
from testbeds.flink.testbed import FlinkTestbed
from testbeds.protocol import Configuration, Served

SCALE: Final = 50.0
"""Factor on the costs: a FlatMap task then takes 33.3 sentences/s, a Count task 333 words/s."""
FLATMAP_TASKS: Final = 10
TARGET_SHARE: Final = 0.95
"""Target rate, as a share of the capacity of the FlatMap tasks."""
KEY_GROUPS: Final = 32768
"""Flink's maximum: with the default of 128, some of 20 Count tasks would have 7 key groups and others 6."""
CLUSTER: Final = Cluster.model_validate({"name": "local", "count": 2, "slots": 16, "cores": 16, "memory_mb": 1024})
INTERVAL_S: Final = 60.0
SETTLE_S: Final = 30.0
SEED: Final = 1


def word_count() -> Job:
    job = load_job("wordcount")
    operators = tuple(
        o.model_copy(update={"cost": o.cost.model_copy(update={"cpu_s": SCALE * o.cost.cpu_s})}) for o in job.operators
    )
    return job.model_copy(update={"operators": operators, "key_groups": KEY_GROUPS})


def decide(job: Job, parallelism: Mapping[str, int], served: Served, target: float) -> Decision:
    """DS2's decision after one interval."""
    meter = Meter(MeteredGraph.of(job))
    meter.deployed(parallelism, {})
    meter.record(served.activity, target)
    rates = meter.read()
    assert rates is not None, "an operator took no record"
    return ds2(rates)


def row(table: Table, when: str, target: float, served: Served, job: Job) -> None:
    read = float(served.read.sum()) / served.running_s
    cells = [when, f"{target:.1f}", f"{read:.1f}", f"{read / target:.1%}"]
    for operator in job.operators:
        cells.append(shown(served.activity[operator.name]))
    table.add_row(*cells)


def shown(did: Activity) -> str:
    """Tasks, records/s of useful time a task, shares of time busy and backpressured."""
    busy, total = float(did.busy_s.sum()), did.seconds * len(did.busy_s)
    return (
        f"{len(did.busy_s)} x {did.records_in.sum() / busy:,.1f}/s, busy {busy / total:.0%} (most "
        f"{did.busy_s.max() / did.seconds:.0%}), backpressured {did.backpressured_s.sum() / total:.1%}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--interval", type=float, default=INTERVAL_S, help="seconds before and after the decision")
    interval_s = parser.parse_args().interval
    job = word_count()
    target = TARGET_SHARE * FLATMAP_TASKS / job.operator("flatmap").cost.cpu_s
    first = Configuration(dict.fromkeys(job.order, 1), memory_mb=1024.0)
    table = Table("", "target/s", "sources/s", "share", *job.order, title="Word count on Flink (DS2 section 5.2)")
    with (
        FlinkTestbed(CLUSTER, [1024.0], payment=Payment.PACED) as testbed,
        testbed.deploy(job, first, run="flink-ds2", seed=SEED) as deployed,
    ):
        assert isinstance(deployed, FlinkRun)  # Only a program that reads Kafka is run otherwise.
        run = LimitedRun(deployed, job)
        before = run.serve(target, interval_s)
        row(table, "before", target, before, job)
        decision = decide(job, first.parallelism, before, target)
        before_id = deployed.id
        done = deployed.rescale(replace(first, parallelism=decision.parallelism))
        run.serve(target, SETTLE_S)
        row(table, "after", target, run.serve(target, interval_s), job)
        live = deployed.id == before_id
    console = Console(width=200)
    console.print(table)
    console.print(
        "DS2 asks for " + ", ".join(f"{n} {o} ({decision.exact[o]:.2f})" for o, n in decision.parallelism.items())
    )
    console.print(
        f"rescaled {'live' if live else 'from a savepoint'}: down for {done.downtime_s:.2f} s, with {done.state_mb:.2f} "
        "MiB of state"
    )


if __name__ == "__main__":
    main()
