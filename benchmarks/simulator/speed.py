"""How much faster than real time the simulator is: Nexmark q5 at 48, 200 and 1,000 slots, and 140 minutes of q11.

The 140 minutes are injected in one call, and served from a log as a scaling policy sees them: minute by minute, and in
reporting intervals of 5 s.

    python -m benchmarks.simulator.speed

Compilation is not counted: it happens once per machine, and is cached in __pycache__.
"""

import math
import time

from rich.console import Console
from rich.table import Table

from models.capacity.bids2 import bids2
from models.capacity.observation import OperatorRates
from models.job import Job, records_in_per_source_record
from pipelines.inputs.catalogue import load_job
from testbeds.protocol import Configuration
from testbeds.simulator import Simulator, streambed_cluster

CASES = (
    ("nexmark-q5", 48, 8e5, 900.0, None),
    ("nexmark-q5", 200, 1.5e6, 900.0, None),
    ("nexmark-q5", 1000, 2.5e6, 300.0, None),
    ("nexmark-q11", 70, 1.5e6, 140 * 60.0, None),
    ("nexmark-q11", 70, 1.5e6, 140 * 60.0, 60.0),
    ("nexmark-q11", 70, 1.5e6, 140 * 60.0, 5.0),
)
"""Job, task slots without sources, records/s, simulated seconds, and seconds of each call of serve (None: inject)."""
SOURCE_TASKS = 32


def configuration(job: Job, slots: int) -> dict[str, int]:
    """Tasks of each operator by BIDS2 from the unit costs of the job's file."""
    ratios = records_in_per_source_record(job)
    rates = [
        OperatorRates(name=o.name, true_rate_per_task=1 / o.cost.cpu_s, records_in_per_source_record=ratios[o.name])
        for o in job.scaled_operators
    ]
    return {**{o.name: SOURCE_TASKS for o in job.sources}, **bids2(rates, slots).parallelism}


def measure(name: str, slots: int, rate: float, seconds: float, at_once_s: float | None) -> tuple[int, float, float]:
    """Tasks, achieved records/s, and CPU seconds for the simulated time."""
    job = load_job(name)
    tasks = configuration(job, slots)
    testbed = Simulator(streambed_cluster(math.ceil(slots / 16)))
    with testbed.deploy(job, Configuration(tasks, 65536.0), run="speed", seed=1) as run:
        run.inject(rate, 5, "warmup")
        begin = time.process_time()
        if at_once_s is None:
            achieved = run.inject(rate, seconds, "observe").achieved_rate
        else:
            calls = round(seconds / at_once_s)
            achieved = sum(run.serve(rate, at_once_s).read.sum() for _ in range(calls)) / seconds
        return sum(tasks.values()), achieved, time.process_time() - begin


def main() -> None:
    table = Table("job", "by", "task slots", "tasks", "records/s", "simulated s", "CPU s", "times real time")
    for name, slots, rate, seconds, at_once_s in CASES:
        tasks, achieved, spent = measure(name, slots, rate, seconds, at_once_s)
        table.add_row(
            name,
            "inject" if at_once_s is None else f"serve, {at_once_s:g} s",
            f"{slots}",
            f"{tasks}",
            f"{achieved:,.0f}",
            f"{seconds:,.0f}",
            f"{spent:.2f}",
            f"{seconds / spent:,.0f}",
        )
    Console().print(table)


if __name__ == "__main__":
    main()
