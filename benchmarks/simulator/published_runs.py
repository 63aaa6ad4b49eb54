"""Runs of published sizes on the simulator: which configuration, the search or replay of it, and when it must be repeated."""

import math
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

from benchmarks.simulator import published_search
from benchmarks.simulator.published_data import SOURCE_TASKS, SUSTAINED, Size
from benchmarks.simulator.published_search import EXPLORATION, GRID, ScrapedRun, mst_of, search_as_published
from models.capacity.bids2 import bids2
from models.capacity.observation import OperatorRates
from models.errors import SluiceError
from models.job import Job
from pipelines.inputs.catalogue import load_job
from pipelines.measuring.estimate import mst_settings, operator_rates, search_mst
from testbeds.protocol import Configuration
from testbeds.simulator import Physics, Simulator, streambed_cluster
from testbeds.simulator.run import SimulatedRun

ROOT: Final = Path(__file__).parents[2]
TESTBED_SLOTS: Final = 48
VERIFICATION_RAMP_S, PRODUCTION_RAMP_S = 120.0, 300.0
PRECISION: Final = 0.02
LONGEST_BISECTED_S: Final = 1800.0
HOPELESS: Final = 0.8
"""Share of a rate in the ramp-up below which it is not tried any longer."""
MOST_SEARCHES: Final = 5


@dataclass(frozen=True)
class Deployment:
    """A configuration of a job and the testbed for it."""

    job: Job
    testbed: Simulator
    tasks: dict[str, int]
    memory_mb: float

    def run(self, source_tasks: int, seed: int) -> SimulatedRun:
        asked = Configuration({**{s.name: source_tasks for s in self.job.sources}, **self.tasks}, self.memory_mb)
        return self.testbed.deploy(self.job, asked, run="published", seed=seed)


def deployment(size: Size) -> Deployment:
    job = load_job(f"nexmark-{size.query}")
    testbed = Simulator(streambed_cluster(max(3, math.ceil(size.slots / 16))))
    names = [o.name for o in job.scaled_operators]
    vector = size.tasks or best_tasks(job, size)
    return Deployment(job, testbed, dict(zip(names, vector, strict=True)), size.memory_mb)


def best_tasks(job: Job, size: Size) -> tuple[int, ...]:
    """BIDS2's tasks of the rates that the simulator shows."""
    of_run = single_task_rates if size.slots <= TESTBED_SLOTS else largest_run_rates
    rates = of_run(size.query, size.memory_mb)
    found = bids2(rates, size.slots, job.max_parallelism).parallelism
    return tuple(found[o.name] for o in job.scaled_operators)


@cache
def single_task_rates(query: str, memory_mb: float) -> tuple[OperatorRates, ...]:
    """Of each operator, from a search with one task each."""
    job = load_job(f"nexmark-{query}")
    return _searched_rates(job, {o.name: 1 for o in job.scaled_operators}, memory_mb)


@cache
def largest_run_rates(query: str, memory_mb: float) -> tuple[OperatorRates, ...]:
    """Of each operator, from a search with all slots of the test cluster."""
    job = load_job(f"nexmark-{query}")
    best = bids2(single_task_rates(query, memory_mb), TESTBED_SLOTS, job.max_parallelism)
    return _searched_rates(job, best.parallelism, memory_mb)


def _searched_rates(job: Job, tasks: dict[str, int], memory_mb: float) -> tuple[OperatorRates, ...]:
    with Deployment(job, Simulator(), tasks, memory_mb).run(SOURCE_TASKS["q1"], 0) as run:
        _, windows = search_mst(run, mst_settings(job))
    return operator_rates(job, windows[-1].samples)


def simulate(size: Size, seed: int) -> float:
    """What the simulator says of a size, records/s: an MST, or the achieved rate of a replay."""
    deployed = deployment(size)
    if size.kind == "mst":
        return searched(deployed, size, seed)
    if size.kind == "replay":
        ramp_s = VERIFICATION_RAMP_S if size.source == "verification" else PRODUCTION_RAMP_S
        return achieved(deployed, size, size.injected, ramp_s, seed)
    return bisected(deployed, size, seed)


def searched(deployed: Deployment, size: Size, seed: int) -> float:
    """The MST that the artifact's search finds; it starts over where no target was sustained."""
    times = (EXPLORATION if size.source == "search" else GRID)[size.query]
    for again in range(MOST_SEARCHES):
        begun = seed + 1000 * again
        with deployed.run(size.source_tasks, begun) as run:
            found = mst_of(search_as_published(ScrapedRun(run, Physics(), begun), times))
        if found is not None:
            return found
    raise SluiceError(f"{MOST_SEARCHES} searches of {size.query} with {size.slots} slots sustained no target")


def achieved(deployed: Deployment, size: Size, rate: float, ramp_s: float, seed: int) -> float:
    """Mean rate that a fresh deployment reads while `rate` comes into its log."""
    with deployed.run(size.source_tasks, seed) as run:
        run.serve(rate, ramp_s)
        return float(run.serve(rate, size.seconds).read.sum()) / size.seconds


def bisected(deployed: Deployment, size: Size, seed: int) -> float:
    """Highest sustained rate, to PRECISION, by bisection on the logarithm over runs with rate-limited sources."""

    seconds = min(size.seconds, LONGEST_BISECTED_S)

    def sustained(rate: float) -> bool:
        with deployed.run(size.source_tasks, seed) as run:
            if run.inject(rate, PRODUCTION_RAMP_S, "ramp").achieved_rate < HOPELESS * rate:
                return False
            return run.inject(rate, seconds, "observe").achieved_rate >= SUSTAINED * rate

    low = high = size.published[0]
    if sustained(low):
        while sustained(high := high * 1.25):
            low = high
    else:
        while not sustained(low := low / 1.25):
            high = low
    while high / low > 1 + PRECISION:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if sustained(middle) else (low, middle)
    return low


@cache
def code_digest(query: str) -> str:
    """Of all that a simulated value depends on, but the size and the seed."""
    files = [*sorted((ROOT / "testbeds").rglob("*.py")), *sorted((ROOT / "models").glob("**/*.py"))]
    files += [
        ROOT / "jobs" / f"nexmark-{query}.yaml",
        ROOT / "pipelines" / "measuring" / "estimate.py",
        Path(__file__),
        Path(published_search.__file__),
    ]
    found = sha256()
    for path in files:
        found.update(path.read_bytes())
    return found.hexdigest()[:16]


def same_run(size: Size) -> str:
    """What a simulated value depends on, but for code and seed: sizes of two sources that are the same run share it."""
    times = "exploration" if size.source == "search" else "grid"
    start = size.published[0] if size.kind == "bracket" else 0.0
    asked = (size.kind, times, size.memory_mb, size.slots, size.tasks, size.source_tasks, size.injected, size.seconds)
    return f"{size.query} {asked} {start}"


def seeds_of(size: Size, count: int) -> list[int]:
    """Of each size its own, so that the deviations of runs do not bias all sizes alike."""
    return [int(sha256(f"{same_run(size)} {i}".encode()).hexdigest()[:8], 16) for i in range(count)]


def key_of(size: Size, seed: int) -> str:
    return f"{code_digest(size.query)} {same_run(size)} {seed}"
