"""What a rescale costs with state in ForSt and in RocksDB, on a real Flink 2.3.

    python -m benchmarks.flink.forst [--sizes 4,256] [--backends "rocksdb;forst"]

A keyed operator updates values of 1 KiB at random keys until it keeps the stated MiB. Then it is rescaled in place from one
task to two, back, and again. The downtime is from the request for the checkpoint until the last task runs. ForSt's files are
where the checkpoints are, and its checkpoints are always incremental; RocksDB's only where that is set. Nothing is
compressed, since the values would be almost wholly.
"""

import argparse
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, cast

from rich.console import Console
from rich.table import Table

from models.cluster import Cluster
from models.job import Job
from testbeds.flink.local.distribution import FLINK_2_3
from testbeds.flink.local.profile import StateBackend
from testbeds.flink.testbed import FlinkTestbed
from testbeds.protocol import Configuration, ElasticRun, Rescale
from testbeds.suite import small_job

VALUE_BYTES: Final = 1024
UPDATES: Final = 1.5
"""Per key; those at random reach 1 - exp(-1.5) = 78 % of the keys."""
RATE, PAUSE_S, MEMORY_MB = 20_000.0, 5.0, 1024.0
TASKS: Final = (2, 1, 2)
BACKENDS: Final[Mapping[str, tuple[StateBackend, Mapping[str, str]]]] = {
    "rocksdb": ("rocksdb", {}),
    "rocksdb, incremental": ("rocksdb", {"execution.checkpointing.incremental": "true"}),
    "forst": ("forst", {}),
}
CLUSTER: Final = Cluster.model_validate({"name": "local", "count": 1, "slots": 4, "cores": 2, "memory_mb": MEMORY_MB})


def job_of(state_mb: float) -> Job:
    """The conformance job without stated costs, with keys for this much state; all records reach the keyed operator."""
    keys = math.ceil(state_mb * 2**20 / VALUE_BYTES / (1 - math.exp(-UPDATES)))
    small, operators = small_job(), []
    for operator in small.operators:
        cost = operator.cost.model_copy(update={"cpu_s": 1e-7})
        changed: dict[str, object] = {"cost": cost}
        if operator.name == "map":
            changed["selectivity"] = 1.0
        if operator.keys is not None and operator.state is not None:
            changed["cost"] = cost.model_copy(
                update={"state_read_bytes": VALUE_BYTES, "state_write_bytes": VALUE_BYTES}
            )
            changed["keys"] = operator.keys.model_copy(update={"distinct": keys})
            changed["state"] = operator.state.model_copy(update={"bytes_per_key": VALUE_BYTES})
        operators.append(operator.model_copy(update=changed))
    return small.model_copy(update={"operators": tuple(operators)})


def rescales(testbed: FlinkTestbed, state_mb: float) -> Iterator[Rescale]:
    """Fill the state, and rescale."""
    job = job_of(state_mb)
    one = Configuration({"source": 1, "map": 1, "count": 1, "sink": 1}, MEMORY_MB)
    (keys,) = (o.keys.distinct for o in job.operators if o.keys is not None)
    fill_s = max(PAUSE_S, PAUSE_S * math.ceil(UPDATES * keys / RATE / PAUSE_S))
    with testbed.deploy(job, one, run="forst", seed=1) as deployed:
        run = cast(ElasticRun, deployed)
        run.serve(min(RATE, UPDATES * keys / fill_s), fill_s)
        run.serve(100.0, PAUSE_S)
        for tasks in TASKS:
            yield run.rescale(replace(one, parallelism={**one.parallelism, "count": tasks}))
            run.serve(100.0, PAUSE_S)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="4,256", help="of the state, MiB")
    parser.add_argument("--backends", default=";".join(BACKENDS))
    asked = parser.parse_args()
    table = Table("backend", "state, MiB", f"downtime, s: to {', '.join(map(str, TASKS))} tasks")
    for named in asked.backends.split(";"):
        backend, settings = BACKENDS[named]
        plain = {**settings, f"state.backend.{backend}.compression.per.level": "NO_COMPRESSION"}
        with FlinkTestbed(CLUSTER, [MEMORY_MB], release=FLINK_2_3, state_backend=backend, settings=plain) as testbed:
            for size in asked.sizes.split(","):
                downtimes = ", ".join(f"{one.downtime_s:.2f}" for one in rescales(testbed, float(size)))
                print(named, size, downtimes, flush=True)
                table.add_row(named, size, downtimes)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
